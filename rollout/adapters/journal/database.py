"""The journal's database: how it is opened, written and read, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from rollout.adapters.journal.tables import META
from rollout.errors import StateError


class Database:
    """One SQLite file in ``folder``, which is made 0700. Thread-safe; every write is durable before it returns."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._engine = sa.create_engine(f"sqlite:///{folder / 'journal.db'}", isolation_level="AUTOCOMMIT")
        sa.event.listen(self._engine, "connect", _pragmas)
        with self.writing("journal-unusable", "the journal cannot be opened") as connection:
            META.create_all(connection)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def writing(self, reference: str, message: str) -> Iterator[sa.Connection]:
        """One durable transaction that holds the write lock from its start. Failing is ``StateError`` ``reference``."""
        try:
            with self._engine.connect() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                try:
                    yield connection
                except BaseException:
                    connection.exec_driver_sql("ROLLBACK")
                    raise
                connection.exec_driver_sql("COMMIT")
        except sa.exc.SQLAlchemyError as exc:
            raise StateError(reference, f"{message}: {exc.__cause__ or exc}") from exc

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except sa.exc.SQLAlchemyError as exc:
            raise StateError("journal-unreadable", f"the journal cannot be read: {exc.__cause__ or exc}") from exc


def _pragmas(connection: sa.engine.interfaces.DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
