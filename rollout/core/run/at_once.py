"""How many nodes an operator's command may run on at once: the limits of a run, without its states.

A node is *busy* from the start of its command until its answer. Never are more nodes busy than ``in_flight``, and in each
rack and zone never more than its limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rollout.core.model.areas import Area, limited, limited_areas, sizes
from rollout.core.model.inventory import Node
from rollout.core.model.playbook import Limits


@dataclass(frozen=True, slots=True)
class AtOnce:
    """The most busy nodes: ``in_flight`` in all, ``most`` of each area; ``areas`` are the areas of each node."""

    in_flight: int
    areas: Mapping[str, tuple[Area, ...]]
    most: Mapping[Area, int]


def at_once(nodes: Iterable[Node], every: Collection[Node], limits: Limits, in_flight: int | None) -> AtOnce:
    """``every`` is each node of the inventory. ``in_flight`` lowers the limit; ``None``: it stays."""
    areas = {node.name: limited_areas(node, limits) for node in nodes}
    most = {
        Area(kind, name): share.of(size) for kind, share in limited(limits) for name, size in sizes(every, kind).items()
    }
    return AtOnce(min(limits.in_flight, in_flight or limits.in_flight), areas, most)


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
