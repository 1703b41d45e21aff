"""Which nodes may go next: the functions that keep a fleet safe. Pure, and short enough to read on one screen.

A node is *unavailable* from its restart until it is confirmed or reverted and its settle window has passed. It is also
unavailable as long as it may have a cordon of ours. A node that failed or is unreachable stays unavailable, so others
have less room. A pending node with a cordon of ours already has its room: it goes first, and keeps the room while it
waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rollout.core.model.playbook import Limits
from rollout.core.run.budgets import rack_allowance
from rollout.core.run.state import NodeRecord, NodeState, Order

IN_MOTION = frozenset({NodeState.APPLYING, NodeState.APPLIED, NodeState.REVERTING, NodeState.UNKNOWN})
BROKEN = frozenset({NodeState.FAILED, NodeState.UNREACHABLE})


def unavailable(record: NodeRecord, now: float) -> bool:
    """Whether pods on this node may be down because of us (``accepted``: they were down before).

    A failed node that is pending recovery counts even if accepted: its guard may restart it at any time.
    """
    if record.state in BROKEN:
        may_restart = record.state is NodeState.FAILED and record.owed
        return record.cordoned or may_restart or not record.accepted
    return record.cordoned or record.state in IN_MOTION or now < record.busy_until


def mending(record: NodeRecord, now: float) -> bool:
    """Whether it is unavailable and recovers without help: not broken, and no cordon that could not be lifted."""
    held = record.cordoned and not record.uncordons
    return record.state not in BROKEN and (held or record.state in IN_MOTION or now < record.busy_until)


def pace_allows(started: tuple[float, ...], limits: Limits, now: float) -> int:
    """How many restarts may start now: at most ``burst`` within any ``burst / pace`` seconds, ``burst`` is one second's."""
    most = burst(limits)
    return max(0, most - sum(1 for at in started if at > now - most / limits.pace))


def burst(limits: Limits) -> int:
    """How many restarts may start at once: one second's, or one."""
    return max(1, int(limits.pace))


@dataclass(frozen=True, slots=True)
class Area:
    """Nodes that share a limit: a rack, a zone where zones have one, a wave that has one of its own."""

    kind: str  # "rack", "zone" or "wave"
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def areas_of(order: Order, name: str) -> tuple[Area, ...]:
    """The areas of a node; its rack first."""
    node = order.nodes[name]
    areas = [Area("rack", node.rack)]
    if order.limits.per_zone is not None:
        areas.append(Area("zone", node.zone))
    if order.waves[node.wave].at_once:
        areas.append(Area("wave", str(node.wave)))
    return tuple(areas)


def most_of(order: Order, area: Area) -> int:
    """How many nodes of an area we may make unavailable at once."""
    if area.kind == "rack":
        return order.limits.per_rack.of(order.racks[area.name])
    if area.kind == "zone" and order.limits.per_zone is not None:
        return order.limits.per_zone.of(order.zones[area.name])
    return order.waves[int(area.name)].at_once


def who_may_go(
    order: Order, nodes: Mapping[str, NodeRecord], wanted: Iterable[str], now: float
) -> tuple[tuple[str, ...], int]:
    """``(candidates, capacity)`` for a change: the nodes of ``wanted`` in order, if their areas have room, and how many the fleet has room for.

    An area's room is its limit minus its unavailable nodes. A rack never has more in flight than its budget has left.
    """
    busy = _areas_of(order, (name for name, record in nodes.items() if unavailable(record, now)))
    moving = _areas_of(order, (name for name, record in nodes.items() if record.state in IN_MOTION))
    members: dict[str, list[NodeRecord]] = {}
    for name, record in nodes.items():
        members.setdefault(order.nodes[name].rack, []).append(record)

    def room(area: Area) -> int:
        return most_of(order, area) - busy[area]

    def spare(rack: Area) -> int:
        return rack_allowance(order, members[rack.name], len(members[rack.name])) - moving[rack]

    going = _cordoned_first(wanted, nodes)
    own = frozenset(name for name in going if nodes[name].cordoned)
    candidates = _take(order, going, own, room, spare)
    return candidates, max(0, order.limits.in_flight - busy[FLEET]) + len(own.intersection(candidates))


def who_may_return(
    order: Order, nodes: Mapping[str, NodeRecord], wanted: Iterable[str], now: float
) -> tuple[tuple[str, ...], int]:
    """``(candidates, capacity)`` for reverting healthy nodes.

    Areas and fleet have the limits minus the unavailable, but always at least one at a time. Broken nodes must never keep
    the rest from being reverted.
    """
    busy = _areas_of(order, (name for name, record in nodes.items() if unavailable(record, now)))
    away = _areas_of(order, (name for name, record in nodes.items() if mending(record, now)))

    def room(area: Area) -> int:
        return max(most_of(order, area) - busy[area], 1 - away[area])

    going = _cordoned_first(wanted, nodes)
    own = frozenset(name for name in going if nodes[name].cordoned and not nodes[name].uncordons)
    candidates = _take(order, going, own, room, lambda _: len(nodes))
    fleet = max(order.limits.in_flight - busy[FLEET], 1 - away[FLEET], 0)
    return candidates, fleet + len(own.intersection(candidates))


FLEET = Area("fleet", "")


def _cordoned_first(wanted: Iterable[str], nodes: Mapping[str, NodeRecord]) -> dict[str, None]:
    """``wanted`` in order, but nodes with a cordon of ours first."""
    return dict.fromkeys(sorted(wanted, key=lambda name: not nodes[name].cordoned))


def _areas_of(order: Order, names: Iterable[str]) -> Counter[Area]:
    """How many of ``names`` are in each area, and in the fleet."""
    return Counter(area for name in names for area in (FLEET, *areas_of(order, name)))


def _take(
    order: Order,
    wanted: Iterable[str],
    own: frozenset[str],
    room: Callable[[Area], int],
    spare: Callable[[Area], int],
) -> tuple[str, ...]:
    """The nodes that fit, each together with those before it. ``room`` is per area, ``spare`` is how many may still fail in a rack.

    A node with room of its ``own`` (a cordon of ours) already counts as unavailable. It takes no more room when it goes, and keeps
    its room while it may not go.
    """
    left: dict[Area, int] = {}
    spared: dict[Area, int] = {}
    taken = []
    for name in wanted:
        rack, *others = areas_of(order, name)
        areas = () if name in own else (rack, *others)
        for area in areas:
            if area not in left:
                left[area] = room(area)
        if rack not in spared:
            spared[rack] = spare(rack)
        if spared[rack] > 0 and all(left[area] > 0 for area in areas):
            taken.append(name)
            spared[rack] -= 1
            for area in areas:
                left[area] -= 1
    return tuple(taken)
