"""An apply that never arrived, or arrives late, is nobody's fault: the node is read, voided, and pending again."""

from __future__ import annotations

import pytest

from rollout.core.model.playbook import ALL_CAUSES, Budget, Cause, Limits, Scope, Share
from rollout.core.run.events import Trigger
from rollout.core.run.facts import IN_MOTION
from rollout.core.run.state import Ending, NodeState, RunState, Verb
from tests.orders import make_order
from tests.plays import EVER, Play

STRICT = (Budget(Scope.FLEET, ALL_CAUSES, Share(count=0)),)
"""The first charge halts."""


def strict() -> Play:
    return Play(make_order({"a": 3}, budgets=STRICT, limits=Limits(per_rack=Share(count=1))))


@pytest.mark.parametrize("times", [1, 2])
def test_a_node_whose_apply_never_arrived_is_changed_in_a_later_attempt_without_a_charge(times: int) -> None:
    play = strict()
    play.links["a-2"].lost_applies = times
    end = play.run()
    assert end.ending is Ending.DONE
    assert {record.state for record in end.nodes.values()} == {NodeState.CONFIRMED}
    assert (end.nodes["a-2"].attempt, end.nodes["a-2"].cause) == (times + 1, None)
    assert sorted(play.nodes["a-2"].voided) == [f"{play.order.run}-{attempt}" for attempt in range(1, times + 1)]


def test_a_node_whose_connection_failed_for_its_apply_alone_is_not_charged() -> None:
    play = strict()
    play.run(until=lambda s: s.nodes["a-1"].state is NodeState.CONFIRMED)
    play.words = [(0, "pause")]
    play.go_on(until=lambda s: s.paused is not None)
    play.stand_still(60.0)
    play.links["a-2"].cuts.append((0.0, play.now + 14.0))  # an attempt to connect takes 10 s: the read's succeeds
    play.words = [(0, "continue")]
    end = play.go_on()
    assert (end.ending, end.nodes["a-2"].state, end.nodes["a-2"].attempt) == (Ending.DONE, NodeState.CONFIRMED, 2)


def test_a_node_whose_apply_never_arrives_is_charged_in_the_end() -> None:
    play = strict()
    play.links["a-2"].lost_applies = 1000
    end = play.run()
    record = end.nodes["a-2"]
    assert end.ending is Ending.HALTED
    assert (record.state, record.cause, record.attempt) == (NodeState.UNREACHABLE, Cause.UNREACHABLE, 3)
    assert record.message, "it says what happened to the last one"


def test_a_lost_apply_keeps_its_room_until_the_node_was_read() -> None:
    play = strict()
    play.links["a-2"].lost_applies = 1
    play.run(until=lambda s: s.nodes["a-2"].asked is Verb.APPLY)
    play.links["a-2"].cuts.append((0.0, play.now + 22.0))
    moving: list[int] = []

    def count_what_moves(state: RunState) -> bool:
        moving.append(sum(record.state in IN_MOTION for record in state.nodes.values()))
        return False

    play.go_on(until=count_what_moves)
    assert max(moving) == 1, "the limit of the rack"
    assert play.state.ending is Ending.DONE


@pytest.mark.parametrize("late", [17.0, 20.0, 30.0, 60.0, 300.0])
def test_an_apply_that_arrives_late_changes_no_node_that_is_pending_again(late: float) -> None:
    """``Play`` stops at the restart of a pending node. The run is paused, so that the node stays pending."""
    play = strict()
    play.links["a-2"].late_applies = [late]
    play.run(until=lambda s: s.nodes["a-2"].asked is Verb.APPLY)
    play.words = [(0, "pause")]
    play.go_on(until=lambda s: s.nodes["a-2"].attempt == 2)
    play.stand_still(late)
    assert (play.state.nodes["a-2"].state, play.nodes["a-2"].restarts) == (NodeState.PENDING, [])
    play.words = [(0, "continue")]
    end = play.go_on()
    assert (end.ending, end.nodes["a-2"].state) == (Ending.DONE, NodeState.CONFIRMED)


def test_an_apply_that_arrives_before_the_read_is_found_by_it() -> None:
    play = strict()
    play.links["a-2"].late_applies = [14.0]
    end = play.run()
    assert (end.ending, end.nodes["a-2"].attempt, play.nodes["a-2"].voided) == (Ending.DONE, 1, set())


def test_a_node_that_is_untouched_and_not_voided_is_not_pending_again() -> None:
    """An agent that did not void it: it is read until that is given up."""
    play = strict()
    play.links["a-2"].lost_applies = EVER  # type: ignore[assignment] # more than any number
    unwilling = play.nodes["a-2"]
    status = unwilling.status
    unwilling.status = lambda tx, claim, *, force, void=False: status(tx, claim, force=force)  # type: ignore[method-assign]
    end = play.run()
    assert (end.nodes["a-2"].state, end.nodes["a-2"].attempt) == (NodeState.UNREACHABLE, 1)
    assert not any(getattr(event, "trigger", None) is Trigger.VOIDED for event in play.journal)
