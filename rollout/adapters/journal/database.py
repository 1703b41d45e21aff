"""The journal's database: how it is opened, written and read, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa

from rollout.adapters.journal import schema
from rollout.adapters.journal.address import PostgresUrl
from rollout.adapters.journal.schema import SHIPPED, Revisions
from rollout.adapters.journal.sqlite import FILE, sqlite_store
from rollout.adapters.journal.store import Store
from rollout.errors import StateError

AWAY = "journal-away"
_UNUSABLE = "journal-unusable"
_ADDRESS = "check the user, the password and the database of the journal's address"


class Database:
    """In a folder, or at a PostgreSQL. Thread-safe; every write is durable before it returns.

    Opening it makes the tables where there are none, and brings older ones up to date.
    """

    def __init__(self, place: Path | PostgresUrl, revisions: Revisions = SHIPPED) -> None:
        self._store = _store(place)
        try:
            self._open(revisions)
        except BaseException:
            self.close()
            raise

    def _open(self, revisions: Revisions) -> None:
        with self.reading(_UNUSABLE, "the journal cannot be opened") as connection:
            due = schema.is_due(connection, revisions)
        if due:
            with self.writing(_UNUSABLE, "the journal cannot be made or brought up to date") as connection:
                if self._store.alone:
                    connection.exec_driver_sql(self._store.alone)
                schema.bring_up(connection, revisions, self.now(), self._store.keep)

    def close(self) -> None:
        self._store.engine.dispose()

    def now(self) -> sa.ColumnElement[float]:
        """Seconds since the epoch by the database's own clock: machines need not agree."""
        return self._store.now()

    @contextmanager
    def writing(self, reference: str, message: str) -> Iterator[sa.Connection]:
        """One durable transaction. Failing is ``StateError`` ``reference``.

        SQLite holds the write lock from its start; on PostgreSQL rows are locked by who reads them to change them.
        """
        with self._translated(reference, message), self._store.engine.connect() as connection:
            connection.exec_driver_sql(self._store.begin)
            try:
                yield connection
            except BaseException:
                with suppress(sa.exc.SQLAlchemyError):  # a lost connection has rolled back by itself
                    connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")

    @contextmanager
    def reading(
        self, reference: str = "journal-unreadable", message: str = "the journal cannot be read"
    ) -> Iterator[sa.Connection]:
        with self._translated(reference, message), self._store.engine.connect() as connection:
            yield connection

    def _translated(self, reference: str, message: str) -> AbstractContextManager[None]:
        return _translated(self._store, reference, message)


@contextmanager
def _translated(store: Store, reference: str, message: str) -> Iterator[None]:
    """What may go well a moment later is ``journal-away``, but for what is not tried again (``journal-unusable``)."""
    try:
        yield
    except sa.exc.SQLAlchemyError as exc:
        text = " ".join(f"{message}: {exc.__cause__ or exc}".split())
        if reference != AWAY and store.denied(exc):  # who has written before waits: its password was right a moment ago
            raise StateError(_UNUSABLE, text, hint=_ADDRESS) from exc
        if reference != _UNUSABLE:
            reference = AWAY if store.away(exc) else _UNUSABLE if reference == AWAY else reference
        raise StateError(reference, text) from exc


def is_there(place: Path | PostgresUrl) -> bool:
    """Whether there is a journal; asking makes none."""
    if isinstance(place, Path):
        return (place / FILE).exists()
    store = _store(place)
    try:
        with (
            _translated(store, "journal-unreadable", "the journal cannot be read"),
            store.engine.connect() as connection,
        ):
            return schema.is_made(connection)
    finally:
        store.engine.dispose()


def _store(place: Path | PostgresUrl) -> Store:
    if isinstance(place, Path):
        return sqlite_store(place)
    from rollout.adapters.journal.postgres import postgres_store  # noqa: PLC0415 - 0.1 s, and most journals are files

    return postgres_store(place)
