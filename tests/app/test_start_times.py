"""A run waits for the timed conditions of its plan, of whatever kind they are."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.runs import start_apply
from rollout.app.start_times import NoStartTimes, Starts, closed_lines
from rollout.core.run.events import WindowClosed, WindowOpened
from rollout.core.run.machine import opening, step
from rollout.core.run.order import apply_order
from rollout.core.run.state import Ending, Goal, NodeState
from rollout.simulator.open_minutes import ModelTimes, OpenMinutes
from tests.app.site import ACCESS, SMALL, Site
from tests.orders import make_order

MORNING = OpenMinutes(((480, 540),))
"""From 8 to 9."""


class Wall:
    at = 7 * 3600.0

    def wall_seconds(self) -> float:
        return self.at

    def zone(self, name: str) -> tzinfo:
        raise AssertionError(name)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(SqlJournal(tmp_path))


def test_a_machine_that_cannot_evaluate_conditions_starts_nothing(site: Site) -> None:
    tools = replace(site.tools(), interrupted=lambda: site.at >= 1300)
    end = start_apply(replace(SMALL, conditions=(MORNING,)), ACCESS, tools)
    assert end.ending is Ending.INTERRUPTED
    assert {record.state for record in end.nodes.values()} == {NodeState.PENDING}
    assert end.closed is not None
    assert end.closed.why == "when changes may start is not evaluated here"
    NoStartTimes().check((MORNING,))


def test_only_changes_of_the_answer_are_told_to_the_machine() -> None:
    wall = Wall()
    starts = Starts((MORNING,), ModelTimes(wall))
    state, _ = opening(apply_order("r1", SMALL), 1, 0.0)
    (closed,) = starts.events(state, 1.0)
    assert closed == WindowClosed(1.0, "outside the minutes of the play", 8 * 3600.0)
    state, _ = step(state, closed)
    assert starts.events(state, 2.0) == ()
    wall.at = 8 * 3600.0
    assert starts.events(state, 3.0) == (WindowOpened(3.0),)
    state, _ = step(state, WindowOpened(3.0))
    assert starts.events(state, 4.0) == ()


def test_a_rollback_asks_for_no_condition() -> None:
    state, _ = opening(make_order({"a": 1}, goal=Goal.REVERT), 1, 0.0)
    assert Starts((MORNING,), ModelTimes(Wall())).events(state, 1.0) == ()
    assert closed_lines((), NoStartTimes(), "it waits") == ()
