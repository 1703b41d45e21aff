"""Change windows of a few minutes: whole plays with real drivers on virtual time, also when controllers die and resume."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.run import drains
from rollout.core.run.events import WindowClosed, WindowOpened
from rollout.core.run.journal_codec import decode_event
from rollout.core.run.state import RunState
from rollout.simulator.draw import scenario
from rollout.simulator.open_minutes import OpenMinutes
from rollout.simulator.play import Play
from rollout.simulator.scenario import Fault, FaultKind

SEEDS = 60


def windows(play: Play) -> list[object]:
    """What the journal has of windows."""
    events = (decode_event(line) for lines in play.journal.lines.values() for line in lines)
    return [event for event in events if isinstance(event, WindowClosed | WindowOpened)]


def test_plays_wait_for_their_windows_and_end() -> None:
    waited = 0
    for seed in range(SEEDS):
        drawn = scenario(seed)
        if drawn.conditions:
            play = Play(drawn)
            outcome = play.run()
            assert outcome.broken == "", f"seed {seed}"
            waited += bool(windows(play))
    assert waited > SEEDS / 10


def test_a_controller_that_dies_outside_its_window_is_followed_by_one_that_waits() -> None:
    minutes = OpenMinutes(((8 * 60, 8 * 60 + 1), (8 * 60 + 10, 20 * 60)))
    faults = (Fault(FaultKind.KILLED, at=60.0, lasting=30.0),)
    play = Play(replace(scenario(8), faults=faults, conditions=(minutes,)))
    outcome = play.run()
    assert (outcome.broken, outcome.ending) == ("", "done")
    assert outcome.seconds > 600
    assert [type(event) for event in windows(play)][:2] == [WindowClosed, WindowOpened]


def test_the_law_of_windows_finds_a_machine_that_ignores_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def goes_on(state: RunState) -> bool:
        return state.phase == "running" and state.paused is None and state.wave < len(state.order.waves)

    monkeypatch.setattr(drains, "may_go_on", goes_on)
    broken = {
        Play(drawn).run().broken for seed in range(SEEDS) if (drawn := replace(scenario(seed), faults=())).conditions
    }
    assert any("window" in law for law in broken)
