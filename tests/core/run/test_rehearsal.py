"""The rehearsal: the first wave's nodes are reverted once for real, so that the revert is tested before it is needed."""

from __future__ import annotations

from collections import Counter

import pytest

from rollout.core.model.playbook import Limits, RevertScope, RevertTimes, Share
from rollout.core.run.events import Answered, ContinueAsked, InterruptAsked, PauseAsked
from rollout.core.run.order import measured
from rollout.core.run.state import Ending, NodeState, Phase, Rehearsal, RunState, Verb
from rollout.simulator.machine import NEW, OLD
from tests.orders import make_order
from tests.plays import Play

pytestmark = pytest.mark.no_cover  # whole runs: a count makes them slow, and other tests count the same lines

RACKS = {"a": 20, "b": 20}
WAVES = (("canary", lambda n: n in ("a-1", "b-1")), ("rest", lambda _: True))
CANARIES = ("a-1", "b-1")


def rehearsed(on_failure: RevertScope = RevertScope.NODE) -> Play:
    limits = Limits(per_rack=Share(percent=10.0))
    return Play(make_order(RACKS, WAVES, rehearsal=True, on_failure=on_failure, limits=limits))


def verbs(play: Play, node: str) -> list[Verb]:
    return [ask.verb for ask in play.asked if ask.node == node and ask.verb in (Verb.APPLY, Verb.CONFIRM, Verb.REVERT)]


def took(play: Play, verb: Verb) -> dict[str, float]:
    """The last time that each node reported."""
    return {event.node: event.seconds for event in play.journal if isinstance(event, Answered) and event.verb is verb}


def on_its_way_back(state: RunState) -> bool:
    return state.nodes["a-1"].state is NodeState.REVERTING


def test_each_canary_is_changed_reverted_and_changed_again_and_no_other_node_is() -> None:
    play = rehearsed()
    end = play.run()
    assert end.ending is Ending.DONE
    there_and_back = [Verb.APPLY, Verb.CONFIRM, Verb.REVERT, Verb.APPLY, Verb.CONFIRM]
    assert [verbs(play, name) for name in CANARIES] == [there_and_back, there_and_back]
    assert all(verbs(play, name) == [Verb.APPLY, Verb.CONFIRM] for name in play.nodes if name not in CANARIES)
    assert {node.files for node in play.nodes.values()} == {NEW}
    assert Counter(record.rehearsal for record in end.nodes.values()) == {Rehearsal.NONE: 38, Rehearsal.DONE: 2}


def test_the_first_soak_begins_after_the_rehearsal() -> None:
    play = rehearsed()
    play.run(until=lambda s: s.phase is Phase.SOAKING)
    assert all(play.state.nodes[name].rehearsal is Rehearsal.DONE for name in CANARIES)
    assert all(play.nodes[name].files == NEW for name in CANARIES)


def test_the_times_of_apply_and_revert_are_recorded() -> None:
    play = rehearsed()
    end = play.run()
    applied, reverted = took(play, Verb.APPLY), took(play, Verb.REVERT)
    assert reverted.keys() == set(CANARIES)
    assert {name: end.nodes[name].revert_seconds for name in CANARIES} == reverted
    assert {name: record.apply_seconds for name, record in end.nodes.items()} == applied
    slowest = RevertTimes(play.order.run, len(CANARIES), max(applied.values()), max(reverted.values()))
    assert measured(end) == slowest


def test_a_run_without_a_rehearsal_or_revert_has_measured_no_revert_time() -> None:
    assert measured(Play(make_order(RACKS, WAVES)).run()) is None


def test_a_canary_that_is_unhealthy_with_its_old_files_fails_the_rehearsal_and_halts() -> None:
    play = rehearsed(RevertScope.RUN)
    play.sicken("b-1", with_files=frozenset({OLD}))
    end = play.run()
    assert end.ending is Ending.HALTED
    assert end.nodes["b-1"].state is NodeState.FAILED
    assert {node.files for node in play.nodes.values()} == {OLD}
    assert [name for name in play.nodes if verbs(play, name)] == list(CANARIES)


def test_the_next_controller_finishes_a_rehearsal_after_the_first_died() -> None:
    play = rehearsed()
    play.run(until=on_its_way_back)
    play.crash_and_resume()
    end = play.go_on()
    assert end.ending is Ending.DONE
    assert {node.files for node in play.nodes.values()} == {NEW}
    assert all(end.nodes[name].rehearsal is Rehearsal.DONE for name in CANARIES)


def test_a_rehearsal_is_completed_after_its_agent_died_in_the_revert() -> None:
    play = rehearsed()
    play.kill_reverts("a-1", 1)
    end = play.run()
    assert end.ending is Ending.DONE
    assert {node.files for node in play.nodes.values()} == {NEW}


def test_an_interrupted_rehearsal_is_repeated_when_the_run_is_resumed() -> None:
    play = rehearsed()
    play.run(until=on_its_way_back)
    play.feed(InterruptAsked(play.now))
    stopped = play.go_on()
    assert stopped.ending is Ending.INTERRUPTED
    assert play.nodes["a-1"].files == OLD
    play.crash_and_resume()
    end = play.go_on()
    assert end.ending is Ending.DONE
    assert {node.files for node in play.nodes.values()} == {NEW}


@pytest.mark.parametrize("scope", list(RevertScope))
def test_a_halt_in_the_rehearsal_leaves_no_node_half_reverted(scope: RevertScope) -> None:
    play = rehearsed(scope)
    play.fall_sick("b-1", after=2.0)
    end = play.run()
    assert end.ending is Ending.HALTED
    for name in CANARIES:
        kept = end.nodes[name].state is NodeState.CONFIRMED
        assert play.nodes[name].files == (NEW if kept else OLD)
        assert end.nodes[name].state in (NodeState.CONFIRMED, NodeState.REVERTED)


def test_a_rehearsal_does_not_begin_in_a_pause() -> None:
    play = rehearsed()
    play.run(until=lambda s: s.nodes["a-1"].state is NodeState.APPLIED)
    play.feed(PauseAsked(play.now, "me", "", 1))
    until = play.now + 300
    play.go_on(until=lambda _: play.now >= until)
    assert [play.nodes[name].files for name in CANARIES] == [NEW, NEW]
    play.feed(ContinueAsked(play.now, "me", "", 2))
    end = play.go_on()
    assert end.ending is Ending.DONE
    assert all(end.nodes[name].rehearsal is Rehearsal.DONE for name in CANARIES)


def test_a_rehearsal_keeps_the_limits_that_a_real_revert_may_exceed() -> None:
    """A rack with a limit of one, and one is unavailable: its other canary is not restarted for a rehearsal."""
    limits = Limits(per_rack=Share(count=1))
    waves = (("canary", lambda n: n in ("a-1", "a-2")), ("rest", lambda _: True))
    play = Play(make_order(RACKS, waves, rehearsal=True, limits=limits, budgets=()))
    play.run(until=lambda s: s.nodes["a-2"].state is NodeState.CONFIRMED)
    play.cut_off("a-1")
    play.feed(InterruptAsked(play.now))
    play.go_on()
    play.crash_and_resume()
    end = play.go_on()
    assert end.halt is not None
    assert end.halt.reference == "no-room-left"
    assert Verb.REVERT not in verbs(play, "a-2")


def test_a_canary_that_lost_its_receipts_in_the_revert_is_rehearsed_again() -> None:
    play = rehearsed()
    play.run(until=on_its_way_back)
    play.crash(away=60.0)
    assert play.nodes["a-1"].files == OLD
    play.nodes["a-1"].transactions.clear()
    play.resume()
    end = play.go_on()
    assert end.ending is Ending.DONE
    assert end.nodes["a-1"].rehearsal is Rehearsal.DONE
