"""A path on which this machine refuses what a command needs: an error that names it, and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.adapters.private_files import private_state
from rollout.cli.main import run
from rollout.errors import StateError


@pytest.mark.parametrize(
    "words",
    [
        ["regions", "certs", "/proc/rollout"],
        ["lab", "up", "--cluster", "small", "--dir", "/proc/rollout"],
        ["lab", "down", "--dir", "/proc/rollout"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_folder_that_cannot_be_made_is_named(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inventories").mkdir()
    (tmp_path / "inventories/small.yaml").write_text(
        "cluster: small\napiServer: v1.30.0\nracks: {r1: 'n[1-2]'}\nnodes: {'n[1-2]': {}}\n"
    )
    assert run(words) in (2, 5)
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "Traceback" not in said
    assert "/proc/rollout" in said


def test_a_current_folder_that_was_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(["check"]) == 2
    said = capsys.readouterr().err
    assert said == "error: the current folder was removed (change to another folder) [file-unreadable]\n"


def test_a_file_in_the_place_of_the_state_folder_is_named(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.touch()
    with pytest.raises(StateError, match="state is a link or another unexpected kind of file"):
        private_state(state)
