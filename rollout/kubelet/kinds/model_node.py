"""A node of a kind as its installer left it, in the form of a snapshot: for checks before any node was read.

Units and environment files are those of the packages (kubernetes/release, ``10-kubeadm.conf``); the configuration is
kubeadm's. The runtime's own files are left out: they differ too much between sites.
"""

from __future__ import annotations

from collections.abc import Iterable

from rollout.core.model.snapshot import FileState, Measurement, Process, Snapshot, Token, UnitState
from rollout.core.text.blobs import digest
from rollout.kubelet.kinds.kind import Installed, NodeKind
from rollout.kubelet.node import layout
from rollout.kubelet.runtimes import known

_FRAGMENT = "/usr/lib/systemd/system/kubelet.service"
_KUBEADM = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
_FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
_CONFIG = "/var/lib/kubelet/config.yaml"
_CONFIG_DIR = "/etc/kubernetes/kubelet.conf.d"
_CONFIG_DIR_SINCE = 30

_UNIT = "[Service]\nExecStart={}\nRestart=always\nRestartSec=10\n"
_KUBEADM_TEXT = """\
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config={config}"
EnvironmentFile=-{flags}
EnvironmentFile=-{extra}
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""
_CONFIG_TEXT = b"""\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
cgroupDriver: systemd
clusterDNS:
- 10.96.0.10
clusterDomain: cluster.local
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
"""

_REMOTE_UNTIL = 26
"""The last minor that has ``--container-runtime``."""


def model_node(kind: NodeKind) -> Snapshot:
    """A healthy node of this kind without changes by hand."""
    runtime = " ".join(_runtime_words(kind))
    if kind.installed is Installed.PLAIN:
        command = f"/usr/bin/kubelet --config={_CONFIG} --kubeconfig=/etc/kubernetes/kubelet.conf {runtime}".strip()
        files = [_regular(_FRAGMENT, _UNIT.format(command)), *map(_absent, layout.FLAG_FILES)]
        return _snapshot(kind, command.split(), files, "")
    extra = layout.FLAG_FILES[kind.installed is Installed.RPM]
    config_dir = kind.installed is Installed.DROP_INS and kind.minor >= _CONFIG_DIR_SINCE
    more = f" --config-dir={_CONFIG_DIR}" if config_dir else ""
    text = _KUBEADM_TEXT.format(config=f"{_CONFIG}{more}", flags=_FLAGS, extra=extra)
    command = f"/usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf --config={_CONFIG}{more} {runtime}"
    files = [
        _regular(_FRAGMENT, _UNIT.format("/usr/bin/kubelet")),
        _regular(_KUBEADM, text),
        _regular(_FLAGS, f'KUBELET_KUBEADM_ARGS="{runtime}"\n'),
        *(_regular(path, f"{layout.VARIABLE}=\n") if path == extra else _absent(path) for path in layout.FLAG_FILES),
        *([FileState(_CONFIG_DIR, "directory")] if config_dir else []),
    ]
    return _snapshot(kind, command.split(), files, _KUBEADM)


def _runtime_words(kind: NodeKind) -> tuple[str, ...]:
    endpoint = known.describe(kind.runtime).endpoint
    if not endpoint:
        return ()
    remote = ("--container-runtime=remote",) if kind.minor <= _REMOTE_UNTIL else ()
    return (*remote, f"--container-runtime-endpoint={endpoint}")


def _snapshot(kind: NodeKind, command: list[str], files: Iterable[FileState], drop_ins: str) -> Snapshot:
    properties = {
        "LoadState": "loaded",
        "ActiveState": "active",
        "UnitFileState": "enabled",
        "NeedDaemonReload": "no",
        "FragmentPath": _FRAGMENT,
        "DropInPaths": drop_ins,
    }
    program = known.describe(kind.runtime).program
    every = [*files, _regular(_CONFIG, _CONFIG_TEXT.decode()), _absent(layout.DROP_IN)]
    return Snapshot(
        node="",
        machine_id="model",
        boot_id="",
        kubelet_version=kind.version,
        runtimes={program: f"{program} {kind.runtime_version}"},
        measurement=Measurement(
            UnitState(layout.UNIT, properties), Process(0, tuple(command)), healthz="ok", lenient=0
        ),
        files={state.path: state for state in every},
        token=Token(),
    )


def _regular(path: str, text: str) -> FileState:
    content = text.encode()
    return FileState(path, "regular", "644", "0:0", len(content), digest(content), content)


def _absent(path: str) -> FileState:
    return FileState(path, "absent")
