"""Where the nodes of an order are: their positions, and the fleet, waves, racks and zones in which they count.

It is fixed for a whole run. Position n is the n-th node of the order, which is in the order of the waves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from rollout.core.model import areas
from rollout.core.model.areas import Area, AreaKind, area_of, limited_areas
from rollout.core.model.fleet_changes import AS_PLANNED, FewerNodes
from rollout.core.model.frozen import dataclass
from rollout.core.run.state import NodeOrder, Order

FLEET = 0
"""The place of all nodes. Those of the waves, racks and zones follow."""


def place_of(wave: int) -> int:
    """The place of a wave."""
    return wave + 1


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


@dataclass(frozen=True, slots=True, eq=False)  # one value for the nodes of a spot
class Spot:
    """What nodes have in common that count in the same places: every place, those with a limit, and their rack's."""

    places: tuple[int, ...]
    limited: tuple[int, ...]
    rack: int


class OrderLayout:
    """See the module. ``fewer`` are areas with fewer nodes than ordered: limits are shares of these. ``spots`` has a spot per position; ``most`` and ``sizes`` have a limit and a number of nodes per place."""

    __slots__ = ("fewer", "most", "names", "order", "positions", "sizes", "spots", "waves")

    def __init__(self, order: Order, nodes: Iterable[str], fewer: FewerNodes = AS_PLANNED) -> None:
        self.order = order
        self.fewer = fewer
        self.names = tuple(nodes)
        self.positions: Mapping[str, int] = {name: position for position, name in enumerate(self.names)}
        places: dict[Limited, int] = {WholeWave(index): place_of(index) for index in range(len(order.waves))}
        known: dict[tuple[int, str, str], Spot] = {}
        self.spots = tuple([_spot(order, order.nodes[name], places, known) for name in self.names])
        sized = order
        if fewer != AS_PLANNED:
            sized = replace(order, racks={**order.racks, **fewer.racks}, zones={**order.zones, **fewer.zones})
        limits = (most_of(sized, place) for place in places)
        self.most = (order.limits.in_flight, *limits)
        counted = Counter(self.spots)
        self.sizes = [0] * len(self.most)
        for spot, nodes_there in counted.items():
            for place in spot.places:
                self.sizes[place] += nodes_there
        self.waves = self._waves()

    def _waves(self) -> tuple[range, ...]:
        """The positions of each wave."""
        ends, found = 0, []
        for wave in self.order.waves:
            start, ends = ends, ends + sum(name in self.positions for name in wave.nodes)
            found.append(range(start, ends))
        return tuple(found)


def _spot(order: Order, node: NodeOrder, places: dict[Limited, int], known: dict[tuple[int, str, str], Spot]) -> Spot:
    key = (node.wave, node.rack, node.zone)
    if key not in known:
        limited = tuple(places.setdefault(area, len(places) + 1) for area in areas_of(order, node.name))
        rack = places.setdefault(area_of(node, AreaKind.RACK), len(places) + 1)
        known[key] = Spot(tuple(dict.fromkeys((FLEET, place_of(node.wave), *limited, rack))), limited, rack)
    return known[key]
