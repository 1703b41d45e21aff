"""Which nodes may go next: the functions that keep a fleet safe. Pure, and short enough to read on one screen.

A node is *unavailable* from its restart until it is confirmed or reverted and its settle window has passed. It is also
unavailable as long as it may have a cordon of ours. A node that failed or is unreachable stays unavailable, so others
have less room. A pending node with a cordon of ours already has its room: it goes first, and keeps the room while it
waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from itertools import chain, islice

from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import Limits
from rollout.core.run.budgets import rack_allowance
from rollout.core.run.facts import CHARGES, Count, NodeList
from rollout.core.run.layout import FLEET, Spot
from rollout.core.run.records import Nodes, Records, positions_in


def pace_allows(started: tuple[float, ...], limits: Limits, now: float) -> int:
    """How many restarts may start now: at most ``burst`` within any ``burst / pace`` seconds, ``burst`` is one second's."""
    most = burst(limits)
    return max(0, most - sum(1 for at in started if at > now - most / limits.pace))


def burst(limits: Limits) -> int:
    """How many restarts may start at once: one second's, or one."""
    return max(1, int(limits.pace))


def nodes_to_change(
    records: Records, wanted: Iterable[Nodes], now: float, most: int | None = None
) -> tuple[tuple[str, ...], int]:
    """``(candidates, capacity)`` for a change: the nodes of ``wanted``, set by set, if their areas have room, and how many the fleet has room for.

    An area's room is its limit minus its unavailable nodes. A rack never has more in flight than its budget has left.
    ``most`` ends the search: with so many candidates, or as many as there is capacity for.
    """
    records = records.at(now)
    order, layout = records.layout.order, records.layout

    def room(place: int) -> int:
        return layout.most[place] - records.count(Count.UNAVAILABLE, place)

    def spare(rack: int) -> int:
        charged = {cause: records.count(count, rack) for cause, count in CHARGES.items()}
        there = layout.sizes[rack] - records.count(Count.GONE, rack)
        return rack_allowance(order, charged, there) - records.count(Count.IN_MOTION, rack)

    own = frozenset(positions_in(records.listed(NodeList.CORDONED)))
    return _Search(records, own, room, spare, most).among(wanted)


def nodes_to_revert(
    records: Records, wanted: Nodes, now: float, most: int | None = None
) -> tuple[tuple[str, ...], int]:
    """``(candidates, capacity)`` for reverting healthy nodes; ``most`` as in ``nodes_to_change``.

    Areas and fleet have the limits minus the unavailable, but always at least one at a time. Broken nodes must never keep
    the rest from being reverted.
    """
    records = records.at(now)

    def room(place: int) -> int:
        away, recovering = records.count(Count.UNAVAILABLE, place), records.count(Count.RECOVERING, place)
        return max(records.layout.most[place] - away, 1 - recovering)

    cordoned = positions_in(records.listed(NodeList.CORDONED))
    own = frozenset(at for at in cordoned if not records.at_position(at).uncordons)
    return _Search(records, own, room, lambda _: len(records), most).among((wanted,))


@dataclass(frozen=True, slots=True)
class _Search:
    """Takes the nodes that fit, each together with those before it. ``spare`` is how many may still fail in a rack.

    A node with room of its ``own`` (a cordon of ours) already counts as unavailable. It takes no more room when it goes, and keeps
    its room while it may not go. Nodes with a cordon go first.
    """

    records: Records
    own: frozenset[int]
    room: Callable[[int], int]
    spare: Callable[[int], int]
    most: int | None
    left: dict[int, int] = field(default_factory=dict)
    spared: dict[int, int] = field(default_factory=dict)

    def among(self, wanted: Iterable[Nodes]) -> tuple[tuple[str, ...], int]:
        """The names of the nodes that fit, and the fleet's capacity."""
        sets, cordoned = tuple(wanted), self.records.listed(NodeList.CORDONED)
        first = [at for nodes in sets for at in positions_in(nodes & cordoned) if self._fits(at)]
        capacity = max(self.room(FLEET), 0) + sum(at in self.own for at in first)
        free = None if self.most is None else max(0, min(self.most, capacity) - len(first))
        others = islice(self._others(nodes & ~cordoned for nodes in sets), free) if free != 0 else ()
        return tuple([self.records.layout.names[at] for at in (*first, *others)]), capacity

    def _others(self, wanted: Iterable[Nodes]) -> Iterator[int]:
        """Those that fit. Where one does not fit, no later one of the same spot does."""
        spots, full = self.records.layout.spots, set[Spot]()
        for at in chain.from_iterable(map(positions_in, wanted)):
            if spots[at] not in full:
                if self._fits(at):
                    yield at
                else:
                    full.add(spots[at])

    def _fits(self, at: int) -> bool:
        """Whether its areas have room; if so, it takes it."""
        spot = self.records.layout.spots[at]
        shared = () if at in self.own else spot.limited
        for place in shared:
            if place not in self.left:
                self.left[place] = self.room(place)
            if self.left[place] <= 0:
                return False
        if spot.rack not in self.spared:
            self.spared[spot.rack] = self.spare(spot.rack)
        if self.spared[spot.rack] <= 0:
            return False
        self.spared[spot.rack] -= 1
        for place in shared:
            self.left[place] -= 1
        return True
