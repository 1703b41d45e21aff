"""A node of a kind as its installer left it, in the form of a snapshot: for checks before any node was read.

Units and environment files are those of the packages (kubernetes/release, ``10-kubeadm.conf``); the configuration is
kubeadm's. The runtime's own files are left out: they differ too much between sites.
"""

from __future__ import annotations

from collections.abc import Iterable

from rollout.core.model.snapshot import FileState, Measurement, Process, Snapshot, Token, UnitState
from rollout.core.text.blobs import digest
from rollout.kubelet.kinds.kind import Installed, NodeKind
from rollout.kubelet.node import layout, packaged
from rollout.kubelet.runtime_versions import PROGRAMS, Runtime

_FRAGMENT = "/usr/lib/systemd/system/kubelet.service"
_KUBEADM = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
_FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
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

_SOCKETS = {
    Runtime.CRI_DOCKERD: "unix:///run/cri-dockerd.sock",
    Runtime.CONTAINERD: "unix:///run/containerd/containerd.sock",
    Runtime.CRIO: "unix:///var/run/crio/crio.sock",
}
_REMOTE_UNTIL = 26
"""The last minor that has ``--container-runtime``."""


def model_node(kind: NodeKind) -> Snapshot:
    """A healthy node of this kind without changes by hand."""
    runtime = " ".join(_runtime_words(kind))
    if kind.installed is Installed.PLAIN:
        command = (
            f"/usr/bin/kubelet --config={packaged.CONFIG} --kubeconfig=/etc/kubernetes/kubelet.conf {runtime}".strip()
        )
        files = [_regular(_FRAGMENT, packaged.kubelet_unit(command)), *map(_absent, layout.FLAG_FILES)]
        return _snapshot(kind, command.split(), files, "")
    extra = layout.FLAG_FILES[kind.installed is Installed.RPM]
    config_dir = kind.installed is Installed.DROP_INS and kind.minor >= packaged.CONFIG_DIR_SINCE
    config = packaged.config_flags(drop_ins=config_dir)
    command = packaged.kubeadm_command(config, runtime)
    files = [
        _regular(_FRAGMENT, packaged.kubelet_unit()),
        _regular(_KUBEADM, packaged.kubeadm_drop_in(extra, config)),
        _regular(_FLAGS, f'KUBELET_KUBEADM_ARGS="{runtime}"\n'),
        *(_regular(path, f"{layout.VARIABLE}=\n") if path == extra else _absent(path) for path in layout.FLAG_FILES),
        *([FileState(packaged.CONFIG_DIR, "directory")] if config_dir else []),
    ]
    return _snapshot(kind, command.split(), files, _KUBEADM)


def _runtime_words(kind: NodeKind) -> tuple[str, ...]:
    if kind.runtime not in _SOCKETS:
        return ()
    remote = ("--container-runtime=remote",) if kind.minor <= _REMOTE_UNTIL else ()
    return (*remote, f"--container-runtime-endpoint={_SOCKETS[kind.runtime]}")


def _snapshot(kind: NodeKind, command: list[str], files: Iterable[FileState], drop_ins: str) -> Snapshot:
    properties = {
        "LoadState": "loaded",
        "ActiveState": "active",
        "UnitFileState": "enabled",
        "NeedDaemonReload": "no",
        "FragmentPath": _FRAGMENT,
        "DropInPaths": drop_ins,
    }
    program = PROGRAMS[kind.runtime]
    every = [*files, _regular(packaged.CONFIG, _CONFIG_TEXT.decode()), _absent(layout.DROP_IN)]
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
