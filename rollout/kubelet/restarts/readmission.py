"""Which pods a node's kubelet would reject when it starts again, and which of them because of a change.

After a restart every pod that has not ended is admitted again, the oldest first, with the resources that its kubelet
then offers (``HandlePodAdditions`` in pkg/kubelet/kubelet.go, the checks in pkg/kubelet/lifecycle/predicate.go, 1.20
and 1.36). A pod that fails is set to Failed and its containers are killed (kubernetes #105523, #123859). Not computed
here: the policies of CPU, memory and topology, and which devices are free.

From 1.28 on a kubelet allocates no device to a container that runs when it starts, and rejects every other one until
its device plugin has registered again (``devicesToAllocate`` in pkg/kubelet/cm/devicemanager/manager.go; #116376,
#118635). An init container with a device has ended, so its pod is rejected (#138446, #124345, PR 127028). A sidecar
runs. Some patches of 1.25 to 1.27 do the same; they are not computed.

For pods created in the same second the kubelet's order is undefined; here it is that of their names. Where a critical
pod lacks room, the kubelet kills others for it (pkg/kubelet/preemption). That is reported as ``Preempting``, under the
critical pod's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from math import floor

from rollout.core.model.frozen import dataclass
from rollout.core.model.live import LiveNode
from rollout.core.model.plan import LessRoom
from rollout.core.model.pods import ContainerRequest, Pairs, PlacedPod, Requirement, Toleration
from rollout.core.model.settings import Value
from rollout.core.text.terminal import counted
from rollout.kubelet.configuration.go_values import cpus
from rollout.kubelet.configuration.quantities import milli, whole
from rollout.kubelet.restarts.mechanics import device_names
from rollout.kubelet.values import whole_number

# What one pod takes of a node, as the kubelet's admission computes it.
#
# Source: scheduler ``noderesources/fit.go`` and, newer, component-helpers. A pod takes its overhead and the larger
# of two: the sum of its containers, or the most that an init container takes. From 1.28 on a restartable init
# container counts with the containers, and with each init container after it. Requests of the pod as a whole
# override that (``spec.resources``; the API has it only where the feature is on).


RESOURCES = ("cpu", "memory", "ephemeral-storage")
"""What a kubelet's configuration takes from pods, in the order of admission. CPU in thousandths, others in bytes."""

Amounts = tuple[int, int, int]
"""One number for each of ``RESOURCES``."""

NOTHING: Amounts = (0, 0, 0)
SIDECARS = 28
ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - a host port's address, not one to listen on


def taken(pod: PlacedPod, minor: int) -> Amounts:
    """The pod's requests; ``ValueError`` for an invalid quantity."""
    running, most, staying = NOTHING, NOTHING, NOTHING
    for ask in pod.asks:
        asked = amounts(ask.requests)
        if not ask.init:
            running = plus(running, asked)
        elif ask.stays and minor >= SIDECARS:
            staying = plus(staying, asked)
            most = _larger(most, staying)
        else:
            most = _larger(most, plus(staying, asked))
    return plus(_with_whole_pod(_larger(plus(running, staying), most), pod.requests), amounts(pod.overhead))


@lru_cache(maxsize=4096)
def amounts(pairs: Pairs) -> Amounts:
    """The requests in a list that count here."""
    quantities_of = dict(pairs)
    cpu, memory, storage = (quantities_of.get(name, "0") for name in RESOURCES)
    return milli(cpu), whole(memory), whole(storage)


def plus(one: Amounts, other: Amounts) -> Amounts:
    """Their sum, resource by resource."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def ports(asks: Iterable[ContainerRequest]) -> Iterable[tuple[str, str, int]]:
    """The node's ports that its containers (not its init containers) use: address, protocol, port."""
    for ask in asks:
        if not ask.init:
            yield from ((port.address or ALL_ADDRESSES, port.protocol or "TCP", port.port) for port in ask.ports)


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])


def _with_whole_pod(added: Amounts, whole_pod: Pairs) -> Amounts:
    whole, names = amounts(whole_pod), dict(whole_pod)
    first, second, third = (whole[at] if name in names else added[at] for at, name in enumerate(RESOURCES))
    return first, second, third


# What a node offers to pods: its Node object, and the reservations in its kubelet's configuration.
#
# ``GetNodeAllocatableReservation`` (pkg/kubelet/cm/node_container_manager_linux.go): kubeReserved + systemReserved
# + the hard eviction thresholds of memory.available and nodefs.available. ``reservedSystemCPUs`` replaces both
# reserved CPUs (cmd/kubelet/app/server.go). Pods are ``maxPods``, or fewer by ``podsPerCore``
# (pkg/kubelet/nodestatus/setters.go).


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
    allocatable = dict(node.allocatable)
    try:
        return (
            NodeRoom(whole(allocatable["pods"]), amounts(tuple(allocatable.items()))) if "pods" in allocatable else None
        )
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


def over_reserved(node: LiveNode, before: Effective, after: Effective) -> tuple[str, ...]:
    """The resources of which the change reserves more than the node has: ``validateNodeAllocatable`` then ends the kubelet."""
    capacity = dict(node.capacity)
    try:
        return tuple(
            name
            for name in RESOURCES
            if name in capacity
            and max(_reserved(before, name, capacity[name]), _whole_of(name, capacity[name]))
            < _reserved(after, name, capacity[name])
        )
    except ValueError:
        return ()


def _whole_of(resource: str, text: str) -> int:
    return milli(text) if resource == "cpu" else whole(text)


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
    most, each = whole_number(effective, "maxPods", 110), whole_number(effective, "podsPerCore", 0)
    cores = milli(capacity.get("cpu", "0")) // 1000
    return min(most, each * cores) if each > 0 else most


def _reserved(effective: Effective, resource: str, capacity: str) -> int:
    reserved = [_map(effective.get(field)).get(resource, "0") for field in ("kubeReserved", "systemReserved")]
    if resource == "cpu":
        listed = effective.get("reservedSystemCPUs")
        count = cpus(listed) if isinstance(listed, str) and listed else 0
        return count * 1000 if count else sum(map(milli, reserved))
    threshold = _map(effective.get("evictionHard")).get(_SIGNALS[resource], "0")
    return sum(map(whole, reserved)) + _threshold(threshold, whole(capacity))


def _threshold(text: str, capacity: int) -> int:
    if not text.endswith("%"):
        return whole(text)
    try:
        return floor(capacity * float(text[:-1]) / 100)
    except OverflowError:
        raise ValueError("a share or a capacity is too large") from None


def _map(value: Value) -> Mapping[str, str]:
    return {key: str(entry) for key, entry in value.items()} if isinstance(value, dict) else {}


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
    # An empty term matches nothing.
    return pod.terms is None or any(term and all(_holds(each, node) for each in term) for term in pod.terms)


def tolerated(pod: PlacedPod, node: LiveNode) -> bool:
    """Does the pod tolerate every ``NoExecute`` taint of the node?"""
    harsh = [taint.removesuffix(":NoExecute") for taint in node.taints if taint.endswith(":NoExecute")]
    return all(any(_tolerates(toleration, taint) for toleration in pod.tolerations) for taint in harsh)


def _holds(wanted: Requirement, node: LiveNode) -> bool:
    labels: Mapping[str, str] = {"metadata.name": node.name} if wanted.of_field else node.labels
    label = labels.get(wanted.key)
    test = _OPERATORS.get(wanted.operator)
    return test is not None and test(label, wanted.values)


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
UNHEALTHY = "UnexpectedAdmissionError"
"""The kubelet's reason for a pod with a device that it cannot allocate."""
CHECKS_HEALTH = 28
"""The first minor in which every patch asks for healthy devices at admission (kubernetes #116376)."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A pod, the kubelet's reason, and whether the change causes it; otherwise any restart would reject the pod."""

    pod: str
    reason: str  # UNHEALTHY, "OutOfpods", "OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "NodeAffinity", "NodePorts", …
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
        refusals = _refusals(node, there, less.minor, then)
        anyway: Mapping[str, str] = refusals if then == now else _refusals(node, there, less.minor, now)
    except ValueError:
        return None
    return tuple(Rejected(name, reason, name not in anyway) for name, reason in refusals.items())


@dataclass(slots=True)
class _Admitted:
    """What the pods admitted so far have taken."""

    pods: int = 0
    amounts: Amounts = NOTHING
    ports: set[tuple[str, str, int]] = field(default_factory=set)


def _refusals(node: LiveNode, pods: Sequence[PlacedPod], minor: int, room: NodeRoom) -> dict[str, str]:
    admitted = _Admitted()
    refused: dict[str, str] = {}
    for pod in pods:
        asked = taken(pod, minor)
        lacking = _lacking(asked, admitted, room)
        misplaced = _misplaced(pod, node, minor, admitted)
        unhealthy = UNHEALTHY if in_init_container(pod, minor) else ""
        reason = misplaced if pod.critical and misplaced else lacking or misplaced or unhealthy
        if reason and not pod.deleting:
            refused[pod.name] = PREEMPTING if pod.critical and lacking and not misplaced else reason
        if not reason or refused.get(pod.name) == PREEMPTING:
            admitted.pods += 1
            admitted.amounts = plus(admitted.amounts, asked)
            admitted.ports.update(ports(pod.asks))
    return refused


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


def in_init_container(pod: PlacedPod, minor: int) -> bool:
    """Whether the pod has a device in an init container that ends, and a kubelet 1.``minor`` rejects it for that."""
    return minor >= CHECKS_HEALTH and any(
        ask.init and not (ask.stays and minor >= SIDECARS) and device_names(ask.requests) for ask in pod.asks
    )


def _taken(port: tuple[str, str, int], known: set[tuple[str, str, int]]) -> bool:
    address, *rest = port
    return any(
        other[1:] == tuple(rest) and (ALL_ADDRESSES in (address, other[0]) or address == other[0]) for other in known
    )


SHOWN = 3


def lost_text(lost: Sequence[Rejected]) -> str:
    """``2 pods would be rejected when they are admitted again: shop/web-1 (OutOfpods), …``"""
    by_change = [each for each in lost if each.by_change]
    anyway = [each for each in lost if not each.by_change]
    parts = []
    if by_change:
        parts.append(f"{counted(len(by_change), 'pod')} would be rejected after the change: {_pods(by_change)}")
    if anyway:
        parts.append(f"{counted(len(anyway), 'pod')} would be rejected by any restart: {_pods(anyway)}")
    return "; ".join(parts)


def _pods(lost: Sequence[Rejected]) -> str:
    return listed([f"{each.pod} ({_reason(each)})" for each in lost])


def _reason(lost: Rejected) -> str:
    if lost.reason == UNHEALTHY:
        return f"{UNHEALTHY}: an init container has a device, kubernetes#138446"
    return "other pods are killed to make room for it" if lost.reason == PREEMPTING else lost.reason


def listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
