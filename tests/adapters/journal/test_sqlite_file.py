"""A journal's file, read without SQLAlchemy: what ``SqlJournal`` reads of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.adapters.journal.sqlite_file import reader_of
from rollout.app.ports import Note, PastRuns, RunHeader
from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.summary import NodeCount, RunSummary
from rollout.core.run.machine import opening
from rollout.errors import StateError
from tests.orders import make_order

SUMMARY = RunSummary(9.5, "done", 0, "", 3, {"confirmed": NodeCount(2, "n[1-2]")}, "", "n1", {"r0": "n2"})
READINGS: dict[str, Callable[[PastRuns], object]] = {
    "headers": lambda journal: [journal.header(run) for run in ("r1", "r2")],
    "the list": lambda journal: journal.listed(),
    "runs": lambda journal: [journal.runs(), journal.runs("iad"), journal.runs("nowhere")],
    "events": lambda journal: [journal.events("r1"), journal.events("r1", 1), journal.events("r2")],
    "heads": lambda journal: [journal.head("r1"), journal.head("r2"), journal.head("no run")],
    "ends": lambda journal: [journal.kept_end(run) for run in ("r1", "r2", "no run")],
    "summaries": lambda journal: [journal.summary("r1"), journal.summary("r2")],
    "counters": lambda journal: [journal.highest_counter("rno"), journal.highest_counter("nowhere")],
    "notes": lambda journal: [journal.notes("rno"), journal.notes("iad")],
    "requests": lambda journal: [journal.requests("r1", 0), journal.requests("r1", 1)],
}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqlJournal]:
    """Two runs: one has ended, one is at work."""
    made = SqlJournal(tmp_path)
    made.begin(RunHeader("r1", "rno", "apply", '{"x": "ä"}', 3, b"\x00plan", 1.0, "me@here", "why", "1.0"))
    made.acquire("rno", "r1")
    made.append("r1", ["a"])
    made.append("r1", ["b: 100 % 'quoted'", "c"], SUMMARY)
    made.keep_end(opening(make_order({"a": 1}), 1, 1.0)[0])
    made.begin(RunHeader("r2", "iad", "revert", "{}", 5, b"", 2.25, "me@here", ""))
    made.acquire("iad", "r2")
    made.renew("iad", "r2", (RegionStanding("west", ("10.0.0.1",), 1, 2),))
    for number in range(3):
        made.note("rno", Note(float(number), "me", f"note {number}"))
        made.withdraw(made.ask("r1", "pause", "me", "withdrawn", ""))
        made.ask("r1", "abort", "me", "why", "run")
    yield made
    made.close()


@pytest.mark.parametrize("what", READINGS)
def test_it_reads_the_same(journal: SqlJournal, tmp_path: Path, what: str) -> None:
    reader = reader_of(tmp_path)
    assert reader is not None
    assert READINGS[what](reader) == READINGS[what](journal)


def test_it_reads_the_same_lease(journal: SqlJournal, tmp_path: Path) -> None:
    reader = reader_of(tmp_path)
    assert reader is not None
    first, held, last = journal.holder("iad"), reader.holder("iad"), journal.holder("iad")
    assert first is not None
    assert held is not None
    assert last is not None
    assert first.silent <= held.silent <= last.silent, "by one clock"
    assert (held.run, held.alive, held.here, held.regions) == ("r2", True, True, first.regions)
    assert reader.holder("nowhere") is None


def test_it_sees_what_a_controller_writes_meanwhile(journal: SqlJournal, tmp_path: Path) -> None:
    reader = reader_of(tmp_path)
    assert reader is not None
    assert reader.events("r2") == ()
    journal.append("r2", ["a"])
    assert reader.events("r2") == ("a",)


def _changed(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "journal.db", isolation_level=None)) as connection:
        connection.execute(statement)


def test_a_changed_event_is_refused(journal: SqlJournal, tmp_path: Path) -> None:
    _changed(tmp_path, "UPDATE events SET body = 'x' WHERE number = 2")
    reader = reader_of(tmp_path)
    assert reader is not None
    with pytest.raises(StateError, match="event 2 of r1 is not the one that was written"):
        reader.events("r1")


def test_a_table_that_cannot_be_read_is_an_error_of_the_journal(journal: SqlJournal, tmp_path: Path) -> None:
    _changed(tmp_path, "DROP TABLE notes")
    reader = reader_of(tmp_path)
    assert reader is not None
    with pytest.raises(StateError, match="cannot be read") as raised:
        reader.notes("rno")
    assert raised.value.reference == "journal-unreadable"


def test_a_file_that_another_process_has_locked_is_away(journal: SqlJournal, tmp_path: Path) -> None:
    reader = reader_of(tmp_path)
    assert reader is not None
    reader._connection.execute("PRAGMA busy_timeout = 0")  # noqa: SLF001 - not to wait five seconds
    journal.close()
    with closing(sqlite3.connect(tmp_path / "journal.db", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        reader._connection.close()  # noqa: SLF001 - a connection in use would keep the other one out
        reader._connection = sqlite3.connect(tmp_path / "journal.db", timeout=0)  # noqa: SLF001
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StateError, match="locked") as raised:
            reader.notes("rno")
    assert raised.value.reference == "journal-away"
    assert str(tmp_path / "journal.db") in raised.value.message
    assert "which other process" in raised.value.hint


def test_a_file_that_is_locked_is_not_read_without_its_lock(
    journal: SqlJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without a log holds what another process writes now. It was shown as if it were written."""
    journal.close()
    with closing(sqlite3.connect(tmp_path / "journal.db", isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0))
        assert reader_of(tmp_path) is None
        other.execute("ROLLBACK")
        assert reader_of(tmp_path) is not None


def test_a_journal_of_another_revision_is_left_to_the_upgrade(journal: SqlJournal, tmp_path: Path) -> None:
    _changed(tmp_path, "UPDATE alembic_version SET version_num = '0002'")
    assert reader_of(tmp_path) is None
    assert reader_of(tmp_path / "nowhere") is None
