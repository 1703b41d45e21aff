"""The journal's URL as typed: valid URLs, URLs that are refused before any connection, and no password is repeated."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest

from rollout.adapters.journal import PostgresUrl, SqlJournal
from rollout.adapters.journal.postgres import verifying
from rollout.cli.main import run
from rollout.errors import StateError, UsageError
from rollout.features.regions.client.certificates import make_certificates
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


REMOTE = {"sslmode": "verify-full", "sslrootcert": ssl.get_default_verify_paths().cafile or "system"}
OWN = "sslrootcert=/etc/ops-ca.pem"


@pytest.mark.parametrize(
    ("url", "environment", "options"),
    [
        ("postgresql://ops@db.example/rollout", {}, REMOTE),
        ("postgresql://ops@192.0.2.7/rollout", {}, REMOTE),
        ("postgresql://ops@localhost/rollout", {}, REMOTE),
        ("postgresql://ops@127.0.0.1.evil.example/rollout", {}, REMOTE),
        ("postgresql://ops@db.example/rollout", {"PGSSLMODE": "disable"}, REMOTE),
        ("postgresql://ops@db.example/rollout", {"PGSSLROOTCERT": "/own.pem"}, {"sslmode": "verify-full"}),
        (f"postgresql://ops@db.example/rollout?{OWN}", {}, {"sslmode": "verify-full"}),
        ("postgresql://ops@127.0.0.1,db.example/rollout", {}, REMOTE),
        ("postgresql://ops@127.0.0.1/rollout?hostaddr=192.0.2.7", {}, REMOTE),
        ("postgresql://ops@one,two/rollout?hostaddr=127.0.0.1,", {}, REMOTE),
        ("postgresql://ops@127.0.0.1/rollout", {"PGHOSTADDR": "192.0.2.7"}, REMOTE),
        ("postgresql:///rollout", {"PGHOST": "db.example"}, REMOTE),
        ("postgresql:///rollout", {"PGSERVICE": "rollout"}, REMOTE),
        ("postgresql://?service=rollout", {}, REMOTE),
        ("postgresql://ops@127.0.0.1/rollout?service=rollout", {}, REMOTE),
        ("postgresql://ops@db.example/rollout?sslmode=require", {}, {}),
        ("postgresql://ops@127.0.0.1/rollout", {}, {}),
        ("postgresql://ops@[::1]:6432/rollout", {}, {}),
        ("postgresql://ops@db.example/rollout?hostaddr=127.0.0.1", {}, {}),
        ("postgresql:///rollout?host=/run/postgresql", {}, {}),
        ("postgresql://%2Frun%2Fpostgresql/rollout", {}, {}),
        ("postgresql:///rollout", {}, {}),
    ],
)
def test_only_a_peer_of_this_machine_need_not_prove_who_it_is(
    url: str, environment: dict[str, str], options: dict[str, str]
) -> None:
    assert verifying(url, environment) == options


@contextmanager
def refusing_tls() -> Iterator[tuple[int, list[bytes]]]:
    """A stranger in the place of a server: it refuses TLS, asks for the password in clear, and keeps what it gets."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with suppress(OSError):
                while True:
                    with listening.accept()[0] as connection:
                        while said := connection.recv(4096):
                            heard.append(said)
                            request = said[4:8]
                            connection.sendall(b"N" if request in TLS_OR_GSS else b"R\0\0\0\x08\0\0\0\x03")

        Thread(target=answer, daemon=True).start()
        yield listening.getsockname()[1], heard


TLS_OR_GSS = (struct.pack(">I", 80877103), struct.pack(">I", 80877104))


@pytest.mark.process
def test_a_server_that_refuses_tls_gets_no_password_and_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"*:*:*:*:{WORD}\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    monkeypatch.setenv("PGSSLMODE", "prefer")
    with refusing_tls() as (port, heard):
        with pytest.raises(StateError, match="does not support SSL") as caught:
            SqlJournal(PostgresUrl.reading(f"postgresql://ops@localhost:{port}/rollout"))
        assert WORD.encode() not in b"".join(heard)
        assert caught.value.reference == "journal-unusable"
        assert "sslrootcert" in caught.value.hint
        with pytest.raises(StateError):
            SqlJournal(PostgresUrl.reading(f"postgresql://ops@localhost:{port}/rollout?sslmode=prefer"))
        assert WORD.encode() in b"".join(heard), "the stranger would have kept it"


def test_a_server_with_a_certificate_of_the_named_authority_is_used(server: Server, tmp_path: Path) -> None:
    made = tmp_path / "certificates"
    make_certificates(made, ("localhost",))
    with server.with_tls(made / "scheduler") as database:
        url = f"postgresql://rollout@localhost:{server.port}/{database}"
        with pytest.raises(StateError, match="certificate verify failed"):
            SqlJournal(PostgresUrl.reading(url))
        SqlJournal(PostgresUrl.reading(f"{url}?sslrootcert={made / 'scheduler' / 'ca.pem'}")).close()
