"""Who may go next: the functions where a fleet is lost or kept. Pure, and short enough to be read on one screen.

A node is *unavailable* from its restart until confirmed or taken back and its settling window has passed; a node that
failed or cannot be reached stays unavailable and so reduces what is left for others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from rollout.core.budgets import rack_allowance
from rollout.core.playbook import Limits
from rollout.core.state import NodeRecord, NodeState, Order

IN_MOTION = frozenset({NodeState.APPLYING, NodeState.APPLIED, NodeState.REVERTING, NodeState.UNKNOWN})
BROKEN = frozenset({NodeState.FAILED, NodeState.UNREACHABLE})


def unavailable(record: NodeRecord, now: float) -> bool:
    """Whether pods on this node may be unserved by our doing (``accepted``: it was so before)."""
    if record.state in BROKEN:
        return not record.accepted
    return record.state in IN_MOTION or now < record.busy_until


def pace_allows(started: tuple[float, ...], limits: Limits, now: float) -> int:
    """How many restarts may start now: at most ``burst`` within any ``burst / pace`` seconds, ``burst`` one second's."""
    burst = max(1, int(limits.pace))
    return max(0, burst - sum(1 for at in started if at > now - burst / limits.pace))


def who_may_go(
    order: Order, nodes: Mapping[str, NodeRecord], wanted: Iterable[str], now: float
) -> tuple[tuple[str, ...], int]:
    """``(candidates, capacity)`` for a change: of ``wanted``, in order, those whose rack has room, and the fleet's room.

    Rack: per-rack limit less the unavailable, and never more in flight than the rack's budget has left.
    """
    busy, moving, members = _occupancy(order, nodes, now)

    def room(rack: str) -> int:
        limit = order.limits.per_rack.of(order.racks[rack]) - busy[rack]
        return min(limit, rack_allowance(order, members[rack], len(members[rack])) - moving[rack])

    return _take(order, wanted, room), max(0, order.limits.in_flight - busy.total())


def who_may_return(
    order: Order, nodes: Mapping[str, NodeRecord], wanted: Iterable[str], now: float
) -> tuple[tuple[str, ...], int]:
    """``(candidates, capacity)`` for taking a change back from healthy nodes.

    Rack and fleet: the limits less the unavailable, but always one at a time: what broke must never keep the rest
    from being taken back.
    """
    busy, moving, _ = _occupancy(order, nodes, now)

    def room(rack: str) -> int:
        return max(order.limits.per_rack.of(order.racks[rack]) - busy[rack], 1 - moving[rack])

    return _take(order, wanted, room), max(order.limits.in_flight - busy.total(), 1 - moving.total(), 0)


def _occupancy(
    order: Order, nodes: Mapping[str, NodeRecord], now: float
) -> tuple[Counter[str], Counter[str], Mapping[str, list[NodeRecord]]]:
    """Per rack: unavailable nodes, nodes in motion, and all records."""
    busy: Counter[str] = Counter()
    moving: Counter[str] = Counter()
    members: dict[str, list[NodeRecord]] = {}
    for name, record in nodes.items():
        rack = order.nodes[name].rack
        members.setdefault(rack, []).append(record)
        if unavailable(record, now):
            busy[rack] += 1
        if record.state in IN_MOTION:
            moving[rack] += 1
    return busy, moving, members


def _take(order: Order, wanted: Iterable[str], room: Callable[[str], int]) -> tuple[str, ...]:
    left: dict[str, int] = {}
    taken = []
    for name in wanted:
        rack = order.nodes[name].rack
        if rack not in left:
            left[rack] = room(rack)
        if left[rack] > 0:
            left[rack] -= 1
            taken.append(name)
    return tuple(taken)
