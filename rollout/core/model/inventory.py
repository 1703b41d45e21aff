"""The inventory as the rest of the program sees it: validated, merged, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from rollout.core.model.conditions import Condition
from rollout.core.model.frozen import dataclass
from rollout.core.model.settings import Setting
from rollout.core.model.ways_in import Become
from rollout.errors import Place

# A node's role, from the labels that Kubernetes and the makers of device plugins set.


CONTROL_PLANE = (
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "node-role.kubernetes.io/controlplane",
    "node-role.kubernetes.io/etcd",
)
"""Labels and taints of the control plane: kubeadm's of now and of before 1.25, and those of Rancher for its two parts."""
_DEVICES = (
    "nvidia.com/gpu.present",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "gpu.intel.com/device.count",
    "feature.node.kubernetes.io/pci-10de.present",
    "feature.node.kubernetes.io/network-sriov.capable",
)
_NO = frozenset({"false", "0", "no"})


class Role(StrEnum):
    """Control-plane nodes and nodes with device plugins have waves of their own."""

    WORKER = "worker"
    DEVICES = "devices"  # pods may lose their devices when the kubelet restarts and the plugin registers again
    CONTROL_PLANE = "control-plane"


def role_of(labels: Mapping[str, str]) -> Role:
    """The control plane takes precedence: its label counts with any value (kubeadm leaves it empty)."""
    if any(key in labels for key in CONTROL_PLANE):
        return Role.CONTROL_PLANE
    if any(labels.get(key, "no").lower() not in _NO for key in _DEVICES):
        return Role.DEVICES
    return Role.WORKER


NO_RACK = "none"
"""The rack and the zone of nodes in an inventory without racks."""


@dataclass(frozen=True, slots=True)
class Node:
    """One machine. ``address`` is passed to SSH (``ssh_config`` may map it further); ``user``, ``port`` and ``sudo`` may
    be unset. ``sudo``: whether the login must become root; ``become``: by which program.
    """

    name: str
    address: str
    rack: str
    zone: str
    labels: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    user: str | None = None
    port: int | None = None
    sudo: bool | None = None
    registry: str = ""  # what it pulls from (an upstream or a mirror), to compute registry loads; "": not set
    become: Become = Become.SUDO

    @property
    def through_sudo(self) -> bool:
        """True for every user but root, unless the inventory sets it."""
        return self.user != "root" if self.sudo is None else self.sudo

    @property
    def reached_at(self) -> str:
        """See ``reached_at``."""
        return reached_at(self.user, self.address, self.port)


def reached_at(user: str | None, address: str, port: int | None) -> str:
    """``USER@ADDRESS:PORT``, as far as they are set."""
    return (f"{user}@" if user is not None else "") + address + (f":{port}" if port is not None else "")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The addresses of the back ends that gates ask. Paths are on the controller's machine; ``""``: not set."""

    kubeconfig: str = ""
    context: str = ""
    prometheus: str = ""
    alerts: str = ""
    token_file: str = ""  # bearer token for Prometheus and the server of alerts
    ca_file: str = ""  # certificate authority for both
    tenant: str = ""  # the value of the header X-Scope-OrgID for both
    cert_file: str = ""  # client certificate for both
    key_file: str = ""  # its key; "": in the same file


@dataclass(frozen=True, slots=True)
class Level:
    """Settings of one level of precedence, with the nodes they apply to (``None``: all)."""

    name: str
    nodes: frozenset[str] | None
    settings: Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Inventory:
    """A cluster's nodes in inventory order, its nodesets by name, and its settings in order of precedence.

    ``nodesets`` has every name that ``@name`` may mean: racks, zones, groups and ``@all``.
    ``digest`` is the SHA-256 of the file as written; ``machines`` is node → machine-id, as the source of the nodes reports it. ``playbook`` is the default playbook of a plan; ``""``: not set.
    """

    cluster: str
    api_server: str
    nodes: Mapping[str, Node]
    nodesets: Mapping[str, frozenset[str]]
    levels: tuple[Level, ...]
    digest: str
    endpoints: Endpoints = Endpoints()
    playbook: str = ""
    playbook_place: Place | None = field(default=None, compare=False)
    conditions: tuple[Condition, ...] = ()  # what plans for this cluster must keep, one of a kind
    machines: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = (
        frozenset()
    )  # the source of its nodes has these too; its selector or group leaves them out
    remembered: str = ""  # when its nodes were listed, if the source did not answer now; "": it did
    listed_by: str = ""  # the API server that its nodes are from, for people; "": none, or it is not told
    controller_ssh: frozenset[str] = frozenset()  # regions: without a worker, this machine may reach their nodes
    places: Mapping[str, Place] = field(default_factory=dict, compare=False)  # node → where it is listed
