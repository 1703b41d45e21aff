"""The journal in a database, through SQLAlchemy Core: SQLite by default, in WAL mode with full sync.

The only module that knows the database. Bodies are text, hashes chain them (see ``core.journal_codec.chain``): a journal
that was changed or lost a line is refused, never guessed at.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from rollout.app.ports import RunHeader
from rollout.core.journal_codec import GENESIS, chain
from rollout.errors import StateError

LEASE_SECONDS = 30.0
"""A lease whose heartbeat is older than this, on another machine, may be taken over."""

_META = sa.MetaData()
_RUNS = sa.Table(
    "runs",
    _META,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run", sa.String, unique=True, nullable=False),
    sa.Column("cluster", sa.String, nullable=False),
    sa.Column("goal", sa.String, nullable=False),
    sa.Column("order", sa.Text, nullable=False),
    sa.Column("counter", sa.Integer, nullable=False),
    sa.Column("plan", sa.LargeBinary, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("who", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
)
_EVENTS = sa.Table(
    "events",
    _META,
    sa.Column("run", sa.String, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
)
_LEASES = sa.Table(
    "leases",
    _META,
    sa.Column("cluster", sa.String, primary_key=True),
    sa.Column("run", sa.String, nullable=False),
    sa.Column("owner", sa.String, nullable=False),
    sa.Column("heartbeat", sa.Float, nullable=False),
)


class SqlJournal:
    """See the module. ``folder`` is made 0700; the file in it is ``journal.db``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._engine = sa.create_engine(f"sqlite:///{folder / 'journal.db'}", isolation_level="AUTOCOMMIT")
        sa.event.listen(self._engine, "connect", _pragmas)
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{_start_time(os.getpid())}"
        with self._writing("journal-unusable", "the journal cannot be opened") as connection:
            _META.create_all(connection)

    def begin(self, header: RunHeader) -> None:
        with self._writing("journal-unusable", "the run could not be written down; nothing was done") as connection:
            connection.execute(
                sa.insert(_RUNS).values(
                    run=header.run,
                    cluster=header.cluster,
                    goal=header.goal,
                    order=header.order,
                    counter=header.counter,
                    plan=header.plan,
                    at=header.at,
                    who=header.who,
                    reason=header.reason,
                )
            )

    def append(self, run: str, events: Sequence[str]) -> None:
        with self._writing("journal-away", "an event could not be written down") as connection:
            self._check_lease(connection, run)
            number, previous = self._head(connection, run)
            rows = []
            for offset, body in enumerate(events, start=1):
                previous = chain(previous, body)
                rows.append({"run": run, "number": number + offset, "body": body, "hash": previous})
            connection.execute(sa.insert(_EVENTS), rows)

    def header(self, run: str) -> RunHeader:
        for header in self.runs():
            if header.run == run:
                return header
        raise StateError("no-such-run", f"the journal has no run {run!r}", hint="`rollout status` lists the runs")

    def events(self, run: str) -> tuple[str, ...]:
        query = sa.select(_EVENTS.c.body, _EVENTS.c.hash).where(_EVENTS.c.run == run).order_by(_EVENTS.c.number)
        previous = GENESIS
        bodies: list[str] = []
        with self._reading() as connection:
            for body, hashed in connection.execute(query):
                previous = chain(previous, body)
                if previous != hashed:
                    raise StateError(
                        "journal-broken",
                        f"event {len(bodies) + 1} of {run} is not the one that was written",
                        hint="the nodes know where they stand: `rollout rollback --cluster C --emergency` needs no journal",
                    )
                bodies.append(body)
        return tuple(bodies)

    def runs(self, cluster: str = "") -> tuple[RunHeader, ...]:
        query = sa.select(_RUNS).order_by(_RUNS.c.number.desc())
        if cluster:
            query = query.where(_RUNS.c.cluster == cluster)
        with self._reading() as connection:
            return tuple(RunHeader(*row[1:]) for row in connection.execute(query))

    def highest_counter(self, cluster: str) -> int:
        """Of the runs begun here; a node that knows a higher one says so when it is claimed."""
        query = sa.select(sa.func.max(_RUNS.c.counter)).where(_RUNS.c.cluster == cluster)
        with self._reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def acquire(self, cluster: str, run: str) -> None:
        with self._writing("journal-unusable", "the lease could not be written down") as connection:
            held = connection.execute(sa.select(_LEASES).where(_LEASES.c.cluster == cluster)).first()
            if held and held.owner != self._owner and not _dead(held.owner, held.heartbeat):
                raise StateError(
                    "locked",
                    f"run {held.run} has {cluster}: {held.owner.rsplit(':', 2)[0]}, {time.time() - held.heartbeat:.0f} s ago",
                    hint="wait for it, or see `rollout status`",
                )
            connection.execute(sa.delete(_LEASES).where(_LEASES.c.cluster == cluster))
            row = {"cluster": cluster, "run": run, "owner": self._owner, "heartbeat": time.time()}
            connection.execute(sa.insert(_LEASES).values(row))

    def renew(self, cluster: str, run: str) -> None:
        with self._writing("journal-away", "the lease could not be renewed") as connection:
            mine = (_LEASES.c.cluster == cluster) & self._mine(run, self._owner)
            changed = connection.execute(sa.update(_LEASES).where(mine).values(heartbeat=time.time()))
            if changed.rowcount != 1:
                raise StateError("lease-lost", f"another controller has taken {cluster} over; this one stops")

    def release(self, cluster: str, run: str) -> None:
        with self._writing("journal-away", "the lease could not be given back") as connection:
            mine = (_LEASES.c.cluster == cluster) & self._mine(run, self._owner)
            connection.execute(sa.delete(_LEASES).where(mine))

    @staticmethod
    def _mine(run: str, owner: str) -> sa.ColumnElement[bool]:
        return (_LEASES.c.run == run) & (_LEASES.c.owner == owner)

    def _check_lease(self, connection: sa.Connection, run: str) -> None:
        """In the very transaction of the write: a controller that slept through its lease writes nothing more."""
        if connection.execute(sa.select(_LEASES.c.run).where(self._mine(run, self._owner))).first() is None:
            raise StateError("lease-lost", "another controller has taken this run over; this one stops")

    def close(self) -> None:
        self._engine.dispose()

    @staticmethod
    def _head(connection: sa.Connection, run: str) -> tuple[int, str]:
        query = sa.select(_EVENTS.c.number, _EVENTS.c.hash).where(_EVENTS.c.run == run)
        row = connection.execute(query.order_by(_EVENTS.c.number.desc()).limit(1)).first()
        return (int(row.number), str(row.hash)) if row else (0, GENESIS)

    @contextmanager
    def _writing(self, reference: str, message: str) -> Iterator[sa.Connection]:
        """One durable transaction that holds the write lock from its start."""
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
    def _reading(self) -> Iterator[sa.Connection]:
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


def _start_time(pid: int) -> str:
    """Field 22 of /proc/PID/stat: with the pid it names a process for ever. Empty when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rsplit(")", 1)[1].split()[19]


def _dead(owner: str, heartbeat: float) -> bool:
    """Whether a lease's owner can no longer act: its process is gone from this machine, or its heartbeat is too old."""
    host, pid, started = owner.rsplit(":", 2)
    if host == socket.gethostname() and started:
        return _start_time(int(pid)) != started
    return time.time() - heartbeat > LEASE_SECONDS
