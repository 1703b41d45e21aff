"""The diagrams of the run machine are those of the code, and each state answers everything that it can hear."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from rollout.core.run.events import Trigger
from rollout.core.run.run_moves import RUN_MOVES
from rollout.core.run.state import Phase
from rollout.core.run.transitions import Heard
from tests.core.run.drawn import CIRCUMSTANCES, DRAWN, PAGE, STATES, drawn, moves
from tests.places import ROOT


def test_the_page_has_the_diagrams_of_the_code() -> None:
    text = PAGE.read_text()
    assert all(f"<!-- drawn: {name} -->" in text for name in DRAWN)
    assert text == drawn(text), "make declared draws them anew"


def test_what_a_state_can_hear_depends_on_nothing_else() -> None:
    """So no circumstance, however rare, makes an answer impossible."""
    times = Counter((repr(node.current), heard) for (node, heard, _), _ in moves())
    assert set(times.values()) == {64 * len(CIRCUMSTANCES)}


@pytest.mark.parametrize("at", STATES, ids=repr)
def test_no_state_is_without_a_way_on_for_a_new_controller(at: object) -> None:
    assert any(node.current == at and heard == Heard(Trigger.RESUMED) for (node, heard, _), _ in moves())


def test_only_one_file_changes_the_state_of_a_node() -> None:
    """It alone writes ``current``."""
    folder = ROOT / "rollout"
    for path in folder.rglob("*.py"):
        if path == folder / "core" / "run" / "transitions.py" or "core.run" not in path.read_text():
            continue
        for each in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(each, ast.keyword) and each.arg == "current"), path
            assert not (isinstance(each, ast.Constant) and each.value == "current"), path


def test_a_run_ends_from_every_phase() -> None:
    for phase in Phase:
        reached = {phase}
        while grown := {after for before, after in RUN_MOVES if before in reached} - reached:
            reached |= grown
        assert Phase.ENDED in reached
