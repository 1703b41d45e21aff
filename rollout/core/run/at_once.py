"""How many nodes an operator's command may run on at once: the limits of a run, without its states.

A node is *busy* from the start of its command until its answer. Never are more nodes busy than ``in_flight``, and in each
rack and zone never more than its limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rollout.core.model.inventory import Node
from rollout.core.model.playbook import Limits
from rollout.core.run.capacity import Area


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The most busy nodes: ``in_flight`` in all, ``most`` of each area; ``areas`` are the areas of each node."""

    in_flight: int
    areas: Mapping[str, tuple[Area, ...]]
    most: Mapping[Area, int]


def at_once(
    nodes: Collection[Node], racks: Mapping[str, int], zones: Mapping[str, int], limits: Limits, in_flight: int | None
) -> AtOnce:
    """``racks`` and ``zones`` are the sizes in the inventory. ``in_flight`` lowers the limit; ``None``: it stays."""
    areas = {node.name: _areas(node, limits) for node in nodes}
    most = {Area("rack", rack): limits.per_rack.of(size) for rack, size in racks.items()}
    if limits.per_zone is not None:
        most |= {Area("zone", zone): limits.per_zone.of(size) for zone, size in zones.items()}
    return AtOnce(min(limits.in_flight, in_flight or limits.in_flight), areas, most)


def _areas(node: Node, limits: Limits) -> tuple[Area, ...]:
    rack = Area("rack", node.rack)
    return (rack,) if limits.per_zone is None else (rack, Area("zone", node.zone))


def may_start(bounds: AtOnce, waiting: Sequence[str], busy: Collection[str]) -> tuple[str, ...]:
    """The nodes of ``waiting``, in their order, that may start while ``busy`` nodes have not answered."""
    taken = Counter(area for name in busy for area in bounds.areas[name])
    free = bounds.in_flight - len(busy)
    going: list[str] = []
    for name in waiting:
        if len(going) >= free:
            break
        areas = bounds.areas[name]
        if all(taken[area] < bounds.most[area] for area in areas):
            going.append(name)
            taken.update(areas)
    return tuple(going)
