"""The schema of the journal's tables: in the code, after the migrations, and messages for older and newer journals."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from rollout.adapters.journal import PostgresUrl, SqlJournal, is_there
from rollout.adapters.journal.database import Database
from rollout.adapters.journal.schema import SHIPPED, Revisions
from rollout.adapters.journal.tables import META
from rollout.errors import StateError
from tests.adapters.journal.conftest import Change, Place
from tests.adapters.journal.test_contract import elsewhere, header

OLD = (Path(__file__).parent / "first-journal.sql").read_text()
"""A journal of a version that did not store a revision, with a run in it."""


def migrate(connection: sa.Connection) -> None:
    """From an empty database to the newest revision, using only the scripts."""
    config = Config()
    config.set_main_option("script_location", str(SHIPPED.folder))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def differences(connection: sa.Connection) -> list[object]:
    """The differences that alembic would write into a new revision."""
    context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
    return list(compare_metadata(context, META))


def test_the_migrations_create_the_schema_in_the_code(place: Place) -> None:
    if isinstance(place, Path):
        place.mkdir()
        engine = sa.create_engine(f"sqlite:///{place / 'journal.db'}")
    else:
        engine = sa.create_engine(place.url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        migrate(connection)
        assert differences(connection) == []
    with engine.begin() as connection:  # and a difference would be seen
        connection.exec_driver_sql("DROP TABLE notes")
        assert differences(connection) != []
    engine.dispose()


def test_a_new_journal_has_the_newest_revision_and_the_migrated_schema(place: Place) -> None:
    database = Database(place)
    with database.reading() as connection:
        assert differences(connection) == []
        assert MigrationContext.configure(connection).get_current_revision() == SHIPPED.newest
    database.close()


def test_the_revisions_are_known_without_reading_the_scripts() -> None:
    scripts = ScriptDirectory(str(SHIPPED.folder))
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == SHIPPED.known


# ------------------------------------------------------------------------------------------------ older and newer ones


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with an old journal."""
    folder = tmp_path / "old"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "journal.db")) as connection:
        connection.executescript(OLD)
    return folder


@pytest.fixture
def next_version(tmp_path: Path) -> Revisions:
    """The revisions of a version with one more revision: runs have a ticket."""
    folder = tmp_path / "migrations"
    shutil.copytree(SHIPPED.folder, folder)
    (folder / "versions/0004_ticket.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision, down_revision = '0004', {SHIPPED.newest!r}\n"
        "def upgrade() -> None:\n"
        "    with op.batch_alter_table('runs') as table:\n"
        "        table.add_column(sa.Column('ticket', sa.String, nullable=False, server_default='none'))\n"
    )
    return Revisions(folder, (*SHIPPED.known, "0004"))


def test_a_journal_without_a_revision_is_read_and_continued(old: Path) -> None:
    journal = SqlJournal(old)
    assert [found.run for found in journal.runs()] == ["r20261101-120000-a1b2"]
    assert journal.events("r20261101-120000-a1b2") == (
        '{"event": "Ticked", "at": 1.0}',
        '{"event": "Ticked", "at": 2.0}',
    )
    journal.acquire("rno", "r20261101-120000-a1b2")
    journal.append("r20261101-120000-a1b2", ["c"])
    assert len(journal.events("r20261101-120000-a1b2")) == 3
    journal.close()


def test_a_journal_without_a_revision_has_the_schema_of_the_first_revision(old: Path) -> None:
    database = Database(old)
    with database.reading() as connection:
        assert differences(connection) == []
    database.close()


def test_reading_a_current_journal_changes_nothing(tmp_path: Path) -> None:
    SqlJournal(tmp_path).close()
    before = (tmp_path / "journal.db").read_bytes()
    journal = SqlJournal(tmp_path)
    journal.runs()
    journal.close()
    assert (tmp_path / "journal.db").read_bytes() == before


def test_runs_of_an_old_journal_have_no_version_and_no_summary(old: Path) -> None:
    """The chain of a run is still valid: its header is hashed as its own version hashed it."""
    journal = SqlJournal(old)
    (header,) = journal.runs()
    assert (header.version, journal.summary(header.run)) == ("", None)
    assert len(journal.events(header.run)) == 2
    journal.close()


def test_an_old_journal_is_upgraded_and_keeps_its_content(old: Path, next_version: Revisions) -> None:
    database = Database(old, next_version)
    with database.reading() as connection:
        assert connection.exec_driver_sql("SELECT run, ticket FROM runs").all() == [("r20261101-120000-a1b2", "none")]
        assert connection.exec_driver_sql("SELECT count(*) FROM events").scalar() == 2
        assert MigrationContext.configure(connection).get_current_revision() == "0004"
    database.close()


def test_an_older_journal_is_copied_for_the_version_that_can_continue_it(old: Path) -> None:
    """An interrupted run is finished with the copy: ``rollout resume --state FOLDER/before-REVISION``."""
    SqlJournal(old).close()
    aside = old / f"before-{SHIPPED.newest}"
    assert [(file.name, oct(file.stat().st_mode & 0o777)) for file in aside.iterdir()] == [("journal.db", "0o600")]
    assert aside.stat().st_mode & 0o777 == 0o700
    with closing(sqlite3.connect(aside / "journal.db")) as connection:
        as_it_was = list(connection.iterdump())
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(OLD)
        assert sorted(as_it_was) == sorted(connection.iterdump())
    of_its_version = Database(aside, Revisions(SHIPPED.folder, ("0001",)))
    of_its_version.close()


def test_a_current_or_new_journal_is_not_copied(tmp_path: Path) -> None:
    for _ in range(2):
        SqlJournal(tmp_path).close()
    assert list(tmp_path.glob("before-*")) == []


def test_a_journal_that_cannot_be_copied_is_not_changed(old: Path) -> None:
    before = (old / "journal.db").read_bytes()
    (old / f"before-{SHIPPED.newest}").write_text("in the way")
    with pytest.raises(StateError, match="cannot be copied") as raised:
        SqlJournal(old)
    assert raised.value.reference == "journal-unusable"
    with closing(sqlite3.connect(old / "journal.db")) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert "summaries" not in tables
    assert len((old / "journal.db").read_bytes()) == len(before)


def test_a_journal_is_upgraded_once(place: Place, next_version: Revisions) -> None:
    Database(place).close()
    for _ in range(2):
        Database(place, next_version).close()
    database = Database(place, next_version)
    with database.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(ticket) FROM runs").scalar() == 0
    database.close()


def test_a_failed_migration_leaves_the_journal_unchanged(
    journal: SqlJournal, place: Place, next_version: Revisions
) -> None:
    journal.begin(header())
    script = next_version.folder / "versions/0004_ticket.py"
    script.write_text(script.read_text() + "    op.drop_column('runs', 'no_such_column')\n")
    with pytest.raises(StateError, match="cannot be created or upgraded") as raised:
        Database(place, next_version)
    assert raised.value.reference == "journal-unusable"
    assert [found.run for found in journal.runs()] == ["r1"]
    database = Database(place)
    with database.reading() as connection:
        assert differences(connection) == []
    database.close()


def test_a_journal_that_a_controller_uses_is_not_upgraded(
    journal: SqlJournal, place: Place, next_version: Revisions, change: Change
) -> None:
    journal.acquire("rno", "r7")
    with pytest.raises(StateError, match=r"run r7 on .* is using it") as raised:
        Database(place, next_version)
    assert (raised.value.reference, raised.value.exit_code) == ("journal-older", 5)
    change("UPDATE leases SET owner='elsewhere:b.1:1:1', heartbeat=NOW-31")
    Database(place, next_version).close()


def test_a_newer_journal_is_refused_by_everything_that_opens_it(place: Place, next_version: Revisions) -> None:
    Database(place, next_version).close()
    with pytest.raises(StateError, match="newer version of rollout upgraded the journal to revision 0004") as raised:
        SqlJournal(place)
    assert (raised.value.reference, raised.value.exit_code) == ("journal-newer", 5)


def test_checking_for_a_journal_creates_none(place: Place) -> None:
    assert not is_there(place)
    assert not is_there(place)
    SqlJournal(place).close()
    assert is_there(place)


# ------------------------------------------------------------------------------------------------------ costs of imports


@pytest.mark.process
@pytest.mark.parametrize("library", ["alembic", "mako"])
def test_a_current_journal_is_opened_without_importing_alembic(place: Place, library: str) -> None:
    SqlJournal(place).close()
    seen = elsewhere(place, f"import sys; journal.runs(); assert {library!r} not in sys.modules")
    assert seen.returncode == 0, seen.stderr


@pytest.mark.process
def test_a_file_needs_no_postgresql() -> None:
    code = "import sys, rollout.cli.main; assert not {'psycopg', 'alembic'} & sys.modules.keys()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_an_unreachable_database_is_not_treated_as_an_empty_journal() -> None:
    nowhere = PostgresUrl.reading("postgresql://rollout@127.0.0.1:1/nothing")
    for ask in (is_there, SqlJournal):
        with pytest.raises(StateError, match=r"127\.0\.0\.1"):
            ask(nowhere)
