"""Concurrent processes with their own connections: a lease has one holder, a run has one writer."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter

import pytest
import sqlalchemy as sa

from rollout.adapters.journal import PostgresUrl, SqlJournal
from rollout.core.run.events import Request
from rollout.errors import StateError
from tests.adapters.journal.conftest import Change, Place, name_of
from tests.adapters.journal.server import Server
from tests.adapters.journal.test_contract import header
from tests.controllers import PATIENCE, until

pytestmark = pytest.mark.process

TAKE = """
import sys
from pathlib import Path
from rollout.adapters.journal import PostgresUrl, SqlJournal
from rollout.errors import StateError
where = sys.argv[1]
journal = SqlJournal(PostgresUrl.reading(where) if "://" in where else Path(where))
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    try:
        journal.acquire(f"cluster{number}", sys.argv[2])
        print(number, flush=True)
    except StateError as error:
        assert error.reference == "locked", error
print("done", flush=True)
sys.stdin.readline()  # a holder that lives
"""
CLUSTERS = 20
CONTROLLERS = 3


def address(place: Place) -> str:
    return place.url if isinstance(place, PostgresUrl) else str(place)


@pytest.mark.parametrize("before", ["free", "of a machine that is gone"])
def test_exactly_one_of_many_concurrent_processes_gets_a_lease(
    place: Place, journal: SqlJournal, change: Change, before: str
) -> None:
    for number in range(CLUSTERS) if before != "free" else ():
        journal.acquire(f"cluster{number}", "r0")
    change("UPDATE leases SET owner='elsewhere:1:1', heartbeat=NOW-31")
    command = [sys.executable, "-c", TAKE, address(place)]
    controllers = [
        subprocess.Popen(
            [*command, f"r{n}", str(CLUSTERS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        for n in range(1, CONTROLLERS + 1)
    ]
    try:
        pipes = [(one.stdin, one.stdout) for one in controllers]
        assert [out.readline() for _, out in pipes if out] == ["ready\n"] * CONTROLLERS
        for asks, _ in pipes:
            assert asks is not None
            asks.write("go\n")
            asks.flush()
        taken: list[int] = []
        for _, out in pipes:
            assert out is not None
            taken += [int(line) for line in iter(out.readline, "done\n")]
    finally:
        for one in controllers:
            one.communicate("\n", timeout=PATIENCE)
    assert Counter(taken) == Counter(range(CLUSTERS)), "each lease was taken by exactly one process"


def test_many_processes_can_create_a_journal_at_once(place: Place) -> None:
    failed: list[Exception] = []

    def open_it() -> None:
        try:
            SqlJournal(place).close()
        except StateError as error:
            failed.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_takeover_of_a_lease_waits_for_a_write_in_progress_and_no_write_follows(server: Server) -> None:
    """The old controller has checked its lease and not committed yet.

    Either its event is stored, or its lease is not lost yet.
    """
    place = server.database()
    old, new = SqlJournal(place), SqlJournal(place)
    new._leases.me = "elsewhere:b.1:1:1"  # noqa: SLF001 - two machines in one process
    old.begin(header())
    old.acquire("rno", "r1")
    server.query("UPDATE leases SET heartbeat = heartbeat - 60", name_of(place))
    old._leases.me, mine = "ops-1:b.2:2:2", old._leases.me  # noqa: SLF001 - as a process of another machine
    server.query(f"UPDATE leases SET owner = 'ops-1:b.2:2:2' WHERE owner = '{mine}'", name_of(place))  # noqa: S608
    taken = threading.Event()

    def take() -> None:
        new.acquire("rno", "r1")
        taken.set()

    thread = threading.Thread(target=take)
    with old._database.writing("journal-away", "") as connection:  # noqa: SLF001 - held open as a slow commit is
        old._leases.check(connection, "r1")  # noqa: SLF001
        thread.start()
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%leases%'"
        until(lambda: taken.is_set() or server.query(waits, name_of(place)), PATIENCE, "the other waits")
        assert not taken.is_set(), "taken over in the middle of a write"
    thread.join()
    assert taken.is_set()
    with pytest.raises(StateError) as lost:
        old.append("r1", ["too late"])
    assert lost.value.reference == "lease-lost"
    assert new.events("r1") == ()
    old.close()
    new.close()


def test_the_age_of_a_lease_uses_the_databases_clock(server: Server) -> None:
    """A lease does not use the clock of a machine. Its age is measured by the database only."""
    place = server.database()

    def now() -> float:
        [(found,)] = server.query("SELECT extract(epoch from clock_timestamp())", name_of(place))
        return float(found)

    def silent() -> float:
        held = journal.holder("rno")
        assert held is not None
        return held.silent

    journal = SqlJournal(place)
    begun = now()
    journal.acquire("rno", "r1")
    [(beat,)] = server.query("SELECT heartbeat FROM leases", name_of(place))
    assert begun <= float(beat) <= now()
    assert 0 <= silent() <= now() - begun
    server.query("UPDATE leases SET heartbeat = heartbeat - 1000", name_of(place))
    assert 1000 <= silent() <= now() - begun + 1000
    renewed = now()
    journal.renew("rno", "r1")
    assert 0 <= silent() <= now() - renewed
    journal.close()


def test_no_request_becomes_visible_after_one_with_a_higher_number(server: Server) -> None:
    """A controller that has handled a number asks only for higher ones: the request of a slow commit would be lost."""
    place = server.database()
    first, second, controller = SqlJournal(place), SqlJournal(place), SqlJournal(place)
    first.begin(header())
    done = threading.Event()

    def ask() -> None:
        second.ask("r1", "abort", "ann@there", "", "")
        done.set()

    thread = threading.Thread(target=ask)
    seen: list[tuple[Request, ...]] = []

    def commit(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if statement == "COMMIT":
            thread.start()
            waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            until(lambda: done.is_set() or server.query(waits, name_of(place)), PATIENCE, "the other waits")
            seen.append(controller.requests("r1", 0))

    sa.event.listen(first._database._store.engine, "before_cursor_execute", commit)  # noqa: SLF001 - a slow commit
    first.ask("r1", "pause", "me@here", "", "")
    thread.join()
    assert seen == [()]
    assert [each.word for each in controller.requests("r1", 0)] == ["pause", "abort"]
    for each in (first, second, controller):
        each.close()
