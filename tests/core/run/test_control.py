"""A run with requests from another terminal: pause, continue, abort; a wave that holds; the checks of wave gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from rollout.core.model.playbook import Budget, Cause, Limits, RevertScope, Scope, Share
from rollout.core.model.snapshot import ReceiptState
from rollout.core.model.verdict import Verdict
from rollout.core.presentation.waiting import waits_for
from rollout.core.run.commands import JudgeWave, LiftSilences, OpenWave, PutConfigMap
from rollout.core.run.events import AbortAsked, ContinueAsked, Event, InterruptAsked, PauseAsked
from rollout.core.run.soak import WATCH_EVERY
from rollout.core.run.state import Ending, Goal, NodeState, Phase, RunState, Verb
from rollout.simulator.machine import NEW, OLD
from tests.orders import make_order
from tests.plays import Play, confirmed_before, leave

pytestmark = pytest.mark.no_cover  # whole runs: a count makes them slow, and other tests count the same lines

RACKS = {"a": 20, "b": 20}
WAVES = (("canary", lambda n: n == "a-1"), ("rest", lambda _: True))
LIMITS = Limits(per_rack=Share(count=2))


def states(state: RunState) -> Counter[NodeState]:
    return Counter(record.state for record in state.nodes.values())


def pause(play: Play, request: int = 1) -> None:
    play.feed(PauseAsked(play.now, "ops@desk", "the network team asks", request))


def proceed(play: Play, request: int = 2) -> None:
    play.feed(ContinueAsked(play.now, "ops@desk", "", request))


def wait(play: Play, seconds: float) -> RunState:
    until = play.now + seconds
    return play.go_on(until=lambda _: play.now >= until, patience=seconds + 1)


def wait_a_night(play: Play) -> RunState:
    """A play with ticks when the machine needs one, and once a minute."""
    longest, play.longest = play.longest, 60.0
    state = wait(play, 8 * 3600)
    play.longest = longest
    return state


def test_a_pause_lets_nodes_in_flight_finish_and_releases_nothing() -> None:
    play = Play(make_order(RACKS, limits=LIMITS))
    play.run(until=lambda s: states(s)[NodeState.APPLYING] > 0)
    pause(play)
    wait(play, 30)
    still = states(play.state)
    assert still.keys() == {NodeState.CONFIRMED, NodeState.PENDING}
    assert states(wait(play, 300)) == still
    proceed(play)
    assert play.go_on().ending is Ending.DONE


def test_who_asked_for_a_pause_and_why_is_in_the_state() -> None:
    play = Play(make_order(RACKS))
    play.run(until=lambda s: s.phase is Phase.RUNNING)
    pause(play)
    assert play.state.paused is not None
    assert (play.state.paused.who, play.state.paused.reason) == ("ops@desk", "the network team asks")


def test_the_same_request_is_handled_once() -> None:
    play = Play(make_order(RACKS))
    play.run(until=lambda s: s.phase is Phase.RUNNING)
    pause(play, 1)
    proceed(play, 2)
    pause(play, 1)
    assert play.state.paused is None


def test_a_wave_that_holds_waits_for_continue_and_is_still_measured() -> None:
    play = Play(make_order(RACKS, WAVES, hold=frozenset({"canary"})))
    play.run(until=lambda s: s.paused is not None)
    assert play.state.paused is not None
    assert play.state.paused.held
    measured = len([ask for ask in play.asked if ask.verb is Verb.MEASURE])
    wait_a_night(play)
    assert states(play.state) == {NodeState.CONFIRMED: 1, NodeState.PENDING: 39}
    rounds = len([ask for ask in play.asked if ask.verb is Verb.MEASURE]) - measured
    assert rounds == pytest.approx(8 * 3600 / WATCH_EVERY, rel=0.1)
    proceed(play)
    assert play.go_on().ending is Ending.DONE


def test_a_canary_that_becomes_unhealthy_during_a_hold_halts_the_run() -> None:
    play = Play(make_order(RACKS, WAVES, hold=frozenset({"canary"})))
    play.fall_sick("a-1", after=3600.0)
    end = play.run(patience=8 * 3600)
    assert end.ending is Ending.HALTED
    assert end.nodes["a-1"].state is NodeState.REVERTED


def test_a_hold_survives_its_controller() -> None:
    play = Play(make_order(RACKS, WAVES, hold=frozenset({"canary"})))
    play.run(until=lambda s: s.paused is not None)
    play.crash_and_resume()
    wait(play, 600)
    assert states(play.state) == {NodeState.CONFIRMED: 1, NodeState.PENDING: 39}
    proceed(play)
    assert play.go_on().ending is Ending.DONE


@pytest.mark.parametrize(
    ("revert", "new"), [(None, 0), (RevertScope.NODE, 5), (RevertScope.WAVE, 1), (RevertScope.RUN, 0)]
)
def test_an_abort_reverts_what_was_requested(revert: RevertScope | None, new: int) -> None:
    play = Play(make_order(RACKS, WAVES, limits=LIMITS, on_failure=RevertScope.RUN))
    play.run(until=lambda s: s.wave == 1 and states(s)[NodeState.APPLYING] == 4)
    play.feed(AbortAsked(play.now, "ops@desk", "wrong value", 1, revert))
    end = play.go_on()
    assert end.ending is Ending.HALTED
    assert end.halt is not None
    assert (end.halt.reference, end.halt.message) == ("aborted", "aborted by ops@desk: wrong value")
    assert sum(node.files == NEW for node in play.nodes.values()) == new


def test_an_abort_of_a_rollback_stops_it_and_leaves_it_resumable() -> None:
    play = confirmed_before(make_order(RACKS, goal=Goal.REVERT, limits=LIMITS))
    play.run(until=lambda s: states(s)[NodeState.REVERTED] > 3)
    play.feed(AbortAsked(play.now, "ops@desk", "", 1))
    end = play.go_on()
    assert end.ending is Ending.INTERRUPTED
    play.crash_and_resume()
    assert states(play.go_on()) == {NodeState.REVERTED: 40}


def test_a_paused_run_that_is_aborted_ends() -> None:
    play = Play(make_order(RACKS, WAVES, hold=frozenset({"canary"})))
    play.run(until=lambda s: s.paused is not None)
    play.feed(AbortAsked(play.now, "ops@desk", "", 1))
    end = play.go_on()
    assert (end.ending, end.paused) == (Ending.HALTED, None)


def test_the_wave_gates_are_asked_before_each_wave_and_in_every_round_of_its_soak() -> None:
    play = Play(make_order(RACKS, WAVES, wave_gates=True))
    end = play.run()
    assert end.ending is Ending.DONE
    assert play.opened == [0, 1]
    assert play.judged == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN])
def test_a_wave_with_a_bad_or_unknown_baseline_is_not_changed(verdict: Verdict) -> None:
    play = Play(make_order(RACKS, WAVES, wave_gates=True))
    play.baseline_verdict = verdict
    end = play.run()
    assert end.halt is not None
    assert end.halt.reference == f"baseline-{verdict}"
    assert states(end) == {NodeState.PENDING: 40}


def test_a_gate_that_passes_once_and_then_fails_halts() -> None:
    play = Play(make_order(RACKS, WAVES, wave_gates=True))
    play.run(until=lambda s: s.gate_passes == 1)
    play.wave_verdict = Verdict.FAIL
    end = play.go_on()
    assert end.halt is not None
    assert end.halt.reference == "wave-gate-fail"
    assert sum(node.files == NEW for node in play.nodes.values()) <= 1


def test_silences_are_lifted_at_any_kind_of_end() -> None:
    for verdict in (Verdict.PASS, Verdict.FAIL):
        play = Play(make_order(RACKS, WAVES, wave_gates=True))
        play.silences, play.wave_verdict = ("s1",), verdict
        end = play.run()
        assert play.lifted
        assert (end.silences, play.standing) == ((), [])


# Events that may come at any moment.


@pytest.mark.parametrize("word", ["abort", "interrupt"])
def test_a_silence_set_while_the_run_is_ended_is_lifted_too(word: str) -> None:
    play = Play(make_order(RACKS, WAVES, wave_gates=True))
    play.silences = ("s",)
    play.run(until=lambda s: s.gate_asked)
    assert play.standing
    play.feed(AbortAsked(play.now, "me", "", 1) if word == "abort" else InterruptAsked(play.now))
    play.go_on()
    assert play.standing == []


def test_a_run_that_was_interrupted_is_silenced_again_and_keeps_its_first_baseline() -> None:
    play = Play(make_order(RACKS, WAVES, wave_gates=True, limits=LIMITS))
    play.silences = ("s",)
    play.run(until=lambda s: s.wave == 1 and states(s)[NodeState.CONFIRMED] > 5)
    play.feed(InterruptAsked(play.now))
    play.go_on()
    assert play.standing == []
    play.crash_and_resume()
    play.go_on(until=lambda s: s.phase is Phase.SOAKING)
    assert play.standing
    end = play.go_on()
    assert (end.ending, play.standing) == (Ending.DONE, [])
    assert play.baselines == ["before 1"] * 3 + ["before 2"] * 3


class PlayOfMemory(Play):
    """It keeps what each opening of a wave is told of an earlier baseline, and the changed nodes."""

    told: tuple[tuple[int, str], ...] = ()
    changed: tuple[tuple[tuple[str, ...], ...], ...] = ()

    def _ask_the_gates(self, command: OpenWave | JudgeWave | LiftSilences | PutConfigMap) -> Callable[[], Event]:
        if isinstance(command, OpenWave):
            self.told = (*self.told, (command.wave, command.earlier))
            self.changed = (*self.changed, command.changed)
        return super()._ask_the_gates(command)


def test_a_wave_is_opened_with_the_newest_baseline_of_the_run() -> None:
    """``nodesSteady`` of a new controller goes on with it."""
    play = PlayOfMemory(make_order(RACKS, WAVES, wave_gates=True, limits=LIMITS))
    play.run(until=lambda s: s.wave == 1 and states(s)[NodeState.CONFIRMED] > 5)
    play.crash_and_resume()
    assert play.go_on().ending is Ending.DONE
    assert play.told == ((0, ""), (1, "before 1"), (1, "before 2"))
    assert play.changed[:2] == (((), ()), (("a-1",), ()))
    assert len(play.changed[2][1]) > 5, "a new controller is told nodes that no baseline has"


def test_finishing_an_early_wave_leaves_later_passed_waves_unchanged() -> None:
    lenient = (Budget(Scope.FLEET, frozenset(Cause), Share(count=5)),)
    waves = (("canary", lambda n: n in ("a-1", "b-1")), ("rest", lambda _: True))
    play = Play(make_order(RACKS, waves, wave_gates=True, rehearsal=True, limits=LIMITS, budgets=lenient))
    play.cut_off("a-1")
    end = play.run()
    assert (end.ending, end.nodes["a-1"].owed) == (Ending.DONE, True)
    play.reconnect("a-1")
    judged, asked = len(play.judged), len(play.asked)
    play.crash_and_resume()
    end = play.go_on()
    assert (end.ending, end.nodes["a-1"].state) == (Ending.DONE, NodeState.CONFIRMED)
    assert play.judged[judged:] == [0, 0, 0], "the last wave is not soaked again"
    assert set(play.baselines[judged:]) == {"before 1"}, "a later baseline would include its own damage"
    assert not [ask for ask in play.asked[asked:] if ask.verb is Verb.REVERT], (
        "a change that the fleet already has is not rehearsed"
    )


def test_a_hold_survives_that_an_earlier_wave_is_finished_first() -> None:
    lenient = (Budget(Scope.FLEET, frozenset(Cause), Share(count=5)),)
    waves = (("canary", lambda n: n in ("a-1", "b-1")), ("first", lambda n: n == "a-2"), ("rest", lambda _: True))
    play = Play(make_order(RACKS, waves, hold=frozenset({"first"}), limits=LIMITS, budgets=lenient))
    play.cut_off("a-1")
    play.run(until=lambda s: s.paused is not None)
    play.reconnect("a-1")
    play.crash_and_resume()
    proceed(play)
    assert play.go_on().ending is Ending.DONE, "one request suffices"


def test_a_wave_that_holds_does_so_when_no_node_of_it_was_confirmed() -> None:
    play = Play(make_order(RACKS, WAVES, hold=frozenset({"canary"}), wave_gates=True, limits=LIMITS))
    play.sicken("a-1")
    assert play.run().ending is Ending.HALTED
    play.crash_and_resume()
    wait(play, 3600)
    assert play.state.paused is not None
    assert states(play.state) == {NodeState.REVERTED: 1, NodeState.PENDING: 39}
    assert play.judged == [], "nothing was changed that a gate could measure"
    proceed(play)
    assert play.go_on().ending is Ending.DONE


def test_no_wave_begins_in_a_pause_even_if_the_last_wave_confirmed_no_node() -> None:
    play = Play(make_order(RACKS, WAVES, limits=LIMITS, budgets=()))
    play.sicken("a-1")
    play.run(until=lambda s: s.nodes["a-1"].state is NodeState.APPLYING)
    pause(play)
    assert wait(play, 300).wave == 0


def test_a_node_without_enough_passes_after_a_hold_gets_a_whole_soak() -> None:
    play = Play(make_order(RACKS, WAVES, hold=frozenset({"canary"})))
    play.run(until=lambda s: s.paused is not None)
    wait_a_night(play)
    play.links["a-1"].loses = {Verb.MEASURE}
    play.go_on(until=lambda s: not s.nodes["a-1"].passes)
    proceed(play)
    assert play.go_on().ending is Ending.DONE


def test_a_paused_rollback_reverts_nothing_more() -> None:
    play = confirmed_before(make_order(RACKS, goal=Goal.REVERT, limits=LIMITS))
    play.run(until=lambda s: states(s)[NodeState.REVERTED] > 3)
    pause(play)
    wait(play, 30)
    still = states(play.state)
    assert still.keys() == {NodeState.REVERTED, NodeState.CONFIRMED}
    assert waits_for(play.state, play.now).startswith("paused by ops@desk")
    assert states(wait(play, 300)) == still
    proceed(play)
    assert states(play.go_on()) == {NodeState.REVERTED: 40}


def test_a_node_reverted_by_others_is_not_a_success() -> None:
    play = Play(make_order(RACKS, WAVES, hold=frozenset({"canary"})))
    play.run(until=lambda s: s.paused is not None)
    leave(play.nodes["a-1"], "r1-1", ReceiptState.REVERTED)  # an emergency, from another machine
    play.crash_and_resume()
    end = play.go_on()
    assert (end.ending, end.nodes["a-1"].reference) == (Ending.HALTED, "taken-back-by-others")
    assert end.nodes["a-1"].message == "the change was reverted, but not by this run"
    assert {node.files for node in play.nodes.values()} == {OLD}


def test_nodes_to_revert_stay_if_the_halt_is_accepted() -> None:
    play = Play(make_order(RACKS, WAVES, on_failure=RevertScope.RUN, limits=LIMITS))
    play.run(until=lambda s: s.wave == 1)
    play.feed(AbortAsked(play.now, "ops@desk", "", 1))
    play.cut_off("a-1")
    end = play.go_on()
    assert end.nodes["a-1"].owed
    play.reconnect("a-1")
    play.crash_and_resume()
    assert states(play.go_on()) == {NodeState.CONFIRMED: 40}


def test_an_abort_is_processed_by_the_next_controller_if_the_first_died() -> None:
    """It is the last request to the run; a resume after it continues the run."""
    play = Play(make_order(RACKS, WAVES, limits=LIMITS, on_failure=RevertScope.RUN))
    play.run(until=lambda s: s.wave == 1 and states(s)[NodeState.APPLYING] == 4)
    play.crash_and_resume()
    assert play.state.phase is Phase.OPENING
    play.feed(AbortAsked(play.now, "ops@desk", "wrong value", 1))
    assert play.go_on().ending is Ending.HALTED
    assert {node.files for node in play.nodes.values()} == {OLD}
    play.crash_and_resume()
    assert play.go_on().ending is Ending.DONE
    assert {node.files for node in play.nodes.values()} == {NEW}


def test_a_second_continue_lifts_nothing_more() -> None:
    play = Play(make_order(RACKS, WAVES, hold=frozenset({"canary", "rest"})))
    play.run(until=lambda s: s.paused is not None)
    proceed(play, 1)
    proceed(play, 2)
    play.go_on(until=lambda s: s.paused is not None)
    assert play.state.wave == 1, "the hold of the last wave"
    assert play.state.phase is Phase.SOAKING
    proceed(play, 3)
    assert play.go_on().ending is Ending.DONE
