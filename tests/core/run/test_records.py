"""Counters and lists are what the records say, after any changes and at any time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.playbook import Cause, Limits, Share
from rollout.core.run.capacity import nodes_to_change, nodes_to_revert
from rollout.core.run.facts import Count, NodeList
from rollout.core.run.laws import broken_laws
from rollout.core.run.machine import opening
from rollout.core.run.records import Chunks, Records, positions_in
from rollout.core.run.state import (
    Drained,
    Draining,
    NodeRecord,
    NodeState,
    Pending,
    Postponed,
    PostponedFor,
    Rehearsal,
    Unknown,
    Verb,
    altered,
)
from tests.orders import CURRENT, in_state, make_order

ORDER = make_order(
    {"a": 5, "b": 4, "c": 3},
    waves=(("first", lambda name: name.endswith("-1")), ("rest", lambda _: True)),
    at_once={"rest": 6},
    limits=Limits(per_rack=Share(count=2), per_zone=Share(count=4), in_flight=5),
)

WAIT = Postponed(PostponedFor.PULLS, 1.0, {PostponedFor.PULLS: 0.0})
RECORD = st.builds(
    NodeRecord,
    current=st.sampled_from(
        [*CURRENT.values(), Unknown(1), Pending(WAIT), Drained(WAIT), Draining(0.0, 1.0), Pending(None, 1.0)]
    ),
    busy_until=st.sampled_from([0.0, 3.0, 6.0]),
    asked=st.sampled_from([None, Verb.READ]),
    cause=st.sampled_from([None, *Cause]),
    reference=st.sampled_from(["", "claimed"]),
    owed=st.booleans(),
    to_revert=st.booleans(),
    accepted=st.booleans(),
    passes=st.integers(0, 3),
    rehearsal=st.sampled_from(Rehearsal),
    cordoned=st.booleans(),
    uncordons=st.integers(0, 1),
)
CHANGES = st.dictionaries(st.sampled_from(list(ORDER.nodes)), RECORD, min_size=1, max_size=4)


def from_scratch(records: Records) -> Records:
    return Records.of(ORDER, dict(records), records.clock)


@given(st.lists(st.tuples(CHANGES, st.floats(0.0, 9.0)), max_size=8))
def test_counters_and_lists_follow_every_change_and_the_clock(steps: list[tuple[dict[str, NodeRecord], float]]) -> None:
    plain = dict.fromkeys(ORDER.nodes, NodeRecord())
    found = Records.of(ORDER, plain, 0.0)
    for changes, now in steps:
        plain |= changes
        found = found.replaced(changes).at(now)
        assert found == plain
        assert list(found.items()) == list(plain.items())
        assert not found.differs(from_scratch(found))
        assert not found.differs(Records.of(ORDER, plain, now))


@given(CHANGES, st.integers(0, 6))
def test_a_search_that_ends_early_finds_the_nodes_that_a_whole_one_finds_first(
    changes: dict[str, NodeRecord], most: int
) -> None:
    found = Records.of(ORDER, dict.fromkeys(ORDER.nodes, NodeRecord()) | changes, 1.0)
    wanted = found.among(name for name, record in found.items() if record.state is NodeState.PENDING)
    searches = (
        (nodes_to_change(found, (wanted,), 1.0), nodes_to_change(found, (wanted,), 1.0, most)),
        (nodes_to_revert(found, wanted, 1.0), nodes_to_revert(found, wanted, 1.0, most)),
    )
    for (every, capacity), (first, same) in searches:
        assert first[: min(same, most)] == every[: min(capacity, most)]


def test_a_value_before_a_change_stays_as_it_was() -> None:
    before = Records.of(ORDER, dict.fromkeys(ORDER.nodes, NodeRecord()), 0.0)
    after = before.replaced({"a-2": in_state(NodeState.APPLYING)})
    assert (before["a-2"].state, after["a-2"].state) == (NodeState.PENDING, NodeState.APPLYING)
    assert (before.count(Count.IN_MOTION), after.count(Count.IN_MOTION)) == (0, 1)
    assert after.listed(NodeList.TO_RELEASE) == before.listed(NodeList.TO_RELEASE) ^ after.among(["a-2"])


def test_many_changes_at_once_are_counted_too() -> None:
    order = make_order({"a": 700})
    found = Records.of(order, dict.fromkeys(order.nodes, NodeRecord()), 0.0)
    found = found.replaced(dict.fromkeys(order.nodes, in_state(NodeState.CONFIRMED, busy_until=3.0))).at(5.0)
    assert found.count(Count.CONFIRMED) == 700
    assert not found.listed(NodeList.SETTLING)


def test_a_node_that_stays_counted_as_settling_breaks_law_10() -> None:
    state, _ = opening(ORDER, 1, 0.0)
    records = Records.of(ORDER, state.nodes, 0.0)
    late = Records.anew(records.layout, {**records, "b-2": in_state(NodeState.CONFIRMED, busy_until=9.0)}, 0.0)
    late.clock = 10.0  # it has settled by then
    assert broken_laws(altered(state, {"nodes": late}))[0].startswith("law 10: place 0 counts 1 UNAVAILABLE, not 0")


@given(st.frozensets(st.integers(0, 3000)))
def test_the_positions_of_a_set(positions: frozenset[int]) -> None:
    assert list(positions_in(sum(1 << at for at in positions))) == sorted(positions)


def test_chunks() -> None:
    numbers = Chunks(range(1000))
    other = numbers.replaced({0: -1, 1: -2, 999: -3})
    assert list(numbers) == list(range(1000))
    assert list(other) == [-1, -2, *range(2, 999), -3]
    assert len(other) == 1000
