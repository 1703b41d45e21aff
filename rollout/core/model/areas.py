"""Racks and zones: the areas of a fleet. Each node is in one area of either kind, and either kind may have a limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Protocol, assert_never

from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import Limits, Share


class AreaKind(StrEnum):
    """In the order in which limits are shown."""

    RACK = "rack"
    ZONE = "zone"


_KINDS = tuple(AreaKind)


class Placed(Protocol):
    """A node of an inventory, a plan or an order."""

    @property
    def rack(self) -> str: ...

    @property
    def zone(self) -> str: ...


class Sized(Protocol):
    """A plan or an order: the areas of each kind with their nodes in the inventory, and the limits."""

    @property
    def racks(self) -> Mapping[str, int]: ...

    @property
    def zones(self) -> Mapping[str, int]: ...

    @property
    def limits(self) -> Limits: ...


@dataclass(frozen=True, slots=True)
class Area:
    """One rack or one zone."""

    kind: AreaKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def area_of(node: Placed, kind: AreaKind) -> Area:
    """The rack or the zone of a node."""
    return Area(kind, _name(node, kind))


def _name(node: Placed, kind: AreaKind) -> str:
    match kind:
        case AreaKind.RACK:
            return node.rack
        case AreaKind.ZONE:
            return node.zone
        case _:
            assert_never(kind)


def share_of(limits: Limits, kind: AreaKind) -> Share | None:
    """The share of an area of this kind that may be unavailable at once; ``None``: no limit."""
    match kind:
        case AreaKind.RACK:
            return limits.per_rack
        case AreaKind.ZONE:
            return limits.per_zone
        case _:
            assert_never(kind)


def size_of(fleet: Sized, area: Area) -> int:
    """The nodes of an area in the inventory."""
    match area.kind:
        case AreaKind.RACK:
            return fleet.racks[area.name]
        case AreaKind.ZONE:
            return fleet.zones[area.name]
        case _:
            assert_never(area.kind)


def limited(limits: Limits) -> Iterator[tuple[AreaKind, Share]]:
    """The kinds of areas that have a limit."""
    for kind in _KINDS:
        share = share_of(limits, kind)
        if share is not None:
            yield kind, share


def limited_areas(node: Placed, limits: Limits) -> tuple[Area, ...]:
    """The areas of a node that have a limit."""
    return tuple([area_of(node, kind) for kind in _KINDS if share_of(limits, kind) is not None])


def most_of(fleet: Sized, area: Area) -> int:
    """How many nodes of an area may be unavailable at once: all of them without a limit."""
    share, size = share_of(fleet.limits, area.kind), size_of(fleet, area)
    return size if share is None else share.of(size)


def sizes(nodes: Iterable[Placed], kind: AreaKind) -> Mapping[str, int]:
    """The name of each area of this kind → how many of ``nodes`` are in it."""
    return Counter([_name(node, kind) for node in nodes])


def rounds(nodes: Iterable[Placed], fleet: Sized) -> int:
    """How many rounds of the most nodes at once these nodes take, by the area that takes longest."""
    placed = tuple(nodes)
    counts = {
        Area(kind, name): count for kind, _ in limited(fleet.limits) for name, count in sizes(placed, kind).items()
    }
    return max((-(-count // most_of(fleet, area)) for area, count in counts.items()), default=0)
