"""What a node offers to pods: its Node object, and the reservations in its kubelet's configuration.

``GetNodeAllocatableReservation`` (pkg/kubelet/cm/node_container_manager_linux.go): kubeReserved + systemReserved + the hard
eviction thresholds of memory.available and nodefs.available. ``reservedSystemCPUs`` replaces both reserved CPUs
(cmd/kubelet/app/server.go). Pods are ``maxPods``, or fewer by ``podsPerCore`` (pkg/kubelet/nodestatus/setters.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor

from rollout.core.model.live import LiveNode
from rollout.core.model.plan import LessRoom
from rollout.core.model.settings import Value
from rollout.kubelet.in_force import number
from rollout.kubelet.restarts.pod_requests import RESOURCES, Amounts, amounts, milli, whole

Effective = Mapping[str, Value]
"""Field → its value in force, as ``/configz`` shows it."""

FIELDS = ("evictionHard", "kubeReserved", "maxPods", "podsPerCore", "reservedSystemCPUs", "systemReserved")
"""All fields that this module reads."""

_SIGNALS = {"memory": "memory.available", "ephemeral-storage": "nodefs.available"}


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """The number of pods, and the amount of each resource."""

    pods: int
    amounts: Amounts


def room_now(node: LiveNode) -> NodeRoom | None:
    """As the Node reports; ``None``: it reports nothing, or no numbers."""
    said = dict(node.allocatable)
    try:
        return NodeRoom(whole(said["pods"]), amounts(tuple(said.items()))) if "pods" in said else None
    except ValueError:
        return None


def less_room(node: LiveNode, minor: int, before: Effective, after: Effective) -> LessRoom:
    """What the change takes from pods: through its reservations, and through the limit of pods.

    ``ValueError`` for an amount that cannot be read.
    """
    capacity = dict(node.capacity)
    cpu, memory, storage = (
        _reserved(after, name, capacity.get(name, "0")) - _reserved(before, name, capacity.get(name, "0"))
        for name in RESOURCES
    )
    limits = (_most_pods(before, capacity), _most_pods(after, capacity))
    return LessRoom(minor, None if limits[0] == limits[1] else limits[1], cpu, memory, storage)


def room_after(now: NodeRoom, less: LessRoom) -> NodeRoom:
    """What the Node will report."""
    cpu, memory, storage = now.amounts
    left = (max(0, cpu - less.cpu), max(0, memory - less.memory), max(0, storage - less.storage))
    return NodeRoom(now.pods if less.pods is None else less.pods, left)


def is_less(now: NodeRoom, less: LessRoom) -> bool:
    """Whether there is less of anything; else every pod that fits now still fits."""
    then = room_after(now, less)
    return then.pods < now.pods or any(after < before for before, after in zip(now.amounts, then.amounts, strict=True))


def _most_pods(effective: Effective, capacity: Mapping[str, str]) -> int:
    most, each = number(effective, "maxPods", 110), number(effective, "podsPerCore", 0)
    cores = milli(capacity.get("cpu", "0")) // 1000
    return min(most, each * cores) if each > 0 else most


def _reserved(effective: Effective, resource: str, capacity: str) -> int:
    reserved = [_map(effective.get(field)).get(resource, "0") for field in ("kubeReserved", "systemReserved")]
    if resource == "cpu":
        cpus = _cpus(effective.get("reservedSystemCPUs"))
        return cpus * 1000 if cpus else sum(map(milli, reserved))
    threshold = _map(effective.get("evictionHard")).get(_SIGNALS[resource], "0")
    return sum(map(whole, reserved)) + _threshold(threshold, whole(capacity))


def _threshold(text: str, capacity: int) -> int:
    return floor(capacity * float(text[:-1]) / 100) if text.endswith("%") else whole(text)


def _cpus(value: Value) -> int:
    """The number of CPUs in a list: ``0-3,8``."""
    if not isinstance(value, str) or not value:
        return 0
    ranges = (part.partition("-") for part in value.split(","))
    return len({cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)})


def _map(value: Value) -> Mapping[str, str]:
    return {key: str(entry) for key, entry in value.items()} if isinstance(value, dict) else {}
