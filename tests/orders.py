"""Builds orders for tests: racks and waves as a test needs them, everything else as plans have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rollout.core.model.plan import Wave
from rollout.core.model.playbook import (
    DEFAULT_BUDGETS,
    DEFAULT_PULLS,
    Budget,
    Limits,
    PullsInFlight,
    RevertScope,
    Share,
)
from rollout.core.run.capacity import nodes_to_change, nodes_to_revert
from rollout.core.run.records import Records
from rollout.core.run.state import (
    Applying,
    Armed,
    Confirmed,
    Failed,
    Goal,
    Gone,
    NodeOrder,
    NodeRecord,
    NodeState,
    Order,
    Pending,
    Refused,
    Reverted,
    Reverting,
    State,
    Unknown,
    Unreachable,
    Untouched,
)


def make_order(
    racks: Mapping[str, int],
    waves: Iterable[tuple[str, Callable[[str], bool]]] = (("all", lambda _: True),),
    *,
    goal: Goal = Goal.APPLY,
    limits: Limits | None = None,
    budgets: tuple[Budget, ...] = DEFAULT_BUDGETS,
    on_failure: RevertScope = RevertScope.NODE,
    wave_gates: bool = False,
    rehearsal: bool = False,
    hold: frozenset[str] = frozenset(),
    at_once: Mapping[str, int] | None = None,
    zone_of: Mapping[str, str] | None = None,
    pulls: PullsInFlight = DEFAULT_PULLS,
    kind_of: Callable[[str], str] = lambda _: "g1",
    drain: float = 0.0,
    drained: Callable[[str], bool] = lambda _: True,
    soak: float = 9.0,
) -> Order:
    """Racks of ``racks[name]`` nodes called ``rack-n``; each wave takes what its predicate accepts of what is left.

    ``zone_of`` says the zone of a rack, ``kind_of`` the kind of a node. ``drain``: seconds for the pods of those that are
    ``drained``.
    """
    names = {f"{rack}-{n}": rack for rack, size in racks.items() for n in range(1, size + 1)}
    left, rolled = list(names), []
    for title, accepts in waves:
        members = tuple(name for name in left if accepts(name))
        left = [name for name in left if name not in members]
        rolled.append(Wave(title, members, soak, title in hold, (at_once or {}).get(title, 0)))
    zones = {name: (zone_of or {}).get(rack, "none") for name, rack in names.items()}
    wave_of = {name: index for index, wave in enumerate(rolled) for name in wave.nodes}
    return Order(
        run="r1",
        cluster="test",
        goal=goal,
        nodes={
            name: NodeOrder(name, rack, wave_of[name], 5.0, zones[name], kind_of(name), drain if drained(name) else 0.0)
            for name, rack in names.items()
        },
        waves=tuple(rolled),
        racks=dict(racks),
        limits=limits or Limits(per_rack=Share(percent=10.0)),
        budgets=budgets,
        on_failure=on_failure,
        passes=3,
        guard=30.0,
        wave_gates=wave_gates,
        rehearsal=rehearsal,
        transactions=dict.fromkeys(names, "r0-1") if goal is Goal.REVERT else {},
        zones=Counter(zones.values()),
        pulls=pulls,
    )


Chosen = tuple[tuple[str, ...], int]
"""Candidates and capacity."""


def to_change(order: Order, nodes: Mapping[str, NodeRecord], names: Iterable[str], now: float) -> Chosen:
    """``nodes_to_change`` of nodes with these records."""
    records = Records.of(order, nodes, now)
    return nodes_to_change(records, (records.among(names),), now)


def to_revert(order: Order, nodes: Mapping[str, NodeRecord], names: Iterable[str], now: float) -> Chosen:
    """``nodes_to_revert`` of nodes with these records."""
    records = Records.of(order, nodes, now)
    return nodes_to_revert(records, records.among(names), now)


CURRENT: dict[NodeState, State] = {
    NodeState.PENDING: Pending(),
    NodeState.SKIPPED: Untouched(),
    NodeState.REFUSED: Refused(),
    NodeState.APPLYING: Applying(),
    NodeState.APPLIED: Armed(0.0),
    NodeState.CONFIRMED: Confirmed(),
    NodeState.REVERTING: Reverting(),
    NodeState.REVERTED: Reverted(),
    NodeState.FAILED: Failed(),
    NodeState.UNREACHABLE: Unreachable(),
    NodeState.UNKNOWN: Unknown(),
    NodeState.GONE: Gone(),
}
"""A state for each word."""


def in_state(state: NodeState, **fields: Any) -> NodeRecord:
    """A node in this state."""
    return NodeRecord(CURRENT[state], **fields)
