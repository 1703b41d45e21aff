"""How the fleet of today differs from the fleet of a plan. Made in ``core.plans.fleet_comparison``, used by orders and screens."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field

from rollout.core.model.areas import AreaKind, Placed, Sized, sizes
from rollout.core.model.frozen import dataclass

GONE = "gone"
"""Reference of a node of a plan that the inventory no longer lists."""

REPLACED = "replaced"
"""Reference of a node of a plan with a name that another machine has now."""

LEAVERS = frozenset({GONE, REPLACED})
"""References of nodes that left."""

IS_GONE = "the inventory no longer lists it"
IS_REPLACED = "another machine has its name now"


@dataclass(frozen=True, slots=True)
class Leaver:
    """A node of a plan with a machine that is no longer in the fleet. ``reference``: ``GONE`` or ``REPLACED``."""

    reference: str
    reason: str


@dataclass(frozen=True, slots=True)
class FieldChange:
    """``field`` of the node ``node`` was ``planned`` and is ``now``. A plan binds these fields of its nodes."""

    node: str
    field: str
    planned: str
    now: str


@dataclass(frozen=True, slots=True)
class FewerNodes:
    """Racks and zones that have fewer nodes now than planned: name → their nodes now. Limits are shares of these numbers."""

    racks: Mapping[str, int] = field(default_factory=dict)
    zones: Mapping[str, int] = field(default_factory=dict)


AS_PLANNED = FewerNodes()


@dataclass(frozen=True, slots=True)
class FleetChanges:
    """``left``: node of the plan → why it is no longer there; ``joined``: nodes that the plan's selection has now and did not have.

    ``unplanned``: nodes that the plan left out, and that are gone as well. ``sizes``: areas that have fewer nodes now.
    """

    left: Mapping[str, Leaver] = field(default_factory=dict)
    joined: tuple[str, ...] = ()
    fields: Sequence[FieldChange] = ()
    unplanned: frozenset[str] = frozenset()
    sizes: FewerNodes = AS_PLANNED


UNCHANGED = FleetChanges()


def is_their_list(names: Collection[str], listed: Collection[str]) -> bool:
    """Whether a list of nodes is of the fleet of ``names``: it has at least half of them.

    Only such a list shows that a node left. A list of another cluster, or by another selector, has none of them, or few.
    """
    return 2 * sum(name in listed for name in names) >= len(names)


def fewer(planned: Sized, present: Iterable[Placed]) -> FewerNodes:
    """The areas of a plan or an order that have fewer nodes among ``present``."""
    nodes = tuple(present)
    return FewerNodes(
        _smaller(planned.racks, sizes(nodes, AreaKind.RACK)), _smaller(planned.zones, sizes(nodes, AreaKind.ZONE))
    )


def _smaller(planned: Mapping[str, int], present: Mapping[str, int]) -> Mapping[str, int]:
    return {name: present.get(name, 0) for name, size in planned.items() if present.get(name, 0) < size}
