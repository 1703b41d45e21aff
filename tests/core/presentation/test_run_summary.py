"""The summary of a run for versions that cannot read its events."""

from __future__ import annotations

from rollout.core.presentation.summary import reverted, run_summary
from rollout.core.run.state import Goal, NodeState, altered
from rollout.core.text.nodesets import expand
from tests.core.presentation import journals
from tests.orders import make_order
from tests.plays import confirmed_before


def test_it_has_the_end_of_the_run_and_the_state_of_every_node() -> None:
    _, play = journals.halted()
    kept = run_summary(play.state)
    assert (kept.ending, kept.exit_code, kept.ended) == ("halted", 3, play.state.now)
    assert kept.why.startswith("2 of 60 nodes of rack04 failed")
    assert kept.counter == play.state.counter
    assert {name for found in kept.nodes.values() for name in expand(found.nodes)} == set(play.state.nodes)
    for state, found in kept.nodes.items():
        there = [name for name, record in play.state.nodes.items() if record.state == NodeState(state)]
        assert (found.count, sorted(expand(found.nodes))) == (len(there), sorted(there))
    assert kept.reverted == {}, "an apply reverts no other run"


def test_it_names_the_work_that_is_left() -> None:
    _, play = journals.done(60)
    name = next(iter(play.state.nodes))
    record = altered(play.state.nodes[name], {"owed": True, "cordoned": True})
    kept = run_summary(altered(play.state, {"nodes": {**play.state.nodes, name: record}}))
    assert (kept.owed, kept.cordoned) == (name, name)


def test_a_rollback_names_the_runs_and_nodes_that_it_reverted() -> None:
    play = confirmed_before(make_order({"a": 3}, goal=Goal.REVERT))
    play.run()
    (run,) = {transaction.rpartition("-")[0] for transaction in play.order.transactions.values()}
    assert reverted(play.state) == {run: tuple(play.state.nodes)}
    assert expand(run_summary(play.state).reverted[run]) == tuple(play.state.nodes)
