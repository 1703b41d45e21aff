"""Sequences of apply, rollback, emergency, resume and verify agree with a list of file versions: see ``rollback_model``.

``make rollback-model SEQUENCES=2000`` plays more of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.rollback_model import main, play, play_with_another_journal

pytestmark = pytest.mark.drawn(6)


@pytest.mark.parametrize("seed", range(100))
def test_what_is_printed_and_what_nodes_hold_agree_with_the_list_of_versions(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert play(seed, tmp_path, monkeypatch) > 0


@pytest.mark.parametrize("seed", range(100))
def test_the_receipts_of_a_node_count_more_than_a_journal_that_has_missed_an_emergency(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert play_with_another_journal(seed, tmp_path, monkeypatch) > 0


def test_the_number_of_sequences_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1", "7"]) == 0
    assert capsys.readouterr().out.startswith("1 sequences, ")
