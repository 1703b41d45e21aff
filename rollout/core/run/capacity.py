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
from typing import assert_never

from rollout.core.model import areas
from rollout.core.model.areas import Area, limited_areas
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
class WholeWave:
    """The nodes of a wave that has a limit of its own."""

    index: int

    def __str__(self) -> str:
        return f"wave {self.index}"


Limited = Area | WholeWave
"""Nodes that share a limit."""


def areas_of(order: Order, name: str) -> tuple[Limited, ...]:
    """What a node shares a limit with others in."""
    node = order.nodes[name]
    found = limited_areas(node, order.limits)
    return (*found, WholeWave(node.wave)) if order.waves[node.wave].at_once else found


def most_of(order: Order, area: Limited) -> int:
    """How many nodes of an area we may make unavailable at once."""
    match area:
        case Area():
            return areas.most_of(order, area)
        case WholeWave():
            return order.waves[area.index].at_once
        case _:
            assert_never(area)


def who_may_go(
    order: Order, nodes: Mapping[str, NodeRecord], wanted: Iterable[str], now: float
) -> tuple[tuple[str, ...], int]:
    """``(candidates, capacity)`` for a change: the nodes of ``wanted`` in order, if their areas have room, and how many the fleet has room for.

    An area's room is its limit minus its unavailable nodes. A rack never has more in flight than its budget has left.
    """
    away = [name for name, record in nodes.items() if unavailable(record, now)]
    busy = _areas_of(order, away)
    moving = Counter(order.nodes[name].rack for name, record in nodes.items() if record.state in IN_MOTION)
    members: dict[str, list[NodeRecord]] = {}
    for name, record in nodes.items():
        members.setdefault(order.nodes[name].rack, []).append(record)

    def room(area: Limited) -> int:
        return most_of(order, area) - busy[area]

    def spare(rack: str) -> int:
        return rack_allowance(order, members[rack], len(members[rack])) - moving[rack]

    going = _cordoned_first(wanted, nodes)
    own = frozenset(name for name in going if nodes[name].cordoned)
    candidates = _take(order, going, own, room, spare)
    return candidates, max(0, order.limits.in_flight - len(away)) + len(own.intersection(candidates))


def who_may_return(
    order: Order, nodes: Mapping[str, NodeRecord], wanted: Iterable[str], now: float
) -> tuple[tuple[str, ...], int]:
    """``(candidates, capacity)`` for reverting healthy nodes.

    Areas and fleet have the limits minus the unavailable, but always at least one at a time. Broken nodes must never keep
    the rest from being reverted.
    """
    away = [name for name, record in nodes.items() if unavailable(record, now)]
    back_soon = [name for name, record in nodes.items() if mending(record, now)]
    busy, recovering = _areas_of(order, away), _areas_of(order, back_soon)

    def room(area: Limited) -> int:
        return max(most_of(order, area) - busy[area], 1 - recovering[area])

    going = _cordoned_first(wanted, nodes)
    own = frozenset(name for name in going if nodes[name].cordoned and not nodes[name].uncordons)
    candidates = _take(order, going, own, room, lambda _: len(nodes))
    fleet = max(order.limits.in_flight - len(away), 1 - len(back_soon), 0)
    return candidates, fleet + len(own.intersection(candidates))


def _cordoned_first(wanted: Iterable[str], nodes: Mapping[str, NodeRecord]) -> dict[str, None]:
    """``wanted`` in order, but nodes with a cordon of ours first."""
    return dict.fromkeys(sorted(wanted, key=lambda name: not nodes[name].cordoned))


def _areas_of(order: Order, names: Iterable[str]) -> Counter[Limited]:
    """How many of ``names`` are in each area."""
    return Counter(area for name in names for area in areas_of(order, name))


def _take(
    order: Order,
    wanted: Iterable[str],
    own: frozenset[str],
    room: Callable[[Limited], int],
    spare: Callable[[str], int],
) -> tuple[str, ...]:
    """The nodes that fit, each together with those before it. ``room`` is per area, ``spare`` is how many may still fail in a rack.

    A node with room of its ``own`` (a cordon of ours) already counts as unavailable. It takes no more room when it goes, and keeps
    its room while it may not go.
    """
    left: dict[Limited, int] = {}
    spared: dict[str, int] = {}
    taken = []
    for name in wanted:
        rack = order.nodes[name].rack
        shared = () if name in own else areas_of(order, name)
        for area in shared:
            if area not in left:
                left[area] = room(area)
        if rack not in spared:
            spared[rack] = spare(rack)
        if spared[rack] > 0 and all(left[area] > 0 for area in shared):
            taken.append(name)
            spared[rack] -= 1
            for area in shared:
                left[area] -= 1
    return tuple(taken)
