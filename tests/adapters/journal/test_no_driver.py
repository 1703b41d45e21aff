"""Without the extra `postgresql`, a journal in PostgreSQL is refused with the command that installs it."""

from __future__ import annotations

import sys

import pytest

from rollout.cli.main import run


def test_a_missing_driver_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "rollout.adapters.journal.postgres", raising=False)
    assert run(["status", "--journal", "postgresql://ops@db.example/rollout"]) == 2
    told = capsys.readouterr().err
    assert "pipx install --force 'PATH[postgresql]'" in told
    assert "[no-postgresql]" in told
