"""Reads the SQLite file of a journal with Python's own sqlite3: the import of SQLAlchemy takes as long as the fold of a run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rollout.adapters.journal.reads import Reads, Select
from rollout.adapters.journal_file import FILE, REVISIONS
from rollout.app.journal_away import AWAY
from rollout.core.text.terminal import printable
from rollout.errors import StateError

NEXT = "check its mode, the free space beside it, and which other process has it open"

CLOCK = "(julianday('now') - 2440587.5) * 86400.0"
"""SQL for this machine's time in epoch seconds."""

_BRIEF = frozenset(
    {
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
    }
)  # fmt: skip
"""Locked by another process, no space, a disk that does not answer: each may pass."""


class FileReader(Reads):
    """See ``app.ports.PastRuns``. For one thread."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        super().__init__(self._of_connection, folder, CLOCK)
        self._connection = connection
        self._file = folder / FILE

    @contextmanager
    def _of_connection(self) -> Iterator[Select]:
        try:
            yield self._select
        except sqlite3.Error as exc:
            reference = AWAY if may_pass(exc) else "journal-unreadable"
            message = f"the journal cannot be read: {exc} ({printable(str(self._file), 300)})"
            raise StateError(reference, message, hint=NEXT) from exc

    def _select(self, statement: str, values: Mapping[str, object]) -> Sequence[Any]:
        return self._connection.execute(statement, values).fetchall()


def may_pass(error: BaseException | None) -> bool:
    """Whether this error of sqlite3 may be over at the next attempt."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _BRIEF


def reader_of(folder: Path) -> FileReader | None:
    """``None``: the journal in the folder is not of this version's revision, or cannot be opened."""
    try:
        return _reader(folder, sqlite3.connect(folder / FILE))
    except sqlite3.Error as error:
        if not _cannot_write(error):  # it may be locked: without the lock of another process, its file is not whole
            return None
    with suppress(sqlite3.Error):
        return _reader(folder, _connect_read_only(folder / FILE))
    return None


def _reader(folder: Path, connection: sqlite3.Connection) -> FileReader | None:
    if connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(REVISIONS[-1],)]:
        return FileReader(folder, connection)
    connection.close()
    return None


def _cannot_write(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def _connect_read_only(file: Path) -> sqlite3.Connection:
    """Of a file system that SQLite cannot write to, as it must to share a file with a write-ahead log. Without one, the file is whole."""
    log = file.with_name(f"{file.name}-wal")
    if log.exists() and log.stat().st_size:
        raise sqlite3.OperationalError("its write-ahead log has events that are not in the file")
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
