"""Sequences of apply, rollback, emergency, resume and verify agree with a list of file versions: see ``rollback_model``.

``make rollback-model SEQUENCES=2000`` plays more of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.site import NAMES, SMALL
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


def test_a_rollback_of_a_killed_run_claims_no_revert_that_an_emergency_of_another_journal_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its claims are ended all the same, so that it is unfinished no more."""
    typed = at_start(0, tmp_path, monkeypatch)
    typed.write_plan_of("A", NAMES)
    killed = typed.killed("apply", "p.json", "--yes", at=4)
    changed = [name for name in NAMES if typed.outside.nodes.nodes[name].known(f"{killed}-1") is not None]
    assert changed
    typed.state = "another"
    typed.type("rollback", "--cluster", SMALL.cluster, "--emergency", "--yes")
    emergency = typed.newest()
    typed.state = "state"
    before = {name: dict(node.files) for name, node in typed.outside.nodes.nodes.items()}
    out = typed.type("rollback", killed, "--yes")
    assert "already reverted by a run of another journal on" in out
    assert f"; run {emergency} claimed it last" in out
    assert "proof: 0 of 0 nodes reverted" in out
    assert before == {name: node.files for name, node in typed.outside.nodes.nodes.items()}
    typed.apply("B", NAMES)


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
