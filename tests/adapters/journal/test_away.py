"""A PostgreSQL that becomes unreachable midway: nothing waits for ever, nothing is lost, nothing is stored twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from rollout.adapters.journal import PostgresUrl, SqlJournal, postgres
from rollout.adapters.journal.database import is_there
from rollout.app.ports import Note
from rollout.core.run.journal_codec import chain
from rollout.errors import StateError
from tests.adapters.journal.conftest import name_of
from tests.adapters.journal.proxy import Fault, Proxy, proxied
from tests.adapters.journal.server import Server
from tests.adapters.journal.test_contract import header
from tests.controllers import PATIENCE, until

pytestmark = pytest.mark.process


def no_row(server: Server, question: str) -> bool:
    return server.query(question) == []


NOTE = Note(1.0, "ops@desk", "its machine is frozen")


@pytest.fixture
def way(server: Server) -> Iterator[Proxy]:
    with proxied(server.port) as proxy:
        yield proxy


@pytest.fixture
def far(server: Server, way: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlJournal]:
    """A journal behind the proxy that contains the start of run r1."""
    monkeypatch.setenv("PGPASSFILE", str(server.pass_file))
    database = name_of(server.database())
    journal = SqlJournal(PostgresUrl.reading(server.over_tcp(database, way.port)))
    journal.begin(header())
    journal.acquire("rno", "r1")
    journal.append("r1", ["a"])
    yield journal
    journal.close()


def away(journal: SqlJournal, *events: str) -> str:
    """The error of an append to an unreachable journal."""
    with pytest.raises(StateError) as raised:
        journal.append("r1", events)
    assert raised.value.reference == "journal-away", raised.value
    return raised.value.message


def written(journal: SqlJournal, *events: str) -> None:
    """Append as a controller does: ``journal-away`` means that the append is repeated."""

    def done() -> bool:
        try:
            journal.append("r1", events)
        except StateError as error:
            if error.reference != "journal-away":
                raise
            return False
        return True

    until(done, PATIENCE, "the journal accepts the events")


@pytest.mark.parametrize("fault", [Fault.CUT_BEFORE_COMMIT, Fault.CUT_AFTER_COMMIT])
def test_an_event_with_a_cut_commit_is_neither_lost_nor_duplicated(far: SqlJournal, way: Proxy, fault: Fault) -> None:
    way.fault = fault
    away(far, "b", "c")
    assert way.cuts == 1
    written(far, "b", "c")  # the server may still be at work on the cut commit
    assert far.events("r1") == ("a", "b", "c")
    far.append("r1", ["c"])
    assert far.events("r1") == ("a", "b", "c", "c"), "the same text again is another event"


def test_a_commit_that_completes_after_the_check_is_checked_again(far: SqlJournal, server: Server) -> None:
    """The connection was lost, but the server is still committing.

    The new connection finds no event, and may not write it.
    """
    database = server.query("SELECT max(datname) FROM pg_stat_activity WHERE application_name = 'rollout'")[0][0]
    ((first,),) = server.query("SELECT hash FROM events WHERE run = 'r1' AND number = 1", database)
    waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'rollout' AND wait_event_type = 'Lock'"
    with ThreadPoolExecutor(1) as pool:
        with server.transaction(database) as lost:
            lost.execute("INSERT INTO events VALUES ('r1', 2, 'b', %s)", (chain(first, "b"),))
            ours = pool.submit(away, far, "b")
            until(lambda: not no_row(server, waits), PATIENCE, "it waits for the other transaction")
        assert "checking again" in ours.result()
    far.append("r1", ["b"])
    assert far.events("r1") == ("a", "b")


def test_one_fault_cuts_before_the_commit_and_one_after_it(far: SqlJournal, way: Proxy, server: Server) -> None:
    """The first test needs this: after one fault the event is stored, after the other it is not."""
    database = server.query("SELECT max(datname) FROM pg_stat_activity WHERE application_name = 'rollout'")[0][0]
    for fault, there in ((Fault.CUT_BEFORE_COMMIT, 1), (Fault.CUT_AFTER_COMMIT, 2)):
        way.fault = fault
        away(far, "b")
        left = f"SELECT 1 FROM pg_stat_activity WHERE datname = '{database}' AND application_name = 'rollout'"  # noqa: S608
        until(partial(no_row, server, left), PATIENCE, "the server has closed its side of the connection")
        assert server.query("SELECT count(*) FROM events", database) == [(there,)]


def test_events_that_the_only_writer_did_not_write_are_refused(far: SqlJournal, server: Server, way: Proxy) -> None:
    database = server.query("SELECT max(datname) FROM pg_stat_activity WHERE application_name = 'rollout'")[0][0]
    server.query("INSERT INTO events VALUES ('r1', 2, 'x', 'y')", database)
    with pytest.raises(StateError, match="did not write") as raised:
        far.append("r1", ["b"])
    assert raised.value.reference == "journal-broken"


def test_a_connection_that_an_administrator_ended_is_reopened(far: SqlJournal, server: Server) -> None:
    server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rollout'")
    far.append("r1", ["b"])
    far.renew("rno", "r1")
    assert far.events("r1") == ("a", "b")


def test_a_crashed_server_is_unreachable_and_has_lost_nothing_afterwards(far: SqlJournal, server: Server) -> None:
    server.stop()
    try:
        away(far, "b")
        with pytest.raises(StateError, match="could not be renewed"):
            far.renew("rno", "r1")
        with pytest.raises(StateError, match="cannot be read") as unread:
            far.requests("r1", 0)
        assert unread.value.reference == "journal-away", "a controller that waits for requests continues to wait"
    finally:
        server.start()
    far.append("r1", ["b"])
    assert far.events("r1") == ("a", "b")


def test_a_network_that_drops_everything_is_reported(
    far: SqlJournal, way: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without our own timeouts this would wait for ever."""
    with monkeypatch.context() as brief:
        brief.setattr(postgres, "ANSWER_SECONDS", 1.0)
        brief.setattr(postgres, "CONNECT_SECONDS", 2)
        way.fault = Fault.SILENT
        assert "timeout" in away(far, "b"), "the old connection does not answer, and no new one can be made"
        assert "timeout" in away(far, "b")
    way.heal()
    far.append("r1", ["b"])
    assert far.events("r1") == ("a", "b")


def stand_still(journal: SqlJournal, meanwhile: Callable[[], None]) -> None:
    """A write that checks its lease, and is then frozen while ``meanwhile`` runs."""
    with journal._database.writing("journal-away", "it froze") as connection:  # noqa: SLF001
        journal._leases.check(connection, "r1")  # noqa: SLF001
        meanwhile()
        connection.exec_driver_sql("SELECT 1")


def test_a_controller_that_froze_during_a_write_does_not_block_the_lease(server: Server) -> None:
    """The frozen transaction locks the row. The server ends it before the other controller stops waiting."""
    place = server.database()
    frozen, next_one = SqlJournal(place), SqlJournal(place)
    frozen.begin(header())
    frozen.acquire("rno", "r1")
    with pytest.raises(StateError, match="it froze"):
        stand_still(frozen, lambda: next_one.unlock("rno", NOTE))
    assert next_one.holder("rno") is None
    frozen.close()
    next_one.close()


def test_a_server_without_sync_to_disk_is_refused(server: Server) -> None:
    place = server.database()
    server.query("ALTER SYSTEM SET fsync = off")
    server.query("SELECT pg_reload_conf()")
    try:
        until(lambda: server.query("SHOW fsync") == [("off",)], PATIENCE, "the server has read its settings")
        with pytest.raises(StateError, match="does not sync to disk") as raised:
            SqlJournal(place)
        assert raised.value.reference == "journal-unusable"
    finally:
        server.query("ALTER SYSTEM RESET fsync")
        server.query("SELECT pg_reload_conf()")


def test_asynchronous_commits_of_a_user_are_overridden(server: Server) -> None:
    place = server.database()
    server.query(f"ALTER DATABASE {name_of(place)} SET synchronous_commit = off")
    assert server.query("SHOW synchronous_commit", name_of(place)) == [("off",)]
    journal = SqlJournal(place)
    with journal._database.reading() as connection:  # noqa: SLF001 - as the journal's own connections see it
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    journal.close()


def test_the_server_times_out_before_we_do_and_a_lock_wait_outlasts_an_idle_transaction() -> None:
    seconds = {name: float(value[:-1]) for name, value in postgres._SESSION.items() if value.endswith("s")}  # noqa: SLF001
    still, lock, statement = (
        seconds[name] for name in ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")
    )
    assert still < lock < statement < postgres.ANSWER_SECONDS


def test_a_wrong_password_or_a_missing_database_is_not_retried(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Waiting would not help."""
    database = name_of(server.database())
    wrong = tmp_path / "pgpass"
    wrong.write_text("127.0.0.1:*:*:rollout:another\n")
    wrong.chmod(0o600)
    for file, name in ((wrong, database), (tmp_path / "none", database), (server.pass_file, "nowhere")):
        monkeypatch.setenv("PGPASSFILE", str(file))
        address = PostgresUrl.reading(server.over_tcp(name))
        for look in (is_there, SqlJournal):
            with pytest.raises(StateError) as raised:
                look(address)
            assert raised.value.reference == "journal-unusable", raised.value
            assert raised.value.hint.startswith(
                "check the user, the password and the database of the journal's address"
            )


def test_a_missing_server_counts_as_unreachable(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSFILE", str(server.pass_file))
    with pytest.raises(StateError) as raised:
        is_there(PostgresUrl.reading(server.over_tcp("journal1", 1)))
    assert raised.value.reference == "journal-away"
