"""Leases: one run per cluster at a time, held by one living process.

The age of a lease is measured with the database's clock at both ends: clocks of machines may differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module

import sqlalchemy as sa

from rollout.adapters.journal.database import Database
from rollout.adapters.journal.owner import is_alive, machine_of, this_process
from rollout.adapters.journal.tables import LEASES, RUNS
from rollout.app.journal_away import AWAY
from rollout.core.model.regions import RegionStanding
from rollout.errors import StateError


class Leases:
    """Owners of leases. ``me`` is this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.me = this_process()

    def acquire(self, cluster: str, run: str) -> None:
        """Take a cluster's lease, or ``StateError`` ``locked``. Of concurrent attempts exactly one succeeds."""
        with self._database.writing("journal-unusable", "the lease could not be recorded") as connection:
            row = {"cluster": cluster, "run": run, "owner": self.me, "heartbeat": self._database.now()}
            # each dialect has its own insert-if-absent
            dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
            if connection.execute(dialect.insert(LEASES).values(row).on_conflict_do_nothing()).rowcount == 1:
                return
            held = self._held(connection, cluster)
            if held is None:
                raise StateError(
                    "locked", f"the lease of {cluster} was released during this attempt", hint="run the command again"
                )
            if held.owner != self.me and is_alive(held.owner, held.silent):
                raise StateError(
                    "locked",
                    f"run {held.run} holds {cluster}: {machine_of(held.owner)}, last heartbeat {held.silent:.0f} s ago",
                    hint=f"wait for it, see `rollout status`; if that machine no longer exists: `rollout unlock --cluster {cluster} --reason …`",
                )
            mine = {"run": run, "owner": self.me, "heartbeat": self._database.now(), "regions": "[]"}
            connection.execute(sa.update(LEASES).where(LEASES.c.cluster == cluster).values(mine))

    def renew(self, cluster: str, run: str, regions: Sequence[RegionStanding] = ()) -> None:
        with self._database.writing(AWAY, "the lease could not be renewed") as connection:
            mine = (LEASES.c.cluster == cluster) & self._mine(run)
            seen = json.dumps([asdict(each) for each in regions])
            beat = sa.update(LEASES).where(mine).values(heartbeat=self._database.now(), regions=seen)
            changed = connection.execute(beat)
            if changed.rowcount != 1:
                raise self._lost(connection, cluster)

    def release(self, cluster: str, run: str) -> None:
        with self._database.writing(AWAY, "the lease could not be released") as connection:
            connection.execute(sa.delete(LEASES).where((LEASES.c.cluster == cluster) & self._mine(run)))

    def check(self, connection: sa.Connection, run: str) -> None:
        """In the same transaction as a write: a controller that lost its lease writes nothing more.

        The row is locked until the write is done: a takeover waits for the write and sees it.
        """
        mine = sa.select(LEASES.c.run).where(self._mine(run)).with_for_update(read=True)
        if connection.execute(mine).first() is None:
            cluster = connection.execute(sa.select(RUNS.c.cluster).where(RUNS.c.run == run)).scalar()
            raise self._lost(connection, str(cluster or ""), run)

    def _lost(self, connection: sa.Connection, cluster: str, run: str = "") -> StateError:
        """What became of a lease of ours. ``cluster`` ``""``: the database does not know ``run`` either."""
        if not cluster:
            said = f"the database does not have run {run} any more: a failover or a restore lost it"
        elif (held := self._held(connection, cluster)) is not None:
            said = f"another controller has taken {cluster} over: run {held.run} on {machine_of(held.owner)}"
        else:
            said = f"the lease of {cluster} is gone: it was unlocked, or a failover or a restore lost it"
        return StateError("lease-lost", f"{said}; this one stops")

    def take_away(self, connection: sa.Connection, cluster: str) -> None:
        """The current holder."""
        connection.execute(sa.delete(LEASES).where(LEASES.c.cluster == cluster))

    def _held(self, connection: sa.Connection, cluster: str) -> sa.Row[tuple[str, str, float]] | None:
        """The row is locked until the transaction ends."""
        silent = (self._database.now() - LEASES.c.heartbeat).label("silent")
        query = sa.select(LEASES.c.run, LEASES.c.owner, silent).where(LEASES.c.cluster == cluster)
        return connection.execute(query.with_for_update()).first()

    def _mine(self, run: str) -> sa.ColumnElement[bool]:
        return (LEASES.c.run == run) & (LEASES.c.owner == self.me)
