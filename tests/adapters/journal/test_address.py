"""The journal's URL as typed: valid URLs, URLs that are refused before any connection, and no password is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.adapters.journal import PostgresUrl
from rollout.cli.main import run
from rollout.errors import UsageError
from tests.adapters.journal.conftest import name_of
from tests.adapters.journal.server import Server

WORD = "hunter2-very-secret"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ops@db.example/rollout",
        "postgres://db.example:6432/rollout?sslmode=verify-full",
        "postgresql://?service=rollout",
        "postgresql:///rollout?host=/run/postgresql",
        "postgresql://a@one,b@two/rollout?target_session_attrs=read-write",
    ],
)
def test_a_url_for_libpq_is_used_unchanged(text: str) -> None:
    assert PostgresUrl.reading(text).url == text


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("mysql://db/rollout", "journal-url"),
        ("sqlite:///journal.db", "journal-url"),
        ("db.example/rollout", "journal-url"),
        ("postgresql:db", "journal-url"),
        ("postgresql+psycopg://ops@db/rollout", "journal-url"),
        ("postgresql://[db/rollout", "journal-url"),
        (f"postgresql://ops:{WORD}@db/rollout", "journal-password"),
        (f"postgresql://ops@db/rollout?password={WORD}", "journal-password"),
        (f"postgresql://ops@db/rollout?sslmode=require&PassWord={WORD}", "journal-password"),
        (f"postgresql://ops@db/rollout?pass%77ord={WORD}", "journal-password"),
        (f"postgresql://ops@db/rollout?sslpassword={WORD}", "journal-password"),
        (f"postgresql://ops:{WORD}@one,two/rollout", "journal-password"),
    ],
)
def test_an_invalid_url_or_one_with_a_password_is_refused_and_not_repeated(text: str, reference: str) -> None:
    with pytest.raises(UsageError) as raised:
        PostgresUrl.reading(text)
    assert raised.value.reference == reference
    assert WORD not in str(raised.value)


def test_the_url_is_shown_without_its_options() -> None:
    assert str(PostgresUrl.reading("postgresql://ops@db/rollout?sslkey=/home/ops/key")) == "postgresql://ops@db/rollout"


def test_the_command_line_refuses_a_url_with_a_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLOUT_JOURNAL", f"postgresql://ops:{WORD}@db/rollout")
    assert run(["status"]) == 2
    told = capsys.readouterr().err
    assert "[journal-password]" in told
    assert WORD not in told


def test_an_empty_database_has_no_run_and_reading_it_creates_no_table(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    place = server.database()
    assert run(["status", "--journal", place.url]) == 2
    assert f"the journal in {place} holds no run yet" in capsys.readouterr().err
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
    assert server.query(tables, name_of(place)) == [(0,)]
    assert list(tmp_path.iterdir()) == [], "no folder was created either"


@pytest.mark.process
def test_an_unreachable_server_is_exit_code_5(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "--journal", "postgresql://ops@127.0.0.1:1/rollout"]) == 5
    told = capsys.readouterr().err
    assert "[journal-away]" in told
    assert "127.0.0.1" in told
