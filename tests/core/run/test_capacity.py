"""Which nodes may go next, as a table of named cases: the function that keeps a fleet safe."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.playbook import Budget, Cause, Limits, Scope, Share
from rollout.core.run.budgets import charged, spent
from rollout.core.run.capacity import pace_allows
from rollout.core.run.facts import wrong
from rollout.core.run.records import Records
from rollout.core.run.state import NodeRecord, NodeState, Unknown
from tests.orders import in_state, make_order, to_change, to_revert

S = NodeState


@dataclass(frozen=True)
class Case:
    """``states``: node → state (others pending); which nodes of rack a (10 nodes, 3 at once) and b (10) may go."""

    name: str
    states: dict[str, NodeRecord]
    candidates: dict[str, int]  # rack → how many
    capacity: int
    limits: Limits = field(default_factory=lambda: Limits(per_rack=Share(count=3), in_flight=8))


def at(state: NodeState, **changes: object) -> NodeRecord:
    return replace(in_state(state), **changes)  # type: ignore[arg-type]


CASES = [
    Case("nothing in flight: a rack's limit is its budget here", {}, {"a": 2, "b": 2}, 8),
    Case("one in flight takes one of both", {"a-1": at(S.APPLYING)}, {"a": 1, "b": 2}, 7),
    Case("an armed node counts until confirmed", {"a-1": at(S.APPLIED)}, {"a": 1, "b": 2}, 7),
    Case(
        "a confirmed node counts until it has settled", {"a-1": at(S.CONFIRMED, busy_until=11.0)}, {"a": 2, "b": 2}, 7
    ),
    Case("a settled node no longer counts", {"a-1": at(S.CONFIRMED, busy_until=9.0)}, {"a": 2, "b": 2}, 8),
    Case(
        "two settling and one failed leave no room",
        {
            "a-1": at(S.CONFIRMED, busy_until=11.0),
            "a-2": at(S.CONFIRMED, busy_until=11.0),
            "a-3": at(S.FAILED, cause=Cause.UNHEALTHY),
        },
        {"b": 2},
        5,
    ),
    Case(
        "a failed node spends the rack's budget",
        {"a-1": at(S.REVERTED, cause=Cause.UNHEALTHY)},
        {"a": 1, "b": 2},
        8,
    ),
    Case("an unknown node counts", {"a-1": at(S.UNKNOWN)}, {"a": 1, "b": 2}, 7),
    Case("an unreachable node stays counted", {"a-1": at(S.UNREACHABLE, cause=Cause.UNREACHABLE)}, {"a": 1, "b": 2}, 7),
    Case(
        "a node that was unreachable before the run does not count",
        {"a-1": at(S.UNREACHABLE, accepted=True)},
        {"a": 2, "b": 2},
        8,
    ),
    Case("the fleet's limit", {f"b-{n}": at(S.APPLYING) for n in range(1, 9)}, {"a": 2}, 0),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_which_nodes_may_go(case: Case) -> None:
    order = make_order({"a": 10, "b": 10}, limits=case.limits)
    nodes = {name: case.states.get(name, NodeRecord()) for name in order.nodes}
    pending = [name for name, record in nodes.items() if record.state is S.PENDING]
    candidates, capacity = to_change(order, nodes, pending, now=10.0)
    found = {rack: sum(name.startswith(rack) for name in candidates) for rack in ("a", "b")}
    assert ({rack: count for rack, count in found.items() if count}, capacity) == (case.candidates, case.capacity)


def test_broken_nodes_never_keep_the_rest_from_being_reverted() -> None:
    order = make_order({"a": 10}, limits=Limits(per_rack=Share(count=2), in_flight=2))
    nodes = {name: at(S.CONFIRMED) for name in order.nodes} | {
        f"a-{n}": at(S.FAILED, cause=Cause.UNHEALTHY) for n in (1, 2, 3)
    }
    candidates, capacity = to_revert(order, nodes, ["a-4", "a-5"], now=0.0)
    assert (candidates, capacity) == (("a-4",), 1)
    nodes["a-4"] = at(S.REVERTING)
    assert to_revert(order, nodes, ["a-5"], now=0.0) == ((), 0)


@given(
    states=st.lists(st.sampled_from(list(NodeState)), min_size=20, max_size=20),
    per_rack=st.integers(1, 10),
    in_flight=st.integers(1, 20),
)
def test_no_node_goes_beyond_the_limits(states: list[NodeState], per_rack: int, in_flight: int) -> None:
    order = make_order({"a": 10, "b": 10}, limits=Limits(per_rack=Share(count=per_rack), in_flight=in_flight))
    nodes = {name: in_state(state) for name, state in zip(order.nodes, states, strict=True)}
    pending = [name for name, record in nodes.items() if record.state is S.PENDING]
    candidates, capacity = to_change(order, nodes, pending, now=0.0)
    going = set(candidates[:capacity])
    moving = {S.APPLYING, S.APPLIED, S.REVERTING, S.UNKNOWN, S.FAILED, S.UNREACHABLE}
    for rack in ("a", "b"):
        away = sum(nodes[n].state in moving or n in going for n in nodes if n.startswith(rack))
        assert away <= per_rack or not any(n.startswith(rack) for n in going)
    assert len(going) <= in_flight


@pytest.mark.parametrize(
    ("pace", "started", "allowed"),
    [(10.0, 0, 10), (10.0, 4, 6), (10.0, 10, 0), (0.5, 0, 1), (0.5, 1, 0)],
)
def test_the_pace(pace: float, started: int, allowed: int) -> None:
    assert pace_allows((9.5,) * started, Limits(pace=pace), 10.0) == allowed


def test_a_restart_of_long_ago_no_longer_counts() -> None:
    assert pace_allows((7.9,), Limits(pace=0.5), 10.0) == 1


# ------------------------------------------------------------------------------------------------------ budgets


@given(total=st.integers(1, 5000), percent=st.floats(0.1, 100))
def test_a_share_is_rounded_down_but_never_below_one(total: int, percent: float) -> None:
    share = Share(percent=percent).of(total)
    assert share == max(1, int(total * percent / 100))


@given(bad=st.integers(0, 20), budget=st.integers(1, 20))
def test_a_budget_of_b_halts_at_the_bth_failed_node(bad: int, budget: int) -> None:
    order = make_order({"a": 20}, budgets=(Budget(Scope.FLEET, frozenset(Cause), Share(count=budget)),))
    nodes = {
        name: at(S.REVERTED, cause=Cause.UNHEALTHY) if index < bad else NodeRecord()
        for index, name in enumerate(order.nodes)
    }
    assert (spent(Records.of(order, nodes, 0.0), 0) is not None) == (bad >= budget)


def test_causes_with_their_own_budget_are_counted_apart() -> None:
    harm = Budget(Scope.FLEET, frozenset({Cause.FAILED, Cause.UNHEALTHY}), Share(count=2))
    gone = Budget(Scope.FLEET, frozenset({Cause.UNREACHABLE}), Share(count=5))
    order = make_order({"a": 20}, budgets=(harm, gone))
    nodes = dict.fromkeys(order.nodes, NodeRecord()) | {
        f"a-{n}": at(S.UNREACHABLE, cause=Cause.UNREACHABLE) for n in range(1, 5)
    }
    assert spent(Records.of(order, nodes, 0.0), 0) is None
    nodes["a-5"] = at(S.UNREACHABLE, cause=Cause.UNREACHABLE)
    message = spent(Records.of(order, nodes, 0.0), 0)
    assert message is not None
    assert message.startswith("5 of 20 nodes of the fleet failed (unreachable); its budget is 5")


def test_an_unknown_node_is_charged_once_a_read_of_it_failed() -> None:
    assert wrong(at(S.UNKNOWN)) is None
    assert wrong(at(S.UNKNOWN, current=Unknown(reads=1))) is Cause.UNREACHABLE
    assert (
        charged(
            [at(S.UNKNOWN, current=Unknown(reads=1), accepted=True)],
            Budget(Scope.RACK, frozenset(Cause), Share(count=1)),
        )
        == 0
    )


def test_a_wave_that_does_not_exist_has_no_budget() -> None:
    order = make_order({"a": 2}, budgets=(Budget(Scope.WAVE, frozenset(Cause), Share(count=1)),))
    nodes = dict.fromkeys(order.nodes, at(S.REVERTED, cause=Cause.FAILED))
    assert spent(Records.of(order, nodes, 0.0), 7) is None
    assert spent(Records.of(order, nodes, 0.0), 0) is not None


def test_a_cordoned_node_that_may_not_go_keeps_its_room() -> None:
    """Its rack's budget is used up: it waits, cordoned, and is one of the two that the fleet may have unavailable."""
    order = make_order(
        {"a": 10, "b": 10},
        limits=Limits(per_rack=Share(count=2), in_flight=2),
        budgets=(Budget(Scope.RACK, frozenset(Cause), Share(count=1)),),
    )
    nodes = dict.fromkeys(order.nodes, NodeRecord()) | {
        "a-1": at(S.PENDING, cordoned=True),
        "a-2": at(S.REVERTED, cause=Cause.UNHEALTHY),
    }
    candidates, capacity = to_change(order, nodes, [n for n in nodes if nodes[n].state is S.PENDING], now=0.0)
    assert (candidates, capacity) == (("b-1",), 1)
