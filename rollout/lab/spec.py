"""The specification of a lab: nodes, their loopback addresses, and the labels that define their trees."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

FIRST = ipaddress.IPv4Address("127.64.0.1")
LAST = ipaddress.IPv4Address("127.127.255.254")


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One node: its name, the address in the inventory, where the lab serves it, and its labels."""

    name: str
    known_as: str
    address: str
    labels: Mapping[str, str]

    @property
    def version(self) -> str:
        return self.labels.get("kubeletVersion", "v1.23.17").lstrip("v")

    @property
    def minor(self) -> int:
        return int(self.version.split(".")[1])

    @property
    def runtime(self) -> str:
        return self.labels.get("containerRuntime", "dockershim" if self.minor < 24 else "containerd")

    @property
    def runtime_version(self) -> str:
        """``""``: the lab's default."""
        return self.labels.get("containerRuntimeVersion", "")

    @property
    def layout(self) -> str:
        return self.labels.get("layout", "kubeadm-deb")


@dataclass(frozen=True, slots=True)
class LabSpec:
    """A lab. ``restart_sec`` goes into each kubelet's unit file; ``sets`` defines ``@name``; ``api_server``: version."""

    cluster: str
    nodes: tuple[NodeSpec, ...]
    restart_sec: float = 10.0
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    api_server: str = "v1.23.17"


def addresses(count: int) -> list[str]:
    """This many loopback addresses, one per node, in order."""
    if count > int(LAST) - int(FIRST):
        raise ValueError(f"127.64.0.0/10 has no room for {count} nodes")
    return [str(FIRST + index) for index in range(count)]


def save(spec: LabSpec, path: Path) -> None:
    path.write_text(json.dumps(asdict(spec)), encoding="utf-8")


def read(path: Path) -> LabSpec:
    data = json.loads(path.read_text(encoding="utf-8"))
    nodes = tuple(NodeSpec(**node) for node in data["nodes"])
    return LabSpec(data["cluster"], nodes, data["restart_sec"], data["sets"], data["api_server"])
