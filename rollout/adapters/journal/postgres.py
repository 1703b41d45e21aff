"""PostgreSQL: one journal for several machines. The only module that knows its driver.

Nothing waits for ever. A connection takes at most ``CONNECT_SECONDS`` per host. A statement takes at most
``ANSWER_SECONDS``, or its connection is dropped. Before that the server ends statements, lock waits and idle
transactions, so that a frozen controller cannot block the lease.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from itertools import zip_longest
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rollout.adapters.journal.address import PostgresUrl
from rollout.adapters.journal.store import Store

MOST_CONNECTIONS = 4
"""Of one command. More threads than these wait for one."""

CONNECT_SECONDS = 5
ANSWER_SECONDS = 10.0
_LOCK = int.from_bytes(b"rollout", "big")
_SESSION = {
    "statement_timeout": "8s",
    "lock_timeout": "7s",  # longer than a transaction may be idle: a lease takeover waits for it
    "idle_in_transaction_session_timeout": "4s",
    "default_transaction_isolation": "read committed",  # each statement sees committed data, and rereads locked rows
}
_CLOCK = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
"""The current time: a transaction's own time is older when it waited for a lock."""
_NO_SYNC = "the server does not sync to disk (fsync = off): a crash could lose an event"
_DENIALS = (
    "password authentication failed", "no password supplied", "no pg_hba.conf entry", "authentication failed for user",
    '" does not exist', "is not permitted to log in", "permission denied for database",
    "does not support SSL", "certificate verify failed", "does not match host name", "could not read root certificate",
)  # fmt: skip
_POOLED = (
    "a connection pooler (such as pgbouncer) gives one session of the server to several clients: this journal needs "
    "sessions of its own, for its limits and locks; set pool_mode = session for this database, or name the server itself"
)
_LOOKS = 5
_Result = TypeVar("_Result")


class _Bounded(psycopg.Connection[Any]):
    """A connection that closes itself when an answer takes longer than ``ANSWER_SECONDS``."""

    def wait(self, gen: PQGen[_Result], *limits: Any, **named: Any) -> _Result:
        return super().wait(self._in_time(gen), *limits, **named)

    def _in_time(self, gen: PQGen[_Result]) -> PQGen[_Result]:
        deadline = time.monotonic() + ANSWER_SECONDS
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > deadline:
                    self.pgconn.finish()  # a later answer is discarded
                    raise psycopg.OperationalError(f"no answer within {ANSWER_SECONDS:.0f} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            result: _Result = end.value
            return result


def postgres_store(address: PostgresUrl) -> Store:
    """Does not contact the server yet."""

    def connect() -> _Bounded:
        return _Bounded.connect(
            make_conninfo(address.url, **verifying(address.url, os.environ)),
            autocommit=True,
            application_name="rollout",
            connect_timeout=CONNECT_SECONDS,
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            tcp_user_timeout=round(ANSWER_SECONDS * 1000),
        )

    def prepared() -> _Bounded:
        connection = connect()
        try:
            _check_own_session(connection, connect)
            _prepare(connection)
        except psycopg.Error:
            connection.close()
            raise
        return connection

    engine = sa.create_engine(
        "postgresql+psycopg://", creator=prepared, isolation_level="AUTOCOMMIT", pool_pre_ping=True,
        pool_size=1, max_overflow=MOST_CONNECTIONS - 1, pool_timeout=ANSWER_SECONDS,
    )  # fmt: skip
    return Store(
        engine,
        str(address),
        "check that the server runs and takes writes, and its free space",
        begin="BEGIN",
        alone=f"SELECT pg_advisory_xact_lock({_LOCK})",
        clock=_CLOCK,
        away=_away,
        denied=_denied,
        lacks_rights=_lacks_rights,
    )


def verifying(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The options with which libpq sends nothing secret to a peer without a proven identity; ``{}``: none is needed.

    libpq's default continues in clear when the peer refuses TLS. Only an explicit ``sslmode`` in the URL is weaker: an
    environment or a service may be another's. A Unix socket and a literal loopback address leave this machine never;
    a name does not count, because it may resolve to anything, and neither does what a service adds.
    """
    given = conninfo_to_dict(url)
    if "sslmode" in given:
        return {}
    service = given.get("service") or environment.get("PGSERVICE")
    hosts = str(given.get("host", environment.get("PGHOST", ""))).split(",")
    addresses = str(given.get("hostaddr", environment.get("PGHOSTADDR", ""))).split(",")
    if not service and all(_is_here(address or host or "") for host, address in zip_longest(hosts, addresses)):
        return {}
    named = "sslrootcert" in given or "PGSSLROOTCERT" in environment
    # Those of the system. ``system`` is libpq's own word, but the libpq of psycopg's wheel looks in a folder of its build.
    return {
        "sslmode": "verify-full",
        **({} if named else {"sslrootcert": ssl.get_default_verify_paths().cafile or "system"}),
    }


def _is_here(peer: str) -> bool:
    """``""`` and what begins with ``/`` or ``@`` are Unix sockets for libpq."""
    try:
        return peer[:1] in ("", "/", "@") or ip_address(peer).is_loopback
    except ValueError:
        return False


def _check_own_session(connection: _Bounded, connect: Callable[[], _Bounded]) -> None:
    """Refuse a pooler that pools transactions or statements. What is seen: one process of the server serves two of our
    connections that are both open. Only behind a pooler does the protocol name another process than the server.
    """
    if connection.info.backend_pid == _process(connection):
        return
    other = connect()
    try:
        for _ in range(_LOOKS):  # another client may get the session in between
            if _process(connection) == _process(other):
                raise psycopg.NotSupportedError(_POOLED)
    finally:
        other.close()


def _process(connection: _Bounded) -> int:
    """The process of the server that answers."""
    row = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
    return int(row[0]) if row else 0


def _prepare(connection: _Bounded) -> None:
    """Sets limits and durable commits, whatever the settings of the server or user are."""
    connection.execute("; ".join(f"SET {name} = '{value}'" for name, value in _SESSION.items()).encode())
    row = connection.execute("SELECT current_setting('fsync'), current_setting('synchronous_commit')").fetchone()
    fsync, commit = row or ("", "")
    if fsync != "on":
        raise psycopg.NotSupportedError(_NO_SYNC)
    if commit == "off":
        connection.execute("SET synchronous_commit = on")


def _denied(error: sa.exc.SQLAlchemyError) -> bool:
    """The server answered and refused this user, password or database: a retry cannot help.

    A connection that fails has no SQLSTATE, so its message is parsed: of several hosts, none may be merely unreachable.
    """
    said = str(error.__cause__)
    lines = [line for line in said.splitlines() if "connection to server" in line or "FATAL:" in line]
    return bool(lines) and all(any(words in line for words in _DENIALS) for line in lines)


def _lacks_rights(error: sa.exc.SQLAlchemyError) -> bool:
    """The schema of a user that may not even look into it is none for the server."""
    return isinstance(error.__cause__, psycopg.errors.InsufficientPrivilege | psycopg.errors.InvalidSchemaName)


def _away(error: sa.exc.SQLAlchemyError) -> bool:
    """Lost, refused, late, out of space, or a read-only standby: a failover may fix it."""
    cause = error.__cause__
    if isinstance(error, sa.exc.TimeoutError):  # all connections of this command wait for an answer
        return True
    return isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError | psycopg.InternalError)
