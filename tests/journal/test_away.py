"""A PostgreSQL that goes away in the middle: nothing waits for ever, nothing is lost, nothing is there twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from rollout.adapters.journal import PostgresUrl, SqlJournal
from rollout.adapters.journal.postgres import ANSWER_SECONDS, CONNECT_SECONDS
from rollout.app.ports import Note
from rollout.errors import StateError
from tests.journal.conftest import name_of
from tests.journal.proxy import Fault, Proxy, proxied
from tests.journal.server import Server
from tests.journal.test_contract import header

NOTE = Note(1.0, "ops@desk", "its machine is frozen")


@pytest.fixture
def way(server: Server) -> Iterator[Proxy]:
    with proxied(server.port) as proxy:
        yield proxy


@pytest.fixture
def far(server: Server, way: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlJournal]:
    """A journal behind the proxy, with run r1 begun in it."""
    monkeypatch.setenv("PGPASSFILE", str(server.pass_file))
    database = name_of(server.database())
    journal = SqlJournal(PostgresUrl.reading(server.over_tcp(database, way.port)))
    journal.begin(header())
    journal.acquire("rno", "r1")
    journal.append("r1", ["a"])
    yield journal
    journal.close()


def away(journal: SqlJournal, *events: str) -> str:
    """What an append says of a journal that is away."""
    with pytest.raises(StateError) as raised:
        journal.append("r1", events)
    assert raised.value.reference == "journal-away", raised.value
    return raised.value.message


@pytest.mark.parametrize("fault", [Fault.CUT_BEFORE_COMMIT, Fault.CUT_AFTER_COMMIT])
def test_an_event_whose_commit_was_cut_is_neither_lost_nor_doubled(far: SqlJournal, way: Proxy, fault: Fault) -> None:
    way.fault = fault
    away(far, "b", "c")
    assert way.cuts == 1
    far.append("r1", ["b", "c"])
    assert far.events("r1") == ("a", "b", "c")
    far.append("r1", ["c"])
    assert far.events("r1") == ("a", "b", "c", "c"), "the same words once more are another event"


def test_the_cut_answer_was_that_of_a_commit_that_was_done(far: SqlJournal, way: Proxy, server: Server) -> None:
    """What the test before this rests on: after one fault the event is there already, after the other it is not."""
    database = server.query("SELECT max(datname) FROM pg_stat_activity WHERE application_name = 'rollout'")[0][0]
    for fault, there in ((Fault.CUT_BEFORE_COMMIT, 1), (Fault.CUT_AFTER_COMMIT, 2)):
        way.fault = fault
        away(far, "b")
        ended = "SELECT count(*) FROM pg_stat_activity WHERE datname = '%s' AND application_name = 'rollout'"
        while server.query(ended % database) != [(0,)]:
            time.sleep(0.01)  # the server's own end of the connection; the test's timeout ends what never comes
        assert server.query("SELECT count(*) FROM events", database) == [(there,)]


def test_events_that_the_only_writer_did_not_write_are_refused(far: SqlJournal, server: Server, way: Proxy) -> None:
    database = server.query("SELECT max(datname) FROM pg_stat_activity WHERE application_name = 'rollout'")[0][0]
    server.query("INSERT INTO events VALUES ('r1', 2, 'x', 'y')", database)
    with pytest.raises(StateError, match="did not write") as raised:
        far.append("r1", ["b"])
    assert raised.value.reference == "journal-broken"


def test_a_connection_that_an_administrator_ended_is_made_anew(far: SqlJournal, server: Server) -> None:
    server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rollout'")
    far.append("r1", ["b"])
    far.renew("rno", "r1")
    assert far.events("r1") == ("a", "b")


@pytest.mark.timeout(120)
def test_a_server_that_crashed_is_away_and_knows_everything_when_it_is_back(far: SqlJournal, server: Server) -> None:
    server.stop()
    try:
        away(far, "b")
        with pytest.raises(StateError, match="could not be renewed"):
            far.renew("rno", "r1")
        with pytest.raises(StateError, match="cannot be read") as unread:
            far.requests("r1", 0)
        assert unread.value.reference == "journal-away", "who listens for words goes on listening"
    finally:
        server.start()
    far.append("r1", ["b"])
    assert far.events("r1") == ("a", "b")


@pytest.mark.timeout(120)
def test_a_network_that_swallows_everything_is_told_in_time(far: SqlJournal, way: Proxy) -> None:
    way.fault = Fault.SILENT
    began = time.monotonic()
    away(far, "b")  # neither what is asked is answered,
    away(far, "b")  # nor a new connection
    assert time.monotonic() - began < 2 * (ANSWER_SECONDS + CONNECT_SECONDS) + ANSWER_SECONDS
    way.heal()
    far.append("r1", ["b"])
    assert far.events("r1") == ("a", "b")


def stand_still(journal: SqlJournal, meanwhile: Callable[[], None]) -> None:
    """A write that has checked its lease, and then nothing for as long as ``meanwhile`` takes."""
    with journal._database.writing("journal-away", "it froze") as connection:  # noqa: SLF001
        journal._leases.check(connection, "r1")  # noqa: SLF001
        meanwhile()
        connection.exec_driver_sql("SELECT 1")


@pytest.mark.timeout(120)
def test_a_controller_that_froze_in_the_middle_of_a_write_keeps_nobody_from_the_lease(server: Server) -> None:
    """Its row is locked by a transaction that stands still: the server ends that before the other's patience ends."""
    place = server.database()
    frozen, next_one = SqlJournal(place), SqlJournal(place)
    frozen.begin(header())
    frozen.acquire("rno", "r1")
    with pytest.raises(StateError, match="it froze"):
        stand_still(frozen, lambda: next_one.unlock("rno", NOTE))
    assert next_one.holder("rno") is None
    frozen.close()
    next_one.close()


def test_a_server_that_does_not_sync_is_no_journal(server: Server) -> None:
    place = server.database()
    server.query("ALTER SYSTEM SET fsync = off")
    server.query("SELECT pg_reload_conf()")
    try:
        while server.query("SHOW fsync") != [("off",)]:
            time.sleep(0.01)
        with pytest.raises(StateError, match="does not wait for its disk") as raised:
            SqlJournal(place)
        assert raised.value.reference == "journal-unusable"
    finally:
        server.query("ALTER SYSTEM RESET fsync")
        server.query("SELECT pg_reload_conf()")


def test_a_user_whose_commits_do_not_wait_is_overruled(server: Server) -> None:
    place = server.database()
    server.query(f"ALTER DATABASE {name_of(place)} SET synchronous_commit = off")
    assert server.query("SHOW synchronous_commit", name_of(place)) == [("off",)]
    journal = SqlJournal(place)
    with journal._database.reading() as connection:  # noqa: SLF001 - as the journal's own connections see it
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    journal.close()
