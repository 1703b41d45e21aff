"""Which pods a node's kubelet would reject when it starts again, and which of them because of a change.

After a restart every pod that has not ended is admitted anew, the oldest first, with what its kubelet then offers
(``HandlePodAdditions`` in pkg/kubelet/kubelet.go, the checks in pkg/kubelet/lifecycle/predicate.go, 1.20 and 1.36). A pod
that fails is set to Failed and its containers are killed (kubernetes #105523, #123859). What cannot be computed from here is
left out: devices, and the policies of CPU, memory and topology.

Of pods made in the same second the kubelet's order is open; here it is that of their names. Where a critical pod lacks
room the kubelet kills others for it (pkg/kubelet/preemption); that is told as ``Preempting``, under the critical pod's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rollout.core.model.live import LiveNode
from rollout.core.model.placed import PlacedPod
from rollout.core.model.plan import LessRoom
from rollout.kubelet.restarts.allocatable import Effective, Room, less_room, room_after, room_now
from rollout.kubelet.restarts.node_match import CHECKS_TAINTS, selected, tolerated
from rollout.kubelet.restarts.pod_requests import ALL_ADDRESSES, NOTHING, RESOURCES, Amounts, plus, ports, taken

PREEMPTING = "Preempting"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A pod, the kubelet's reason, and whether it is the change's doing: else any restart would reject it."""

    pod: str
    reason: str  # "OutOfpods", "OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "NodeAffinity", "NodePorts", …
    by_change: bool


def rejected(
    node: LiveNode, pods: Iterable[PlacedPod], minor: int, before: Effective, after: Effective
) -> tuple[Rejected, ...] | None:
    """The pods that would not survive the restart; ``None``: the Node or a pod does not say enough to tell.

    ``before`` and ``after`` are the kubelet's values in force, of ``allocatable.FIELDS`` at least.
    """
    try:
        return rejected_with(node, pods, less_room(node, minor, before, after))
    except ValueError:
        return None


def rejected_with(node: LiveNode, pods: Iterable[PlacedPod], less: LessRoom) -> tuple[Rejected, ...] | None:
    """The same, where it is known what the change takes from them."""
    now = room_now(node)
    if now is None:
        return None
    there = sorted(pods, key=lambda pod: (not pod.static, pod.created, pod.name))
    then = room_after(now, less)
    try:
        found = _refusals(node, there, less.minor, then)
        anyway: Mapping[str, str] = found if then == now else _refusals(node, there, less.minor, now)
    except ValueError:
        return None
    return tuple(Rejected(name, reason, name not in anyway) for name, reason in found.items())


@dataclass(slots=True)
class _Admitted:
    """What those admitted so far have taken."""

    pods: int = 0
    amounts: Amounts = NOTHING
    ports: set[tuple[str, str, int]] = field(default_factory=set)


def _refusals(node: LiveNode, pods: Sequence[PlacedPod], minor: int, room: Room) -> dict[str, str]:
    admitted = _Admitted()
    found: dict[str, str] = {}
    for pod in pods:
        asked = taken(pod, minor)
        lacking = _lacking(asked, admitted, room)
        misplaced = _misplaced(pod, node, minor, admitted)
        reason = misplaced if pod.critical and misplaced else lacking or misplaced
        if reason and not pod.deleting:
            found[pod.name] = PREEMPTING if pod.critical and not misplaced else reason
        if not reason or found.get(pod.name) == PREEMPTING:
            admitted.pods += 1
            admitted.amounts = plus(admitted.amounts, asked)
            admitted.ports.update(ports(pod.asks))
    return found


def _lacking(asked: Amounts, admitted: _Admitted, room: Room) -> str:
    """``OutOf…`` of the first thing that there is too little of; who asks for nothing needs only a place."""
    if admitted.pods + 1 > room.pods:
        return "OutOfpods"
    if asked == NOTHING:
        return ""
    together = plus(admitted.amounts, asked)
    short = (name for name, sum_, most in zip(RESOURCES, together, room.amounts, strict=True) if sum_ > most)
    return next((f"OutOf{name}" for name in short), "")


def _misplaced(pod: PlacedPod, node: LiveNode, minor: int, admitted: _Admitted) -> str:
    if not selected(pod, node):
        return "NodeAffinity"
    if any(_taken(port, admitted.ports) for port in ports(pod.asks)):
        return "NodePorts"
    if minor >= CHECKS_TAINTS and not pod.static and not tolerated(pod, node):
        return "TaintToleration"
    return ""


def _taken(port: tuple[str, str, int], known: set[tuple[str, str, int]]) -> bool:
    address, *rest = port
    return any(
        other[1:] == tuple(rest) and (ALL_ADDRESSES in (address, other[0]) or address == other[0]) for other in known
    )
