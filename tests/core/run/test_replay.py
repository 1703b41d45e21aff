"""Law 10: the journal is the run. A replay of its text gives the state and the commands that the controller had."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rollout.core.model.playbook import Limits, Share
from rollout.core.run.events import Answered, Event, Ticked, Trigger
from rollout.core.run.journal_codec import decode_event, decode_order, encode_order
from rollout.core.run.machine import as_journaled, is_closed, opening, replayed, step, steps
from rollout.core.run.records import Records
from rollout.core.run.state import Goal, NodeState, RunState, Verb
from rollout.core.run.state_builder import StateBuilder, judge_wave, open_wave
from rollout.core.run.transitions import IllegalMoveError
from tests.core.run.recorded.make import FILE
from tests.orders import make_order
from tests.plays import Play, confirmed_before, leave_confirmed


@pytest.mark.parametrize("goal", Goal)
def test_names_that_sort_in_another_order_replay_to_the_same_run(goal: Goal) -> None:
    """a-1, a-10, a-11, … a-2: more nodes than the rack's limit allows at once, so the order decides which nodes go."""
    order = make_order({"a": 60}, goal=goal, limits=Limits(per_rack=Share(percent=50.0), in_flight=20, pace=10.0))
    play = Play(order) if goal is Goal.APPLY else confirmed_before(order)
    end = play.run()
    assert {record.state for record in end.nodes.values()} == {
        NodeState.CONFIRMED if goal is Goal.APPLY else NodeState.REVERTED
    }
    assert play.replay() == end


def test_nodes_go_in_the_order_of_the_waves_whatever_the_order_of_the_mapping() -> None:
    order = make_order({"b": 11, "a": 2})
    again = decode_order(encode_order(order))
    assert list(again.nodes) == list(order.nodes) == list(order.waves[0].nodes)
    assert opening(again, 1, 0.0) == opening(order, 1, 0.0)


def read_later(state: RunState, at: float) -> Answered:
    return Answered(at, "a-1", state.nodes["a-1"].serial, Verb.READ, Trigger.UNTOUCHED)


def test_an_answer_made_before_a_tick_that_changed_nothing_gets_the_ticks_time() -> None:
    """Such ticks are not journaled. Without this the replay's clock would be behind the run's."""
    state, _ = opening(make_order({"a": 1}), 1, 10.0)
    answer = read_later(state, 10.4)
    ticked, _ = step(state, Ticked(10.5))
    written = as_journaled(ticked, answer)
    assert written is not None
    assert written.at == 10.5
    assert step(state, written) == step(ticked, written)
    assert step(state, answer) != step(ticked, answer), "the subject of this test"


def test_an_answer_to_a_closed_question_is_not_journaled() -> None:
    state, _ = opening(make_order({"a": 1}), 1, 10.0)
    answer = read_later(state, 10.4)
    after, _ = step(state, answer)
    assert is_closed(after.nodes[answer.node], answer)
    assert as_journaled(after, answer) is None


def test_an_answer_to_a_closed_question_in_a_journal_is_an_error_and_names_the_node() -> None:
    state, _ = opening(make_order({"a": 1}), 1, 10.0)
    answer = read_later(state, 10.4)
    after = replayed(state, (answer,))
    with pytest.raises(IllegalMoveError, match="a-1 answers read number 1, which is not outstanding"):
        replayed(after, (answer,))


def test_a_rollback_that_replays_its_journal_in_the_middle_continues_with_the_same_nodes() -> None:
    order = make_order({"a": 30}, goal=Goal.REVERT, limits=Limits(per_rack=Share(percent=20.0)))
    play = Play(order)
    leave_confirmed(play, order.nodes)
    play.run(until=lambda state: any(r.state is NodeState.REVERTED for r in state.nodes.values()))
    play.crash_and_resume()
    end = play.go_on()
    assert play.replay() == end
    assert {record.state for record in end.nodes.values()} == {NodeState.REVERTED}


@pytest.mark.parametrize("question", [open_wave, judge_wave])
def test_a_replay_has_the_state_after_a_question_to_gates_and_not_the_question(
    question: Callable[[StateBuilder], None],
) -> None:
    """The question has the names of all nodes: a replay would make it at each round of each wave."""
    state, _ = opening(make_order({"a": 3}), 1, 10.0)
    asks, replays = StateBuilder(state), StateBuilder(state, replays=True)
    question(asks)
    question(replays)
    assert len(asks.finish()[1]) == 1
    assert replays.finish() == (asks.finish()[0], ())


def recorded() -> tuple[RunState, list[Event]]:
    """The opening of the recorded run, and its events with answers to closed questions and late ones among them."""
    first, *texts, _ = FILE.read_text().splitlines()
    events: list[Event] = []
    for event in map(decode_event, texts):
        late = [Answered(event.at - 1.0, "a-1", 10_000, Verb.READ, Trigger.UNTOUCHED)]
        elsewhere: list[Event] = [Answered(event.at, "z-9", 1, Verb.READ, Trigger.UNTOUCHED), Ticked(event.at - 0.5)]
        events += [*late, event, *elsewhere]
    return opening(decode_order(first), 1, 0.0)[0], events


@pytest.mark.parametrize("together", [1, 7, 100_000])
def test_events_that_arrive_together_are_steps_one_after_the_other(together: int) -> None:
    """Each with its state before and after, its commands, and its time; the counters of each state are those of its records."""
    state, events = recorded()
    alone = state
    for at in range(0, len(events), together):
        some = list(steps(state, events[at : at + together]))
        expected = [event for event in events[at : at + together] if not is_stale(event)]
        assert len(some) == len(expected)
        for heard, (event, before, after, asked) in zip(expected, some, strict=True):
            assert event == as_journaled(alone, heard)
            assert before == alone
            alone, commands = step(alone, event)
            assert (after, asked) == (alone, commands)
            assert not records_of(after).at(after.now).differs(records_of(alone).at(after.now))
            assert not records_of(after).differs(
                Records.anew(records_of(after).layout, alone.nodes, records_of(after).clock)
            )
            state = after


def is_stale(event: Event) -> bool:
    return isinstance(event, Answered) and (event.serial == 10_000 or event.node == "z-9")


def records_of(state: RunState) -> Records:
    return Records.of(state.order, state.nodes, state.now, state.fewer)


def test_of_states_that_are_read_last_to_first_each_has_its_own_counters() -> None:
    state, events = recorded()
    every = [after for _, _, after, _ in steps(state, events)]
    nodes = [dict(after.nodes) for after in reversed(every)]
    for after in every:
        state = after
        assert dict(after.nodes) == nodes.pop()
