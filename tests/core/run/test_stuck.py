"""A revert that cannot complete: the node is failed and pending recovery, its guard continues, and a new controller reads it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.playbook import Cause
from rollout.core.model.snapshot import ReceiptState
from rollout.core.run.facts import unavailable
from rollout.core.run.state import Ending, Goal, NodeState
from tests.orders import in_state, make_order
from tests.plays import Play, confirmed_before


def sick_and_stuck() -> Play:
    game = Play(make_order({"a": 1, "b": 3}, budgets=()))
    game.stick("a-1")
    return game


def test_a_node_with_a_revert_that_cannot_complete_is_failed_and_pending_recovery_with_its_reason() -> None:
    game = sick_and_stuck()
    record = game.run().nodes["a-1"]
    assert (record.state, record.owed, record.reference) == (NodeState.FAILED, True, "not-restarted")


def test_its_guard_completes_it_later_and_the_next_controller_reads_that() -> None:
    game = sick_and_stuck()
    game.run()
    game.nodes["a-1"].kubelet.stays_until = 0.0
    game.crash_and_resume(3600.0)
    record = game.go_on().nodes["a-1"]
    assert [found.state for found in game.nodes["a-1"].transactions.values()] == [ReceiptState.REVERTED]
    assert (record.state, record.owed, record.cause) == (NodeState.REVERTED, False, Cause.UNHEALTHY)
    assert record.reference == "not-restarted"
    assert record.message.startswith("reverted by now; before: "), "its receipt has no reason"


def test_it_stays_pending_recovery_as_long_as_it_is_stuck() -> None:
    game = sick_and_stuck()
    game.run()
    for _ in range(3):
        game.crash_and_resume(3600.0)
        record = game.go_on().nodes["a-1"]
        assert (record.state, record.owed, record.reference) == (NodeState.FAILED, True, "not-restarted")


@pytest.mark.parametrize("stuck_for", [30.0, 600.0])
def test_a_rollback_continues_without_it_and_a_later_one_finds_it_reverted(stuck_for: float) -> None:
    game = confirmed_before(make_order({"a": 2}, goal=Goal.REVERT))
    game.nodes["a-1"].kubelet.stays_until = game.now + stuck_for
    end = game.run()
    assert end.ending is Ending.DONE
    assert {name: (record.state, record.owed) for name, record in end.nodes.items()} == {
        "a-1": (NodeState.FAILED, True),
        "a-2": (NodeState.REVERTED, False),
    }
    game.crash_and_resume(3600.0)
    assert (game.go_on().nodes["a-1"].state, game.state.nodes["a-1"].owed) == (NodeState.REVERTED, False)


def test_a_run_that_continues_without_it_keeps_its_room_free() -> None:
    """It may restart at any time, when its guard can complete its revert."""
    stuck = in_state(NodeState.FAILED, cause=Cause.UNHEALTHY, accepted=True, owed=True)
    assert unavailable(stuck, 0.0)
    assert not unavailable(replace(stuck, owed=False), 0.0)
