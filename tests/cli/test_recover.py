"""``recover`` and its old name ``catch-up``."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.cli.main import cli, run


def test_the_old_name_calls_the_same_command() -> None:
    recover = cli.get_command(None, "recover")  # type: ignore[arg-type]  # the table does not use the context
    assert recover is not None
    assert cli.get_command(None, "catch-up") is recover  # type: ignore[arg-type]


def test_both_names_have_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ends = [(run([name, "--yes"]), capsys.readouterr().err) for name in ("recover", "catch-up")]
    assert ends[0] == ends[1]
    assert ends[0][0] == 2
    assert "[no-runs]" in ends[0][1]


def test_help_lists_only_the_new_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "  recover " in shown
    assert "catch-up" not in shown
