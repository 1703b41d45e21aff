"""The specification of a lab: nodes, their loopback addresses, and the labels that define their trees."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.errors import UsageError
from rollout.kubelet import fields, versions
from rollout.kubelet.runtimes import known

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
        return self.labels.get("kubeletVersion", versions.CURRENT).lstrip("v")

    @property
    def minor(self) -> int:
        return int(self.version.split(".")[1])

    @property
    def runtime(self) -> str:
        usual = known.describe(known.labelled("", self.minor)).labels[0]
        return self.labels.get("containerRuntime", usual)

    @property
    def runtime_version(self) -> str:
        """``""`` if the runtime's versions are fixed."""
        usual = known.describe(known.labelled(self.runtime, self.minor)).stand_in.version_beside(self.minor)
        return self.labels.get("containerRuntimeVersion", usual)

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
    api_server: str = versions.CURRENT


def node(name: str, known_as: str, address: str, labels: Mapping[str, str]) -> NodeSpec:
    """The runtime's label may have any of its names. ``UsageError``: the lab has no such kubelet, or no such runtime."""
    spec = NodeSpec(name, known_as, address, labels)
    version = versions.parse(spec.version)
    if version is None or version.minor < fields.known_minors().start:
        raise _not_served(name, "kubeletVersion", labels)
    runtime = known.labelled(spec.runtime, version.minor)
    names = known.describe(runtime).labels
    if spec.runtime not in known.every_label():
        raise _not_served(name, "containerRuntime", labels)
    return NodeSpec(name, known_as, address, {**labels, "containerRuntime": names[0]})


def _not_served(name: str, label: str, labels: Mapping[str, str]) -> UsageError:
    oldest = fields.known_minors().start
    takes = {
        "kubeletVersion": f"such as v1.{oldest}.0 or newer",
        "containerRuntime": f"one of {', '.join(known.every_label())}",
    }
    message = f"{name}: the lab serves no node with the label {label}: {printable(labels[label], 80)}"
    return UsageError("lab-node", message, hint=takes[label])


def addresses(count: int) -> list[str]:
    """This many loopback addresses, one per node, in order."""
    if count > int(LAST) - int(FIRST):
        raise ValueError(f"127.64.0.0/10 has no room for {count} nodes")
    return [str(FIRST + index) for index in range(count)]


def save(spec: LabSpec, path: Path) -> None:
    path.write_text(json.dumps(asdict(spec)), encoding="utf-8")


def read(path: Path) -> LabSpec:
    """The reverse. Raises ``OSError`` and ``ValueError``."""
    spec: LabSpec = json_text.decode(LabSpec, json_text.parse(path.read_text(encoding="utf-8")))
    return spec
