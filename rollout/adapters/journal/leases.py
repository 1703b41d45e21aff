"""Leases: one run per cluster at a time, by one living process."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import sqlalchemy as sa

from rollout.adapters.journal.database import Database
from rollout.adapters.journal.tables import LEASES
from rollout.app.ports import Holder
from rollout.errors import StateError

LEASE_SECONDS = 30.0
"""A lease whose heartbeat is older than this, on another machine, may be taken over."""


class Leases:
    """Whose lease is whose. ``me`` is this process: host, pid and start time name it for ever."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.me = f"{socket.gethostname()}:{os.getpid()}:{_start_time(os.getpid())}"

    def acquire(self, cluster: str, run: str) -> None:
        """Take a cluster's lease, or ``StateError`` ``locked``."""
        with self._database.writing("journal-unusable", "the lease could not be written down") as connection:
            held = connection.execute(sa.select(LEASES).where(LEASES.c.cluster == cluster)).first()
            if held and held.owner != self.me and _alive(held.owner, held.heartbeat):
                raise StateError(
                    "locked",
                    f"run {held.run} has {cluster}: {_host(held.owner)}, {time.time() - held.heartbeat:.0f} s ago",
                    hint=f"wait for it, see `rollout status`; if that machine no longer exists: `rollout unlock --cluster {cluster} --reason …`",
                )
            connection.execute(sa.delete(LEASES).where(LEASES.c.cluster == cluster))
            row = {"cluster": cluster, "run": run, "owner": self.me, "heartbeat": time.time()}
            connection.execute(sa.insert(LEASES).values(row))

    def renew(self, cluster: str, run: str) -> None:
        with self._database.writing("journal-away", "the lease could not be renewed") as connection:
            mine = (LEASES.c.cluster == cluster) & self._mine(run)
            changed = connection.execute(sa.update(LEASES).where(mine).values(heartbeat=time.time()))
            if changed.rowcount != 1:
                raise StateError("lease-lost", f"another controller has taken {cluster} over; this one stops")

    def release(self, cluster: str, run: str) -> None:
        with self._database.writing("journal-away", "the lease could not be given back") as connection:
            connection.execute(sa.delete(LEASES).where((LEASES.c.cluster == cluster) & self._mine(run)))

    def check(self, connection: sa.Connection, run: str) -> None:
        """In the very transaction of a write: a controller that slept through its lease writes nothing more."""
        if connection.execute(sa.select(LEASES.c.run).where(self._mine(run))).first() is None:
            raise StateError("lease-lost", "another controller has taken this run over; this one stops")

    def holder(self, cluster: str) -> Holder | None:
        with self._database.reading() as connection:
            held = connection.execute(sa.select(LEASES).where(LEASES.c.cluster == cluster)).first()
        if held is None:
            return None
        here = held.owner.rsplit(":", 2)[0] == socket.gethostname()
        return Holder(
            run=held.run,
            host=_host(held.owner),
            silent=time.time() - held.heartbeat,
            alive=_alive(held.owner, held.heartbeat),
            here=here,
        )

    def take_away(self, connection: sa.Connection, cluster: str) -> None:
        """Whoever has it."""
        connection.execute(sa.delete(LEASES).where(LEASES.c.cluster == cluster))

    def _mine(self, run: str) -> sa.ColumnElement[bool]:
        return (LEASES.c.run == run) & (LEASES.c.owner == self.me)


def _host(owner: str) -> str:
    return owner.rsplit(":", 2)[0]


def _start_time(pid: int) -> str:
    """Field 22 of /proc/PID/stat: with the pid it names a process for ever. Empty when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rsplit(")", 1)[1].split()[19]


def _alive(owner: str, heartbeat: float) -> bool:
    """Whether a lease's owner may still act: its process is there on this machine, or its heartbeat is young."""
    host, pid, started = owner.rsplit(":", 2)
    if host == socket.gethostname() and started:
        return _start_time(int(pid)) == started
    return time.time() - heartbeat <= LEASE_SECONDS
