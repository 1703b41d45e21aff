"""Which pods a node's kubelet would reject when it starts again, and which of them because of a change.

After a restart every pod that has not ended is admitted again, the oldest first, with the resources that its kubelet
then offers (``HandlePodAdditions`` in pkg/kubelet/kubelet.go, the checks in pkg/kubelet/lifecycle/predicate.go, 1.20
and 1.36). A pod that fails is set to Failed and its containers are killed (kubernetes #105523, #123859). Not computed
here: devices, and the policies of CPU, memory and topology.

For pods created in the same second the kubelet's order is undefined; here it is that of their names. Where a critical
pod lacks room, the kubelet kills others for it (pkg/kubelet/preemption). That is reported as ``Preempting``, under the
critical pod's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rollout.core.model.live import LiveNode
from rollout.core.model.plan import LessRoom
from rollout.core.model.pods import PlacedPod, Requirement, Toleration
from rollout.kubelet.restarts.allocatable import Effective, NodeRoom, less_room, room_after, room_now
from rollout.kubelet.restarts.pod_requests import ALL_ADDRESSES, NOTHING, RESOURCES, Amounts, plus, ports, taken

# Whether a node still matches a pod: its labels by nodeSelector and required node affinity, and its
# ``NoExecute`` taints.
#
# As in component-helpers' ``scheduling/corev1/nodeaffinity`` and ``helpers.go``.


CHECKS_TAINTS = 24
"""The first minor with a kubelet that checks taints at admission (kubernetes #101218; not in 1.23, in 1.24)."""


def selected(pod: PlacedPod, node: LiveNode) -> bool:
    """Do the node's labels satisfy the pod?"""
    if any(node.labels.get(key) != value for key, value in pod.selector):
        return False
    return pod.terms is None or any(_term(term, node) for term in pod.terms)


def tolerated(pod: PlacedPod, node: LiveNode) -> bool:
    """Does the pod tolerate every ``NoExecute`` taint of the node?"""
    harsh = [taint.removesuffix(":NoExecute") for taint in node.taints if taint.endswith(":NoExecute")]
    return all(any(_tolerates(each, taint) for each in pod.tolerations) for taint in harsh)


def _term(term: tuple[Requirement, ...], node: LiveNode) -> bool:
    """An empty term matches nothing."""
    return bool(term) and all(_holds(each, node) for each in term)


def _holds(wanted: Requirement, node: LiveNode) -> bool:
    labels: Mapping[str, str] = {"metadata.name": node.name} if wanted.of_field else node.labels
    found = labels.get(wanted.key)
    test = _OPERATORS.get(wanted.operator)
    return test is not None and test(found, wanted.values)


def _compared(found: str | None, values: tuple[str, ...], test: Callable[[int, int], bool]) -> bool:
    try:
        return found is not None and len(values) == 1 and test(int(found), int(values[0]))
    except ValueError:
        return False


_OPERATORS: Mapping[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda found, values: found in values,
    "NotIn": lambda found, values: found not in values,
    "Exists": lambda found, _values: found is not None,
    "DoesNotExist": lambda found, _values: found is None,
    "Gt": lambda found, values: _compared(found, values, int.__gt__),
    "Lt": lambda found, values: _compared(found, values, int.__lt__),
}


def _tolerates(toleration: Toleration, taint: str) -> bool:
    key, _, value = taint.partition("=")
    if toleration.effect not in ("", "NoExecute") or toleration.key not in ("", key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.key == key and toleration.value == value


PREEMPTING = "Preempting"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A pod, the kubelet's reason, and whether the change causes it; otherwise any restart would reject the pod."""

    pod: str
    reason: str  # "OutOfpods", "OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "NodeAffinity", "NodePorts", …
    by_change: bool


def rejected(
    node: LiveNode, pods: Iterable[PlacedPod], minor: int, before: Effective, after: Effective
) -> tuple[Rejected, ...] | None:
    """The pods that would not survive the restart; ``None``: the Node or a pod lacks the data to compute it.

    ``before`` and ``after`` are the kubelet's values in force, of ``allocatable.FIELDS`` at least.
    """
    try:
        return rejected_with(node, pods, less_room(node, minor, before, after))
    except ValueError:
        return None


def rejected_with(node: LiveNode, pods: Iterable[PlacedPod], less: LessRoom) -> tuple[Rejected, ...] | None:
    """The same, for known reductions by the change."""
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
    """What the pods admitted so far have taken."""

    pods: int = 0
    amounts: Amounts = NOTHING
    ports: set[tuple[str, str, int]] = field(default_factory=set)


def _refusals(node: LiveNode, pods: Sequence[PlacedPod], minor: int, room: NodeRoom) -> dict[str, str]:
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


def _lacking(asked: Amounts, admitted: _Admitted, room: NodeRoom) -> str:
    """``OutOf…`` of the first resource that is too small; a pod without requests needs only a free pod slot."""
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
