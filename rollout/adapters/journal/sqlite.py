"""SQLite: one file in a folder of this machine, in WAL mode with full sync."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import sqlalchemy as sa

from rollout.adapters.journal.store import Store

FILE = "journal.db"
_BRIEF = frozenset(
    {
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY,
    }
)  # fmt: skip
"""Locked by another process, no space, a disk that does not answer: each may pass."""


def sqlite_store(folder: Path) -> Store:
    """``folder`` is created 0700."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = sa.create_engine(f"sqlite:///{folder / FILE}", isolation_level="AUTOCOMMIT")
    sa.event.listen(engine, "connect", _pragmas)

    def keep(name: str) -> None:
        _copy(engine, folder / name)

    return Store(engine, begin="BEGIN IMMEDIATE", alone="", now=_now, away=_away, keep=keep)


def _copy(engine: sa.Engine, aside: Path) -> None:
    """Copies all committed data into the folder ``aside`` (0700, durable), also while another connection writes."""
    aside.mkdir(mode=0o700, exist_ok=True)
    fresh = aside / f"{FILE}.new"
    fresh.unlink(missing_ok=True)
    with engine.connect() as connection:
        connection.exec_driver_sql("VACUUM INTO ?", (str(fresh),))
    fresh.chmod(0o600)
    with fresh.open("rb") as written:
        os.fsync(written.fileno())
    fresh.replace(aside / FILE)


def _pragmas(connection: sa.engine.interfaces.DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _now() -> sa.ColumnElement[float]:
    """A file uses this machine's clock."""
    return sa.literal(time.time(), sa.Float)


def _away(error: sa.exc.SQLAlchemyError) -> bool:
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _BRIEF
