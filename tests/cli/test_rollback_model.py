"""Sequences of apply, rollback, emergency, resume and verify agree with a list of file versions: see ``rollback_model``.

``make rollback-model SEQUENCES=2000`` plays more of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.site import NAMES
from tests.cli.rollback_model import at_start, main, play, play_with_another_journal


@pytest.mark.drawn(6)
@pytest.mark.parametrize("seed", range(100))
def test_what_is_printed_and_what_nodes_hold_agree_with_the_list_of_versions(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert play(seed, tmp_path, monkeypatch) > 0


@pytest.mark.drawn(6)
@pytest.mark.parametrize("seed", range(100))
def test_the_receipts_of_a_node_count_more_than_a_journal_that_has_missed_an_emergency(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert play_with_another_journal(seed, tmp_path, monkeypatch) > 0


def test_below_newer_runs_the_newest_of_them_is_proposed_or_what_helps_where_it_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = at_start(0, tmp_path, monkeypatch)
    typed.keep = 9
    for kind in "AAC":
        typed.apply(kind, NAMES)
    oldest, middle, newest = typed.runs
    below = f"newer runs changed its files; first `rollout rollback {newest}`"
    assert below in typed.type("rollback", oldest, "--yes", code=4)
    assert below in typed.type("rollback", middle, "--yes", code=4)
    typed.carry_out_proposals()
    for run in (middle, newest):
        typed.type("rollback", run, "--force", "--yes")
        for node in typed.known.values():
            step = node.of(run)
            assert step is not None
            node.take_off(step, typed.newest())
    stuck = f"newer runs changed its files, and run {middle} cannot be rolled back there; only a new plan, or --force, can change them"
    assert stuck in typed.type("rollback", oldest, "--yes", code=4)
    assert "written again" in typed.type("rollback", middle, "--yes", code=4)
    assert typed.proposed == set()
    for run in typed.runs:
        typed.report(run)
    assert "proof: 3 of 3 nodes reverted" in typed.type("rollback", oldest, "--force", "--yes")


def test_the_number_of_sequences_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1", "7"]) == 0
    assert capsys.readouterr().out.startswith("1 sequences, ")
