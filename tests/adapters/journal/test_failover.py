"""A server that took the place of another: without the last events, behind a pooler, or with few rights and connections."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Thread

import pytest

from rollout.adapters.journal import PostgresUrl, SqlJournal, postgres
from rollout.app.ports import Note
from rollout.composition.wiring import Session
from rollout.errors import StateError
from tests.adapters.journal.conftest import name_of
from tests.adapters.journal.server import Server
from tests.adapters.journal.test_contract import SUMMARY, header
from tests.controllers import PATIENCE, until
from tests.places import ROOT

POOLER = Path("/usr/sbin/pgbouncer")
LOST = "number > 2"


@pytest.fixture
def database(server: Server) -> PostgresUrl:
    return server.database()


def begun(place: PostgresUrl, folder: Path) -> SqlJournal:
    """A run of this process with five events."""
    journal = SqlJournal(place, folder)
    journal.begin(header())
    journal.acquire("rno", "r1")
    journal.append("r1", ("a", "b"))
    journal.append("r1", ("c", "d", "e"))
    return journal


def refused(act: Callable[[], object]) -> StateError:
    with pytest.raises(StateError) as caught:
        act()
    return caught.value


def test_a_run_says_how_many_of_its_events_a_failover_lost_and_writes_nothing_more(
    server: Server, database: PostgresUrl, tmp_path: Path
) -> None:
    with closing(begun(database, tmp_path)) as journal:
        server.query(f"DELETE FROM events WHERE {LOST}", name_of(database))  # noqa: S608 - of ours
        for _ in range(2):
            error = refused(lambda: journal.append("r1", ("f",)))
            said = "3 events written by this run are missing in the database: a failover lost them (it has 2, 5 were written)"
            assert (error.reference, error.message) == ("journal-broken", said)
            assert f"move {tmp_path}/heads/r1 away, then `rollout resume r1`" in error.hint
        assert journal.head("r1")[0] == 2
        server.query("DELETE FROM events WHERE number > 1", name_of(database))
        server.query("INSERT INTO events SELECT run, 2, 'x', 'y' FROM events", name_of(database))
        error = refused(lambda: journal.append("r1", ("f",)))
        assert "4 events" not in error.message


@pytest.mark.parametrize(
    "act", [lambda journal: journal.append("r1", ("f",)), lambda journal: journal.renew("rno", "r1")]
)
def test_a_lost_lease_says_what_became_of_it(
    server: Server, database: PostgresUrl, tmp_path: Path, act: Callable[[SqlJournal], None]
) -> None:
    """Nobody has taken a lease over that a failover lost."""
    with closing(begun(database, tmp_path)) as journal:
        server.query("UPDATE leases SET run = 'r2', owner = 'desk:b.1:7:9'", name_of(database))
        error = refused(lambda: act(journal))
        assert (error.reference, "has taken rno over: run r2 on desk" in error.message) == ("lease-lost", True)
        server.query("DELETE FROM leases", name_of(database))
        assert "the lease of rno is gone: it was unlocked, or a failover" in refused(lambda: act(journal)).message
        server.query("DELETE FROM runs", name_of(database))
    with closing(SqlJournal(database, tmp_path)) as again:
        assert "does not have run r1 any more" in refused(lambda: again.append("r1", ("f",))).message


def test_a_machine_shows_a_run_that_lost_its_events_and_one_that_another_machine_ended(
    server: Server, database: PostgresUrl, tmp_path: Path
) -> None:
    """What only reads warns and shows what the database has. What acts refuses it until a person has looked."""
    one, two = tmp_path / "one", tmp_path / "two"
    with closing(begun(database, one)) as journal:
        server.query(f"DELETE FROM events WHERE {LOST}", name_of(database))  # noqa: S608 - of ours
        journal.release("rno", "r1")
    said: list[str] = []
    with closing(SqlJournal(database, one, said.append)) as shown:
        assert shown.events("r1") == ("a", "b")
        assert "the last events of r1 are missing: the journal has 2" in said.pop()
        with closing(SqlJournal(database, two)) as other:
            other.acquire("rno", "r1")
            other.append("r1", ("x", "y", "z", "end"))
            other.release("rno", "r1")
        assert shown.events("r1") == ("a", "b", "x", "y", "z", "end")
        assert "event 5 of r1 is not the one that this machine wrote" in said.pop()
        server.query("UPDATE events SET body = 'forged' WHERE number = 4", name_of(database))
        assert "event 4 of r1 is not the one that was written" in refused(lambda: shown.events("r1")).message
        server.query("UPDATE events SET body = 'y' WHERE number = 4", name_of(database))
    with closing(SqlJournal(database, one)) as acting:
        assert refused(lambda: acting.events("r1")).reference == "journal-broken"


def test_only_commands_that_change_nothing_read_a_run_in_doubt(
    server: Server, database: PostgresUrl, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(database, tmp_path).close()
    server.query(f"DELETE FROM events WHERE {LOST}", name_of(database))  # noqa: S608 - of ours
    session = Session(tmp_path, None, accept_new=False, output="text", shared=database)
    shown = session.past_runs()
    assert isinstance(shown, SqlJournal)
    with closing(shown):
        assert shown.events("r1") == ("a", "b")
    assert "warning: the last events of r1 are missing" in capsys.readouterr().err
    with closing(session.journal()) as journal:
        assert refused(lambda: journal.events("r1")).reference == "journal-broken"


def test_a_command_uses_few_connections_however_many_threads_and_parts_it_has(
    server: Server, database: PostgresUrl, tmp_path: Path
) -> None:
    session = Session(tmp_path, None, accept_new=False, output="text", shared=database)
    journals = [session.journal(), session.past(), replace(session, label="c").journal(), session.past()]
    together = Barrier(12)

    def ask(at: int) -> None:
        together.wait()
        for number in range(20):
            journals[at % len(journals)].note("rno", Note(float(number), "ann@ops", "text"))

    threads = [Thread(target=ask, args=(at,)) for at in range(12)]
    count = (
        f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name_of(database)}' AND application_name = 'rollout'"  # noqa: S608
    )
    for thread in threads:
        thread.start()
    most = 0
    while any(thread.is_alive() for thread in threads):
        most = max(most, server.query(count)[0][0])
    for thread in threads:
        thread.join()
    assert len(journals[0].notes("rno")) == 240
    assert 1 <= most <= postgres.MOST_CONNECTIONS
    session.journal().close()


def test_a_newer_journal_on_a_server_promises_no_copy_of_a_file(server: Server, database: PostgresUrl) -> None:
    SqlJournal(database).close()
    server.query("UPDATE alembic_version SET version_num = '9999'", name_of(database))
    error = refused(lambda: SqlJournal(database))
    assert (error.reference, "--state" in error.hint, "own backup" in error.hint) == ("journal-newer", False, True)


# A connection pooler.


@contextmanager
def pooled(server: Server, database: PostgresUrl, mode: str, folder: Path) -> Iterator[PostgresUrl]:
    """The database through pgbouncer."""
    if not POOLER.exists():
        pytest.skip("NOT TESTED WITH A POOLER: pgbouncer is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    name = name_of(database)
    folder.chmod(0o777)
    (folder / "users").write_text('"rollout" ""\n')
    (folder / "ini").write_text(
        f"[databases]\n{name} = host={server.folder} port={server.port} user=rollout\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\nauth_file = {folder}/users\n"
        f"pool_mode = {mode}\nlogfile = {folder}/log\npidfile = {folder}/pid\n"
    )
    given = ["setpriv", "--pdeathsig", "TERM"]
    if os.geteuid() == 0:
        given += ["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
    with subprocess.Popen([*given, str(POOLER), "-q", str(folder / "ini")]) as process:
        try:
            until((folder / "pid").exists, PATIENCE, "the pooler listens")
            yield PostgresUrl.reading(f"postgresql://rollout@127.0.0.1:{port}/{name}")
        finally:
            process.terminate()


@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_a_pooler_that_shares_sessions_is_refused_by_name_before_anything_is_written(
    server: Server, database: PostgresUrl, mode: str
) -> None:
    folder = server.folder / mode
    folder.mkdir()
    with pooled(server, database, mode, folder) as place:
        error = refused(lambda: SqlJournal(place))
    assert (error.reference, "pgbouncer" in error.message) == ("journal-unusable", True)
    assert "pool_mode = session" in error.message
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
    assert server.query(tables, name_of(database)) == [(0,)]


def test_a_pooler_with_whole_sessions_is_as_good_as_the_server(
    server: Server, database: PostgresUrl, tmp_path: Path
) -> None:
    folder = server.folder / "session"
    folder.mkdir()
    with pooled(server, database, "session", folder) as place, closing(begun(place, tmp_path)) as journal:
        assert journal.events("r1") == ("a", "b", "c", "d", "e")


# Rights: the SQL of the page is what is tested.


def grants() -> tuple[str, ...]:
    """Every statement of ``docs/journal.md``, in its order; each names the roles of the page."""
    blocks = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "journal.md").read_text(), re.DOTALL)
    return tuple(statement.strip() for block in blocks for statement in block.split(";") if statement.strip())


def single(statement: str) -> Iterator[tuple[str, str]]:
    """A statement about several objects → a right and the object, each alone."""
    found = re.fullmatch(r"GRANT (\w+) ON (SCHEMA |SEQUENCE |)(.*) TO .*rollout_ops.*", statement)
    if found:
        for name in found[3].split(", "):
            yield found[1], found[2] + name


def as_role(server: Server, database: PostgresUrl, role: str) -> PostgresUrl:
    return PostgresUrl.reading(f"postgresql://{role}@/{name_of(database)}?host={server.folder}&port={server.port}")


@pytest.fixture
def roles(server: Server, database: PostgresUrl) -> Iterator[PostgresUrl]:
    """A database where the three roles of the page are, and where nobody has a right on the schema by itself."""
    server.query("CREATE ROLE rollout_owner LOGIN; CREATE ROLE rollout_ops LOGIN; CREATE ROLE rollout_viewer LOGIN")
    server.query("REVOKE ALL ON SCHEMA public FROM PUBLIC", name_of(database))
    yield database
    for role in ("rollout_owner", "rollout_ops", "rollout_viewer"):
        server.query(f"DROP OWNED BY {role} CASCADE", name_of(database))
        server.query(f"DROP ROLE {role}")


def everything(place: PostgresUrl, folder: Path, run: str) -> None:
    """All that commands of operators write and read."""
    with closing(SqlJournal(place, folder)) as journal:
        journal.begin(replace(header(), run=run))
        journal.acquire("rno", run)
        journal.append(run, ("a", "b"), SUMMARY)
        journal.append(run, ("c",), SUMMARY)
        journal.renew("rno", run)
        journal.withdraw(journal.ask(run, "pause", "ann@ops", "lunch", ""))
        journal.note("rno", Note(1.0, "ann@ops", "text"))
        journal.unlock("rno", Note(2.0, "ann@ops", "unlocked"))
        journal.acquire("rno", run)
        assert journal.holder("rno")
        assert journal.summary(run) == SUMMARY
        assert len(journal.events(run)) == 3
        assert journal.requests(run, 0) == ()
        assert journal.notes("rno")
        journal.release("rno", run)


def test_the_rights_on_the_page_are_enough_and_each_is_needed(
    server: Server, roles: PostgresUrl, tmp_path: Path
) -> None:
    owner, ops, viewer = (as_role(server, roles, f"rollout_{name}") for name in ("owner", "ops", "viewer"))
    first, *rest = grants()
    assert "the user lacks a right" in refused(lambda: SqlJournal(owner)).hint
    server.query(first, name_of(roles))
    SqlJournal(owner).close()
    server.query("; ".join(rest), name_of(roles))
    everything(ops, tmp_path, "r1")
    needed = [each for statement in rest for each in single(statement)]
    assert len(needed) == 21
    for at, (right, what) in enumerate(needed):
        server.query(f"REVOKE {right} ON {what} FROM rollout_ops", name_of(roles))
        with pytest.raises(StateError):
            everything(ops, tmp_path, f"r{at + 2}")
        server.query(f"GRANT {right} ON {what} TO rollout_ops; DELETE FROM leases", name_of(roles))  # noqa: S608 - of the page
    with closing(SqlJournal(viewer, tmp_path)) as reading:
        assert len(reading.events("r1")) == 3
        assert "permission denied" in refused(lambda: reading.note("rno", Note(1.0, "x", "y"))).message
