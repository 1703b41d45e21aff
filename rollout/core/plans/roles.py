"""The role of a node as it is seen: by the labels of the inventory, by its Node in the API, and by its static pods.

A node of the control plane counts as one whatever the inventory says: it is changed last, one at a time.
"""

from __future__ import annotations

import re

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import CONTROL_PLANE, Node, Role, role_of
from rollout.core.model.live import LiveNode
from rollout.core.model.report import Report
from rollout.core.model.snapshot import Snapshot, Unread
from rollout.core.model.surroundings import Manifests
from rollout.core.text.terminal import printable

_MANIFEST = re.compile(
    r"(?:kube-apiserver|etcd|etcd-main|etcd-events|etcd-manager-main|etcd-manager-events)(?:-pod)?\.(?:ya?ml|json|manifest)"
)
"""Names of the manifests of a control plane's static pods: of kubeadm, RKE2 and kubespray; ``-pod`` of OpenShift; ``etcd-…`` and ``.manifest`` of kops."""


SERVERS = frozenset({"k3s.service", "rke2-server.service"})
"""The units of servers of k3s and RKE2, as their installers name them."""


@dataclass(frozen=True, slots=True)
class SeenRole:
    """``seen``: what shows that it is of the control plane, beyond the inventory; ``""``: nothing does, or the inventory says so too."""

    role: Role
    seen: str = ""


def seen_role(node: Node, read: Snapshot | Unread | None, live: LiveNode | None) -> SeenRole:
    """``read`` and ``live``: the node and its Node, if they were read."""
    role = role_of(node.labels)
    if role is Role.CONTROL_PLANE:
        return SeenRole(role)
    seen = [*_of_snapshot(read), *(shown_by_its_node(live) if live else ())]
    if seen:
        return SeenRole(Role.CONTROL_PLANE, " and ".join(seen))
    return SeenRole(role_of({**(live.labels if live else {}), **node.labels}))


def seen_in_report(report: Report) -> tuple[str, ...]:
    """What shows without a plan that a node is of the control plane, from its status with ``roles``."""
    return (*_static_pods(report.static_pods), *_server(report.kubelet_unit))


def _of_snapshot(read: Snapshot | Unread | None) -> tuple[str, ...]:
    if not isinstance(read, Snapshot):
        return ()
    unit, around = read.measurement.unit, read.surroundings
    return (*_static_pods(around.manifests if around else ()), *_server(unit.name if unit else ""))


def _static_pods(folders: tuple[Manifests, ...]) -> tuple[str, ...]:
    shown = [
        f"{', '.join(printable(name, 60) for name in names)} in {printable(folder.folder, 120)}"
        for folder in folders
        if (names := sorted(filter(_MANIFEST.fullmatch, folder.files.names)))
    ]
    return (f"it has {' and '.join(shown)}",) if shown else ()


def _server(unit: str) -> tuple[str, ...]:
    """k3s has the control plane in the process of its server: there are no static pods."""
    return (f"{unit} has its kubelet",) if unit in SERVERS else ()


def shown_by_its_node(live: LiveNode) -> tuple[str, ...]:
    """What shows in the API that it is of the control plane."""
    labels = [key for key in CONTROL_PLANE if key in live.labels]
    taints = [key for key in CONTROL_PLANE if any(taint.startswith((f"{key}:", f"{key}=")) for taint in live.taints)]
    signs = [f"the label {label}" for label in labels[:1]] or [f"the taint {taint}" for taint in taints[:1]]
    return tuple(f"its Node has {each}" for each in signs)
