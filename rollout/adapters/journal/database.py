"""The journal's database: opening, writing, reading, the meaning of its errors, and its usual form, a file of SQLite."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from rollout.adapters.journal import schema
from rollout.adapters.journal.address import PostgresUrl
from rollout.adapters.journal.reads import Select
from rollout.adapters.journal.schema import SHIPPED, Revisions
from rollout.adapters.journal.sqlite_file import CLOCK, NEXT, may_pass
from rollout.adapters.journal.store import Store
from rollout.adapters.journal_file import FILE, has_journal
from rollout.app.journal_away import AWAY
from rollout.core.text.terminal import printable
from rollout.errors import StateError, UsageError, with_extra

_UNUSABLE = "journal-unusable"
_ADDRESS = (
    "check the user, the password and the database of the journal's address; "
    "a certificate of your own authority: add sslmode=verify-full&sslrootcert=FILE to the URL"
)
_RIGHTS = "the user lacks a right; which ones each role needs: docs/journal.md, `A PostgreSQL for it`"


class Database:
    """In a folder, or at a PostgreSQL. Thread-safe; every write is durable before it returns.

    Opening it creates missing tables and upgrades older ones.
    """

    def __init__(self, place: Path | PostgresUrl, revisions: Revisions = SHIPPED) -> None:
        self._store = _store(place)
        try:
            with self.reading(_UNUSABLE, "the journal cannot be opened") as connection:
                due = schema.is_due(connection, revisions)
            if due:
                with self.writing(_UNUSABLE, "the journal cannot be created or upgraded") as connection:
                    self.alone(connection)
                    schema.bring_up(connection, revisions, self.now(), self._store.keep)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._store.engine.dispose()

    @property
    def clock(self) -> str:
        """SQL for epoch seconds by the database's own clock: clocks of machines may differ."""
        return self._store.clock

    def now(self) -> sa.ColumnElement[float]:
        """``clock`` as a part of a statement."""
        return sa.literal_column(self.clock, sa.Float())

    @contextmanager
    def writing(self, reference: str, message: str) -> Iterator[sa.Connection]:
        """One durable transaction. A failure raises ``StateError`` with ``reference``.

        SQLite holds the write lock from the start; on PostgreSQL a read for update locks its rows.
        """
        with self._translated(reference, message), self._store.engine.connect() as connection:
            connection.exec_driver_sql(self._store.begin)
            try:
                yield connection
            except BaseException:
                with suppress(sa.exc.SQLAlchemyError):  # a lost connection rolls back by itself
                    connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")

    def alone(self, connection: sa.Connection) -> None:
        """Let no other transaction that calls this go on until this one ends."""
        if self._store.alone:
            connection.exec_driver_sql(self._store.alone)

    @contextmanager
    def reading(
        self, reference: str = "journal-unreadable", message: str = "the journal cannot be read"
    ) -> Iterator[sa.Connection]:
        with self._translated(reference, message), self._store.engine.connect() as connection:
            yield connection

    @contextmanager
    def selecting(self) -> Iterator[Select]:
        with self.reading() as connection:
            yield partial(select, connection)

    def _translated(self, reference: str, message: str) -> AbstractContextManager[None]:
        return _translated(self._store, reference, message)


def select(connection: sa.Connection, statement: str, values: Mapping[str, object]) -> Sequence[sa.Row[Any]]:
    """See ``reads.Select``."""
    return connection.execute(sa.text(statement), values).all()


@contextmanager
def _translated(store: Store, reference: str, message: str) -> Iterator[None]:
    """Errors that may pass are ``journal-away``; errors that a retry cannot fix are ``journal-unusable``."""
    try:
        yield
    except sa.exc.SQLAlchemyError as exc:
        text = " ".join(f"{message}: {exc.__cause__ or exc} ({store.place})".split())
        if reference != AWAY and store.denied(
            exc
        ):  # after a successful write, wait: the password was right a moment ago
            raise StateError(_UNUSABLE, text, hint=_ADDRESS) from exc
        if reference != _UNUSABLE:
            reference = AWAY if store.away(exc) else _UNUSABLE if reference == AWAY else reference
        raise StateError(reference, text, hint=_RIGHTS if store.lacks_rights(exc) else store.next) from exc


def is_there(place: Path | PostgresUrl) -> bool:
    """Whether there is a journal; the check creates none."""
    if isinstance(place, Path):
        return has_journal(place)
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
    try:
        from rollout.adapters.journal.postgres import postgres_store  # noqa: PLC0415 - 0.1 s, and most journals are files
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        message = "a journal in PostgreSQL needs the extra `postgresql` of the package, which is not installed"
        raise UsageError("no-postgresql", message, hint=with_extra("postgresql")) from None
    return postgres_store(place)


# SQLite: one file in a folder of this machine, in WAL mode with full sync.


def sqlite_store(folder: Path) -> Store:
    """``folder`` is created 0700."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    engine = sa.create_engine(f"sqlite:///{folder / FILE}", isolation_level="AUTOCOMMIT")
    sa.event.listen(engine, "connect", _pragmas)

    def keep(name: str) -> None:
        _copy(engine, folder / name)

    return Store(
        engine, printable(str(folder / FILE), 300), NEXT, begin="BEGIN IMMEDIATE", alone="", clock=CLOCK, away=_away,
        keep=keep,
    )  # fmt: skip


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


def _away(error: sa.exc.SQLAlchemyError) -> bool:
    return may_pass(error.__cause__)
