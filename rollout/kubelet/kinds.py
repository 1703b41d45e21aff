"""Which kinds of nodes are possible, by the API server and the node labels of an inventory, before any node was read.

A node's labels may give its kubelet, its runtime and how its kubelet was installed (``kubeletVersion``,
``containerRuntime``, ``containerRuntimeVersion``, ``layout``); nodes read from the API server have the first three.
Without a label, every value is possible that the inventory's other nodes and Kubernetes' version skew allow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rollout.core.model.inventory import Node
from rollout.core.model.snapshot import FileState, Measurement, Process, Snapshot, Token, UnitState, digest
from rollout.core.text.terminal import printable
from rollout.kubelet import fields, versions
from rollout.kubelet.node import layout, packaged
from rollout.kubelet.runtimes import known
from rollout.kubelet.runtimes.description import Runtime

# Kinds of nodes for people: all of them, or the common properties of some.


def kinds_told(some: Collection[NodeKind], every: Collection[NodeKind]) -> str:
    """``every kind of node``, or ``kubelets 1.22 and 1.23 over containerd (plain)``; properties of all are left out."""
    if set(some) == set(every):
        return "every kind of node"
    minors = sorted({kind.minor for kind in some})
    same = [kind for kind in every if kind.minor in minors]
    runtimes, installed = {kind.runtime for kind in some}, {kind.installed for kind in some}
    over = f" over {_listed(sorted(runtimes))}" if runtimes != {kind.runtime for kind in same} else ""
    how = f" ({_listed(sorted(installed))})" if installed != {kind.installed for kind in same} else ""
    return f"kubelet{'s' * (len(minors) > 1)} {_listed(f'1.{minor}' for minor in minors)}{over}{how}"


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


_SKEW, _SKEW_BEFORE, _WIDER_SINCE = 3, 2, 28
"""How many minors a kubelet may be older than its API server (https://kubernetes.io/releases/version-skew-policy/)."""


def unsupported_api_server(api_server: str) -> str:
    """Why no kubelet that rollout knows may run under an API server of this version; ``""``: one may."""
    minors, version = fields.known_minors(), versions.parse(api_server)
    if version is None or minors.start <= version.minor < minors.stop + _SKEW:
        return ""
    span = f"1.{minors.start} to 1.{minors.stop - 1}"
    return f"no kubelet that rollout knows ({span}) may run under an API server {printable(api_server, 40)}"


class Installed(StrEnum):
    """How a kubelet was installed: what its unit reads, and from where."""

    DEB = "kubeadm-deb"
    RPM = "kubeadm-rpm"
    DROP_INS = "kubeadm-dropin"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, order=True)
class NodeKind:
    """One kind of node: its kubelet's version, its runtime, and how the kubelet was installed."""

    minor: int
    version: str
    runtime: Runtime
    runtime_version: str
    installed: Installed


@dataclass(frozen=True, slots=True)
class Kinds:
    """The possible kinds of a cluster's nodes where their labels do not give them."""

    minors: tuple[int, ...]
    installed: tuple[Installed, ...]

    def of(self, node: Node) -> Iterator[NodeKind]:
        """Every kind that this node can be."""
        for minor, version in self._versions(node.labels):
            runtime = known.labelled(node.labels.get("containerRuntime", ""), minor)
            layout = node.labels.get("layout", "")
            for installed in (Installed(layout),) if layout in set(Installed) else self.installed:
                runtime_version = node.labels.get("containerRuntimeVersion", "")
                yield NodeKind(
                    minor, version, runtime, runtime_version or known.describe(runtime).usual_version, installed
                )

    def _versions(self, labels: Mapping[str, str]) -> tuple[tuple[int, str], ...]:
        labelled = versions.parse(labels.get("kubeletVersion", ""))
        if labelled is not None:
            return ((labelled.minor, labelled.text),) if labelled.minor in fields.known_minors() else ()
        return tuple((minor, f"1.{minor}.0") for minor in self.minors)


def kinds(api_server: str, nodes: Iterable[Node]) -> Kinds:
    """The minors are those that this API server allows, up to its own.

    Where some nodes have the label ``layout``, the others have Debian packages of kubeadm; where none has, plain units
    are possible too.
    """
    server = versions.known(api_server).minor
    oldest = server - (_SKEW if server >= _WIDER_SINCE else _SKEW_BEFORE)
    minors = tuple(minor for minor in fields.known_minors() if oldest <= minor <= server)
    labelled = any("layout" in node.labels for node in nodes)
    return Kinds(minors, (Installed.DEB,) if labelled else (Installed.DEB, Installed.PLAIN))


# A node of a kind as its installer left it, in the form of a snapshot.
#
# Units and environment files are those of the packages (kubernetes/release, ``10-kubeadm.conf``); the configuration
# is kubeadm's. The runtime's own files are left out: they differ too much between sites.


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
