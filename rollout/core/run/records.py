"""The records of all nodes as one frozen value, with the counters and lists that decisions need.

A step changes a few records of up to 100,000. The next value shares everything else with this one, and its counters and lists
are those of this one, changed for these nodes. They follow from the records alone: ``Records.of`` makes them from scratch,
and the simulator compares both after every event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from functools import cache
from itertools import chain
from typing import Any, Generic, TypeVar

from rollout.core.model.fleet_changes import AS_PLANNED, FewerNodes
from rollout.core.run.facts import COUNTS, Count, NodeList, marks
from rollout.core.run.layout import FLEET, OrderLayout
from rollout.core.run.state import NodeRecord, Order

Item = TypeVar("Item")
_CHUNK_BITS = 7
_IN_CHUNK = (1 << _CHUNK_BITS) - 1


class Chunks(Generic[Item]):
    """A sequence that never changes. A copy with other items at some positions shares all untouched chunks."""

    __slots__ = ("_chunks", "_length")

    def __init__(self, items: Iterable[Item]) -> None:
        every = list(items)
        self._length = len(every)
        size = 1 << _CHUNK_BITS
        self._chunks = [every[at : at + size] for at in range(0, len(every), size)]

    def __getitem__(self, at: int) -> Item:
        return self._chunks[at >> _CHUNK_BITS][at & _IN_CHUNK]

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(self._chunks)

    def differing(self, other: Chunks[Item]) -> Iterator[int]:
        """The positions at which the other of the same length has another object. Chunks that both share are not walked."""
        for number, (ours, theirs) in enumerate(zip(self._chunks, other._chunks, strict=True)):
            if ours is theirs:
                continue
            for at, (mine, another) in enumerate(zip(ours, theirs, strict=True), number << _CHUNK_BITS):
                if mine is not another:
                    yield at

    def replaced(self, changes: Mapping[int, Item]) -> Chunks[Item]:
        """The same with these items at these positions."""
        new: Chunks[Item] = object.__new__(Chunks)
        new._length = self._length
        before = self._chunks
        new._chunks = chunks = before.copy()
        for at, item in changes.items():
            chunk = at >> _CHUNK_BITS
            if chunks[chunk] is before[chunk]:
                chunks[chunk] = before[chunk].copy()
            chunks[chunk][at & _IN_CHUNK] = item
        return new


Counters = int
"""All counters of a place in one number, ``_WIDTH`` bits each: they are added at once."""

_WIDTH = 32
_MOST = (1 << _WIDTH) - 1

Nodes = int
"""A set of nodes: bit n is the node at position n."""

_WORD = 512


def positions_in(nodes: Nodes) -> Iterator[int]:
    """Ascending. Bits are cut out in words first, because an operation on all bits takes time for each of them."""
    base = 0
    while nodes:
        skipped = ((nodes & -nodes).bit_length() - 1) // _WORD * _WORD
        nodes >>= skipped
        base += skipped
        word = nodes & ((1 << _WORD) - 1)
        while word:
            low = word & -word
            yield base + low.bit_length() - 1
            word ^= low
        nodes >>= _WORD
        base += _WORD


class Records(Mapping[str, NodeRecord]):
    """See the module. ``clock`` is the time at which nodes count as settling.

    A value that was ``replaced`` knows its changes and the value before it until it is read: of many answers that arrive
    together, most only change a record, and the changes of all are counted and listed at once.
    """

    __slots__ = ("_counts", "_listed", "_records", "_since", "_soonest", "clock", "layout")

    def __init__(
        self,
        layout: OrderLayout,
        clock: float,
        records: Chunks[NodeRecord],
        counts: Chunks[Counters],
        listed: tuple[Nodes, ...],
        soonest: float,
    ) -> None:
        self.layout = layout
        self.clock = clock
        self._records = records
        self._counts = counts
        self._listed = listed
        self._soonest = soonest  # no node settles before
        self._since: tuple[Records, Mapping[str, NodeRecord]] | None = None  # until it is read: what it was made of

    @staticmethod
    def of(order: Order, nodes: Mapping[str, NodeRecord], now: float, fewer: FewerNodes = AS_PLANNED) -> Records:
        """From these records: the same value if it is one already, else everything from scratch."""
        if (
            isinstance(nodes, Records)
            and nodes.layout.order is order
            and nodes.clock <= now
            and (nodes.layout.fewer is fewer or nodes.layout.fewer == fewer)
        ):
            return nodes
        names = order.nodes if nodes.keys() == order.nodes.keys() else [name for name in order.nodes if name in nodes]
        return Records.anew(OrderLayout(order, names, fewer), nodes, now)

    @staticmethod
    def anew(layout: OrderLayout, nodes: Mapping[str, NodeRecord], now: float) -> Records:
        """Counted and listed from scratch."""
        records = [nodes[name] for name in layout.names]
        passes = layout.order.passes
        found = [marks(record, passes, now) for record in records]
        counts = [0] * len(layout.most)
        for (spot, mark), times in Counter(zip(layout.spots, found, strict=True)).items():
            for place in spot.places:
                counts[place] += times * _counted(mark & COUNTS)
        listed = tuple([_set_of(found, 1 << (len(Count) + each)) for each in NodeList])
        soonest = min((record.busy_until for record in records if record.busy_until > now), default=NEVER)
        return Records(layout, now, Chunks(records), Chunks(counts), listed, soonest)

    def __getattr__(self, name: str) -> Any:
        """Called for what a value does not have until it is read. Two threads may read it: both make the same."""
        if name not in _MADE_WHEN_READ:
            raise AttributeError(name)
        changes: list[Mapping[str, NodeRecord]] = []
        before: Records = self
        while (since := before._since) is not None:
            before = since[0]
            changes.append(since[1])
        made = before.counted({name: record for some in reversed(changes) for name, record in some.items()})
        for each in _MADE_WHEN_READ:
            setattr(self, each, getattr(made, each))
        self._since = None
        return getattr(self, name)

    # As a mapping, in the order of the waves.

    def __getitem__(self, name: str) -> NodeRecord:
        return self._records[self.layout.positions[name]]

    def get(self, name: str, default: Any = None) -> Any:
        at = self.layout.positions.get(name)
        return default if at is None else self._records[at]

    def __iter__(self) -> Iterator[str]:
        return iter(self.layout.names)

    def __len__(self) -> int:
        return len(self.layout.names)

    def __contains__(self, name: object) -> bool:
        return name in self.layout.positions

    def items(self) -> ItemsView[str, NodeRecord]:
        return _Items(self, self._records)

    def values(self) -> ValuesView[NodeRecord]:
        return _Values(self, self._records)

    # Counters and lists.

    def count(self, what: Count, place: int = FLEET) -> int:
        return self._counts[place] >> (_WIDTH * what) & _MOST

    def listed(self, what: NodeList) -> Nodes:
        return self._listed[what]

    def at_position(self, position: int) -> NodeRecord:
        return self._records[position]

    def of_wave(self, wave: int) -> Nodes:
        """The nodes of a wave."""
        positions = self.layout.waves[wave]
        return ((1 << len(positions)) - 1) << positions.start

    def among(self, names: Iterable[str]) -> Nodes:
        """The set of these nodes."""
        return sum(1 << self.layout.positions[name] for name in names)

    def those(self, nodes: Nodes) -> Iterator[tuple[str, NodeRecord]]:
        """The names and records of a set, in order."""
        for position in positions_in(nodes):
            yield self.layout.names[position], self._records[position]

    def changed_since(self, before: Records) -> Iterator[tuple[str, NodeRecord, NodeRecord]]:
        """The nodes with another record than in ``before``, an earlier value of the same run: name, record then, record now.

        It takes time for the nodes that changed, not for all.
        """
        for at in self._records.differing(before._records):
            yield self.layout.names[at], before._records[at], self._records[at]

    def differs(self, other: Records) -> str:
        """The first counter or list that differs, for a message; ``""``: none does."""
        for place, (every, others) in enumerate(zip(self._counts, other._counts, strict=True)):
            for what in Count if every != others else ():
                here, there = self.count(what, place), other.count(what, place)
                if here != there:
                    return f"place {place} counts {here} {what.name}, not {there}"
        for listed in NodeList:
            if wrong := self._listed[listed] ^ other._listed[listed]:
                return f"{listed.name} is wrong about {', '.join(name for name, _ in self.those(wrong))}"
        return ""

    # The next value.

    def at(self, now: float) -> Records:
        """At this time: nodes that have settled since ``clock`` no longer count as settling."""
        if now < self.clock:
            return Records.anew(self.layout, self, now)
        if now < self._soonest:
            return self
        settling = {at: self._records[at] for at in positions_in(self._listed[NodeList.SETTLING])}
        settled = {at: record for at, record in settling.items() if record.busy_until <= now}
        soonest = min((record.busy_until for at, record in settling.items() if at not in settled), default=NEVER)
        return self._marked(self._records, settled, now, soonest)

    def replaced(self, changes: Mapping[str, NodeRecord]) -> Records:
        """With these records instead: ``changes`` stays as it is."""
        new: Records = object.__new__(Records)
        new.layout, new.clock, new._since = self.layout, self.clock, (self, changes)
        return new

    def counted(self, changes: Mapping[str, NodeRecord]) -> Records:
        """The same, read at once."""
        changed, soonest = {}, self._soonest
        for name, record in changes.items():
            changed[self.layout.positions[name]] = record
            if self.clock < record.busy_until < soonest:
                soonest = record.busy_until
        return self._marked(self._records.replaced(changed), changed, self.clock, soonest)

    def _marked(
        self, records: Chunks[NodeRecord], changes: Mapping[int, NodeRecord], now: float, soonest: float
    ) -> Records:
        """``changes`` are those of ``records`` that differ, or that ``now`` makes differ."""
        if len(changes) > _MANY and len(changes) > len(self) // 4:
            return Records.anew(self.layout, dict(zip(self.layout.names, records, strict=True)), now)
        passes, listed = self.layout.order.passes, list(self._listed)
        counts: dict[int, Counters] = {}
        for at, record in changes.items():
            more, moved = _difference(marks(self._records[at], passes, self.clock), marks(record, passes, now))
            if more:
                for place in self.layout.spots[at].places:
                    counts[place] = (counts[place] if place in counts else self._counts[place]) + more
            for each in moved:
                listed[each] ^= 1 << at
        return Records(
            self.layout, now, records, self._counts.replaced(counts) if counts else self._counts, tuple(listed), soonest
        )


_MADE_WHEN_READ = ("_records", "_counts", "_listed", "_soonest")

NEVER = float("inf")
_MANY = 512
"""From this many changes on, if they are a quarter of the nodes, everything is counted from scratch."""


@cache
def _counted(found: int) -> Counters:
    """One of each ``Count`` in these marks."""
    return sum(1 << (_WIDTH * each) for each in Count if found >> each & 1)


@cache
def _difference(before: int, after: int) -> tuple[Counters, tuple[int, ...]]:
    """Of two marks of a node: what to add to the counters of its places, and each ``NodeList`` that it enters or leaves."""
    more = _counted(after & COUNTS) - _counted(before & COUNTS)
    return more, tuple(positions_in((before ^ after) >> len(Count)))


def _set_of(found: Iterable[int], bit: int) -> Nodes:
    return int("".join(["1" if mark & bit else "0" for mark in found])[::-1] or "0", 2)


class _Items(ItemsView[str, NodeRecord]):
    """Without a look-up for each name."""

    def __init__(self, mapping: Records, records: Chunks[NodeRecord]) -> None:
        super().__init__(mapping)
        self._names = mapping.layout.names
        self._records = records

    def __iter__(self) -> Iterator[tuple[str, NodeRecord]]:
        return zip(self._names, self._records, strict=True)


class _Values(ValuesView[NodeRecord]):
    def __init__(self, mapping: Records, records: Chunks[NodeRecord]) -> None:
        super().__init__(mapping)
        self._records = records

    def __iter__(self) -> Iterator[NodeRecord]:
        return iter(self._records)
