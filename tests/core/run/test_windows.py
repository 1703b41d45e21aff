"""A run with a change window that closes and opens: nothing starts outside it, nodes in flight finish, the rest goes on by itself."""

from __future__ import annotations

from collections import Counter

import pytest

from rollout.core.model.playbook import Limits, RevertScope, Share
from rollout.core.model.snapshot import ReceiptState
from rollout.core.model.verdict import Verdict
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import summary_lines
from rollout.core.presentation.waiting import waits_for
from rollout.core.run.events import ContinueAsked, InterruptAsked, PauseAsked, WindowClosed, WindowOpened
from rollout.core.run.facts import IN_MOTION
from rollout.core.run.state import Drained, Draining, Ending, Goal, NodeState, Phase, RunState
from rollout.simulator.machine import NEW
from tests.orders import make_order
from tests.plays import EVER, Play, confirmed_before

pytestmark = pytest.mark.no_cover  # whole runs: a count makes them slow, and other tests count the same lines

RACKS = {"a": 20, "b": 20}
WAVES = (("canary", lambda n: n == "a-1"), ("rest", lambda _: True))
LIMITS = Limits(per_rack=Share(count=2))
WHY = "playbooks/p.yaml allows no change now; the next window opens Wed 2026-11-25 22:00 (Europe/Zurich)"


def states(state: RunState) -> Counter[NodeState]:
    return Counter(record.state for record in state.nodes.values())


def in_flight(state: RunState) -> bool:
    return any(record.state in IN_MOTION for record in state.nodes.values())


def shown(play: Play) -> list[str]:
    return list(summary_lines(summarize(play.state)))


def close(play: Play, opens: float | None = 1_800_072_000.0) -> None:
    play.feed(WindowClosed(play.now, WHY, opens))


def open_again(play: Play) -> None:
    play.feed(WindowOpened(play.now))


def wait(play: Play, seconds: float) -> RunState:
    until, longest = play.now + seconds, play.longest
    play.longest = max(longest, seconds / 500)
    found = play.go_on(until=lambda _: play.now >= until, patience=seconds + 60)
    play.longest = longest
    return found


def test_a_window_that_closes_in_the_middle_of_a_wave() -> None:
    play = Play(make_order(RACKS, WAVES, limits=LIMITS))
    play.run(until=lambda s: s.wave == 1 and states(s)[NodeState.APPLYING] > 1)
    close(play)
    wait(play, 60)
    still = states(play.state)
    assert still.keys() == {NodeState.CONFIRMED, NodeState.PENDING}, "nodes in flight have finished"
    assert states(wait(play, 12 * 3600)) == still
    open_again(play)
    end = play.go_on()
    assert (end.ending, states(end)) == (Ending.DONE, {NodeState.CONFIRMED: 40})


def test_no_wave_begins_before_the_window_opens() -> None:
    play = Play(make_order(RACKS, WAVES, wave_gates=True))
    play.run(until=lambda s: s.phase is Phase.OPENING)
    close(play)
    wait(play, 3600)
    assert (play.opened, states(play.state)) == ([], {NodeState.PENDING: 40})
    open_again(play)
    play.go_on(until=lambda s: s.phase is Phase.SOAKING)
    close(play)
    state = wait(play, 3600)
    assert (state.phase, state.wave, play.opened) == (Phase.SOAKING, 0, [0])
    assert len(play.judged) > state.order.passes, "the gates of the wave that has passed are still checked"
    open_again(play)
    assert play.go_on().ending is Ending.DONE


def test_a_wave_under_way_is_opened_again_when_its_window_is() -> None:
    """Its silences have ended over the day, and its gates must pass before it goes on."""
    play = Play(make_order(RACKS, wave_gates=True, limits=LIMITS))
    play.run(until=lambda s: states(s)[NodeState.CONFIRMED] > 1)
    close(play)
    wait(play, 3600)
    play.baseline_verdict = Verdict.FAIL
    open_again(play)
    changed = states(play.state)[NodeState.CONFIRMED]
    end = play.go_on()
    assert (end.halt and end.halt.reference, play.opened) == ("baseline-fail", [0, 0])
    assert states(end)[NodeState.CONFIRMED] <= changed


def test_continue_lifts_a_pause_and_not_the_window() -> None:
    play = Play(make_order(RACKS, limits=LIMITS))
    play.run(until=lambda s: s.phase is Phase.RUNNING)
    close(play)
    play.feed(PauseAsked(play.now, "ops@desk", "lunch", 1))
    play.feed(ContinueAsked(play.now, "ops@desk", "", 2))
    assert play.state.paused is None
    assert play.state.closed is not None
    before = states(wait(play, 30))
    assert states(wait(play, 600)) == before
    play.feed(PauseAsked(play.now, "ops@desk", "", 3))
    open_again(play)
    assert states(wait(play, 600)) == before, "it is still paused"


def test_a_halt_reverts_outside_the_window() -> None:
    play = Play(make_order(RACKS, WAVES, on_failure=RevertScope.RUN, wave_gates=True))
    play.run(until=lambda s: s.wave == 1 and s.phase is Phase.SOAKING)
    close(play)
    play.wave_verdict = Verdict.FAIL
    end = play.go_on()
    assert (end.ending, states(end), end.closed) == (Ending.HALTED, {NodeState.REVERTED: 40}, None)


def test_a_rollback_takes_no_notice_of_windows() -> None:
    order = make_order(RACKS, goal=Goal.REVERT)
    play = confirmed_before(order)
    play.run(until=lambda s: s.phase is Phase.OPENING)
    close(play)
    assert play.state.closed is None
    assert states(play.go_on()) == {NodeState.REVERTED: 40}


@pytest.mark.parametrize("seconds", [1.0, 5.0, 30.0, 90.0])
def test_a_controller_that_resumes_outside_the_window_starts_nothing(seconds: float) -> None:
    play = Play(make_order(RACKS, limits=LIMITS))
    play.run(until=lambda s: states(s)[NodeState.APPLYING] > 1)
    wait(play, seconds)
    close(play)
    play.crash_and_resume(away=45)
    state = wait(play, 3600)
    assert state.closed is not None
    assert not in_flight(state)
    open_again(play)
    assert play.go_on().ending is Ending.DONE
    assert {node.files for node in play.nodes.values()} == {NEW}


def test_the_rehearsal_waits_for_the_window() -> None:
    play = Play(make_order(RACKS, WAVES, rehearsal=True))
    play.run(until=lambda s: states(s)[NodeState.APPLYING] > 0)
    close(play)
    state = wait(play, 3600)
    assert states(state) == {NodeState.CONFIRMED: 1, NodeState.PENDING: 39}
    open_again(play)
    end = play.go_on()
    assert end.ending is Ending.DONE
    assert any(found.state is ReceiptState.REVERTED for found in play.nodes["a-1"].transactions.values())


def test_a_drained_node_is_freed_when_its_window_closes() -> None:
    play = Play(make_order({"a": 3}, drain=600.0))
    for node in play.nodes.values():
        node.evictions_from = EVER
    play.run(until=lambda s: any(isinstance(record.current, Draining | Drained) for record in s.nodes.values()))
    close(play)
    state = wait(play, 600)
    assert not any(record.cordoned for record in state.nodes.values())
    assert states(state) == {NodeState.PENDING: 3}


def test_status_and_watch_say_that_the_window_is_closed_and_when_it_opens() -> None:
    play = Play(make_order(RACKS, limits=LIMITS))
    play.run(until=lambda s: s.phase is Phase.RUNNING)
    close(play)
    since = play.state.now
    wait(play, 600)
    assert waits_for(play.state, play.now) == f"change window closed: {WHY}; the run goes on by itself"
    assert f"  waits: the change window is closed: {WHY}; it goes on by itself while its controller lives" in shown(
        play
    )
    close(play, None)  # the calendar was written anew
    assert waits_for(play.state, play.now) == f"change window closed: {WHY}; `rollout abort r1` ends the run"
    assert f"  waits: the change window is closed: {WHY}; `rollout abort r1` ends it" in shown(play)
    found = summarize(play.state).window
    assert found is not None
    assert (found.why, found.at, found.opens) == (WHY, since, None)


@pytest.mark.parametrize("opens", [None, 1_800_072_000.0])
def test_a_run_that_was_stopped_outside_its_window_does_not_go_on_by_itself(opens: float | None) -> None:
    play = Play(make_order(RACKS, limits=LIMITS))
    play.run(until=lambda s: s.phase is Phase.RUNNING)
    close(play, opens)
    play.feed(PauseAsked(play.now, "ops", "lunch", 1))
    play.feed(InterruptAsked(play.now))
    assert play.go_on().ending is Ending.INTERRUPTED
    assert [line for line in shown(play) if "waits" in line] == [
        "  waits after a resume: paused by ops: lunch; `rollout resume r1 --promote` lifts it",
        f"  waits after a resume: the change window is closed: {WHY}",
    ]


def test_a_window_that_opens_without_having_closed_changes_nothing() -> None:
    play = Play(make_order({"a": 2}))
    play.run(until=lambda s: s.phase is Phase.RUNNING)
    before = play.state
    open_again(play)
    assert play.state.phase is before.phase
    assert play.go_on().ending is Ending.DONE
