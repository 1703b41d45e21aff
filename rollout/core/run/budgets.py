"""How many nodes may fail, by cause, and when that halts the run.

A budget of B nodes is ``Share.of`` the scope's changed nodes, at least 1. It halts the run when the B-th node of the
scope fails for one of the budget's causes. Nodes that left the fleet are not counted. Inside a rack no more nodes are in flight than the rack's budget has left,
so a rack never loses more than its budget. In a wave or the fleet, nodes that are in flight at the halt may still fail:
at most ``B - 1 + in flight``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import NO_RACK
from rollout.core.model.playbook import Budget, Cause, Scope
from rollout.core.run.facts import CHARGES, Count, NodeList, wrong
from rollout.core.run.layout import FLEET, place_of
from rollout.core.run.records import Records, positions_in
from rollout.core.run.state import NodeRecord, NodeState, Order
from rollout.core.text.terminal import counted, printable


def charged(records: Iterable[NodeRecord], budget: Budget) -> int:
    """How many of ``records`` count against ``budget``."""
    return sum(1 for record in records if wrong(record) in budget.causes)


def scope_members(order: Order, scope: Scope, wave: int) -> Mapping[str, tuple[str, ...]]:
    """The groups of nodes that a scope's budget applies to: name of the wave or rack → nodes; the fleet's name is ``""``."""
    if scope is Scope.FLEET:
        return {"": tuple(order.nodes)}
    if scope is Scope.WAVE:
        return {waved.name: waved.nodes for waved in order.waves[wave : wave + 1]}
    racks: dict[str, list[str]] = {}
    for node in order.nodes.values():
        racks.setdefault(node.rack, []).append(node.name)
    return {rack: tuple(names) for rack, names in racks.items()}


def _place_words(scope: Scope, name: str) -> str:
    """A place that a budget applies to, in a run's reason to halt: a replay of the journal must give the same words."""
    if scope is Scope.RACK:
        return _rack(name)
    return "the fleet" if scope is Scope.FLEET else f"wave {name!r}"


def rack_words(rack: str) -> str:
    """A rack, for people. Without racks in the inventory, the limits and budgets of a rack apply to all nodes together."""
    return "the fleet (one rack)" if rack == NO_RACK else _rack(rack)


def _rack(rack: str) -> str:
    """``rack 12``; ``rack12`` is not given the word rack twice."""
    return rack if rack.startswith("rack") else f"rack {rack}"


@dataclass(frozen=True, slots=True)
class Distance:
    """How far a budget is from halting the run: ``wrong`` of ``total`` nodes of the place are charged, ``limit`` halts.

    ``name`` is the wave's or the rack's; ``""``: the fleet.
    """

    scope: Scope
    name: str
    wrong: int
    limit: int
    total: int
    budget: Budget

    @property
    def left(self) -> int:
        """How many more failed nodes halt the run; 0: it halts."""
        return max(0, self.limit - self.wrong)

    @property
    def short(self) -> str:
        """``rack04 1 of 2``: how many have failed, of the number that halts the run."""
        return f"{self.place} {self.wrong} of {self.limit}"

    @property
    def place(self) -> str:
        """The place that the budget applies to."""
        words = rack_words(self.name) if self.scope is Scope.RACK else _place_words(self.scope, self.name)
        return printable(words, 60)

    def __str__(self) -> str:
        causes = "" if self.budget.causes >= frozenset(Cause) else f" ({', '.join(sorted(self.budget.causes))})"
        words = f"{self.wrong} of {counted(self.total, 'node')} of {_place_words(self.scope, self.name)} failed{causes}"
        return f"{words}; its budget is {counted(self.limit, 'node')}{self._written}"

    @property
    def _written(self) -> str:
        """The budget as the playbook has it, where that is not the limit itself."""
        share = self.budget.share
        if share.count is None:
            return f" ({share} of {self.total})"
        return "" if share.count == self.limit else f" ({share.count} in the plan)"


def distances(order: Order, nodes: Mapping[str, NodeRecord], wave: int) -> Iterator[Distance]:
    """Every budget in every place it applies to, in the order in which they halt."""
    for budget in order.budgets:
        for name, members in scope_members(order, budget.scope, wave).items():
            there = [nodes[member] for member in members if nodes[member].state is not NodeState.GONE]
            bad = charged(there, budget)
            yield Distance(budget.scope, name, bad, budget.share.of(len(there)), len(there), budget)


def nearest(order: Order, nodes: Mapping[str, NodeRecord], wave: int) -> tuple[Distance, ...]:
    """For each scope, the place nearest to halting the run; the nearest of all first."""
    best: dict[Scope, Distance] = {}
    for found in distances(order, nodes, min(wave, len(order.waves) - 1)):
        known = best.get(found.scope)
        if known is None or _nearness(found) < _nearness(known):
            best[found.scope] = found
    return tuple(sorted(best.values(), key=_nearness))


def _nearness(found: Distance) -> tuple[int, int]:
    return found.left, -found.wrong


def spent(records: Records, wave: int) -> str | None:
    """The message of the first budget that is used up, or ``None``. Called often, so it looks at counters only."""
    order = records.layout.order
    if not any(_is_spent(records, budget, wave) for budget in order.budgets):
        return None
    return next((str(found) for found in distances(order, records, wave) if not found.left), None)


def _is_spent(records: Records, budget: Budget, wave: int) -> bool:
    """Whether any place the budget applies to has as many bad nodes as the budget."""
    layout = records.layout

    def is_spent_in(place: int) -> bool:
        bad = sum(records.count(CHARGES[cause], place) for cause in budget.causes)
        return bad > 0 and bad >= budget.share.of(layout.sizes[place] - records.count(Count.GONE, place))

    match budget.scope:
        case Scope.FLEET:
            return is_spent_in(FLEET)
        case Scope.WAVE:
            return wave < len(layout.waves) and is_spent_in(place_of(wave))
        case Scope.RACK:
            suspects = positions_in(records.listed(NodeList.SUSPECT))
            return any(is_spent_in(rack) for rack in {layout.spots[at].rack for at in suspects})
        case _:
            assert_never(budget.scope)


def rack_allowance(order: Order, charged: Mapping[Cause, int], size: int) -> int:
    """How many more nodes of a rack may be in flight so that they cannot exceed its budget.

    ``size`` is the number of changed nodes in the rack, ``charged`` how many of them are charged for each cause. In-flight
    nodes are counted by the caller.
    """
    budgets = [budget for budget in order.budgets if budget.scope is Scope.RACK]
    left = [budget.share.of(size) - sum(charged[cause] for cause in budget.causes) for budget in budgets]
    return max(0, min(left)) if left else size
