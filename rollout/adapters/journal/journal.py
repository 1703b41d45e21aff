"""Writes runs, their events, leases, requests and notes; ``reads`` has what is read of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path

import sqlalchemy as sa

from rollout.adapters.journal.address import PostgresUrl
from rollout.adapters.journal.database import Database, select
from rollout.adapters.journal.heads import Head, beginning
from rollout.adapters.journal.owner import is_alive, machine_of, this_process
from rollout.adapters.journal.reads import WITHDRAWN, Reads, broken, head_of
from rollout.adapters.journal.tables import EVENTS, LEASES, NOTES, REQUESTS, RUNS, SUMMARIES
from rollout.app.journal_away import AWAY
from rollout.app.ports import Note, RunHeader
from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.summary import RunSummary
from rollout.core.run.journal_codec import chain
from rollout.core.run.state import RunState
from rollout.core.run.state_codec import encode_state
from rollout.errors import StateError


class Leases:
    """Owners of leases. ``me`` is this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.me = this_process()

    def acquire(self, cluster: str, run: str) -> None:
        """Take a cluster's lease, or ``StateError`` ``locked``. Of concurrent attempts exactly one succeeds."""
        with self._database.writing("journal-unusable", "the lease could not be recorded") as connection:
            if self._take_free(connection, cluster, run):
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
                    hint=f"wait for it, see `rollout status`; if that machine no longer exists: `rollout cluster unlock --cluster {cluster} --reason …`",
                )
            mine = {"run": run, "owner": self.me, "heartbeat": self._database.now(), "regions": "[]"}
            connection.execute(sa.update(LEASES).where(LEASES.c.cluster == cluster).values(mine))

    def _take_free(self, connection: sa.Connection, cluster: str, run: str) -> bool:
        row = {"cluster": cluster, "run": run, "owner": self.me, "heartbeat": self._database.now()}
        dialect = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")  # each has its own insert-if-absent
        return bool(connection.execute(dialect.insert(LEASES).values(row).on_conflict_do_nothing()).rowcount == 1)

    def renew(self, cluster: str, run: str, regions: Sequence[RegionStanding] = ()) -> None:
        with self._database.writing(AWAY, "the lease could not be renewed") as connection:
            mine = (LEASES.c.cluster == cluster) & self._mine(run)
            seen = json.dumps([asdict(region) for region in regions])
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
            message = f"the database does not have run {run} any more: a failover or a restore lost it"
        elif (held := self._held(connection, cluster)) is not None:
            message = f"another controller has taken {cluster} over: run {held.run} on {machine_of(held.owner)}"
        else:
            message = f"the lease of {cluster} is gone: it was unlocked, or a failover or a restore lost it"
        return StateError("lease-lost", f"{message}; this one stops")

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


# How runs ended, one row per run: written with its last event, readable by later versions.


def put(connection: sa.Connection, run: str, events: int, summary: RunSummary) -> None:
    """Replaces an earlier summary: a resumed run ends again."""
    connection.execute(sa.delete(SUMMARIES).where(SUMMARIES.c.run == run))
    connection.execute(
        sa.insert(SUMMARIES).values(
            run=run,
            events=events,
            ended=summary.ended,
            ending=summary.ending,
            exit_code=summary.exit_code,
            why=summary.why,
            counter=summary.counter,
            nodes=json.dumps({state: {"count": n.count, "nodes": n.nodes} for state, n in summary.nodes.items()}),
            owed=summary.owed,
            cordoned=summary.cordoned,
            reverted=json.dumps(dict(summary.reverted)),
        )
    )


_WAITS = ~REQUESTS.c.word.startswith(WITHDRAWN)


class SqlJournal(Reads):
    """See ``app.ports.Journal``. ``place`` is a folder (created 0700, with ``journal.db`` in it) or a PostgreSQL.

    ``beside`` is the folder of this machine for the heads of chains and the ends of runs; by default the journal's own
    folder, if any.
    ``doubt``: see ``Reads``.
    """

    def __init__(
        self, place: Path | PostgresUrl, beside: Path | None = None, doubt: Callable[[str], None] | None = None
    ) -> None:
        self._database = Database(place)
        folder = beside or (place if isinstance(place, Path) else None)
        super().__init__(self._database.selecting, folder, self._database.clock, doubt)
        self._leases = Leases(self._database)
        self._heads: dict[str, Head] = {}
        self.renew = self._leases.renew
        self.release = self._leases.release

    def close(self) -> None:
        self._database.close()

    # Runs and their events.

    def begin(self, header: RunHeader) -> None:
        message = "the run could not be recorded; nothing was done"
        with self._database.writing("journal-unusable", message) as connection:
            connection.execute(
                sa.insert(RUNS).values(
                    run=header.run,
                    cluster=header.cluster,
                    goal=header.goal,
                    order=header.order,
                    counter=header.counter,
                    plan=header.plan,
                    at=header.at,
                    who=header.who,
                    reason=header.reason,
                    version=header.version,
                )
            )
        self._kept.keep(header.run, (0, beginning(header)))

    def append(self, run: str, events: Sequence[str], ended: RunSummary | None = None) -> None:
        """After ``journal-away`` the write may have succeeded: a retry with the same events stores them only once.

        A lease has one writer, so the head is known; the hash of the new head shows whether the events are stored.
        """
        with self._database.writing(AWAY, "an event could not be recorded") as connection:
            self._leases.check(connection, run)
            head = head_of(partial(select, connection), run)
            before = self._heads.setdefault(run, head)
            after, rows = _chained(run, before, events)
            if head[0] < before[0]:
                raise self._events_lost(run, head, before)
            if head == before:
                # The database may finish the commit of a lost connection late, after our check.
                try:
                    connection.execute(sa.insert(EVENTS), rows)
                except sa.exc.IntegrityError as exc:
                    raise StateError(
                        AWAY, "an event was written by a connection that had been lost; checking again"
                    ) from exc
            elif head != after:
                raise broken(f"{run} has events that its only controller did not write")
            if ended is not None:
                put(connection, run, after[0], ended)
        self._heads[run] = after
        self._kept.keep(run, after)

    def keep_end(self, state: RunState) -> None:
        run = state.order.run
        if (head := self._heads.get(run)) is not None:
            self._ends.keep(run, head[1], encode_state(state))

    def _events_lost(self, run: str, head: Head, written: Head) -> StateError:
        """The server had confirmed them: a replica without them has taken its place, or an older state was restored."""
        missing = written[0] - head[0]
        file = self._kept.file(run)
        what = f"{missing:,} event{'s' * (missing > 1)} written by this run {'are' if missing > 1 else 'is'} missing in the database"
        moved = f"move {file} away, then " if file else ""
        hint = f"nodes without a confirm revert themselves; {moved}`rollout resume {run}` reads every node first"
        return broken(f"{what}: a failover lost them (it has {head[0]:,}, {written[0]:,} were written)", hint)

    def acquire(self, cluster: str, run: str) -> None:
        self._leases.acquire(cluster, run)
        self._heads.pop(run, None)  # others may have written meanwhile

    # Leases and notes.

    def unlock(self, cluster: str, note: Note) -> None:
        with self._database.writing("journal-unusable", "the lease could not be taken away") as connection:
            self._leases.take_away(connection, cluster)
            connection.execute(sa.insert(NOTES).values(cluster=cluster, at=note.at, who=note.who, text=note.text))

    def note(self, cluster: str, note: Note) -> None:
        with self._database.writing(AWAY, "the note could not be recorded") as connection:
            connection.execute(sa.insert(NOTES).values(cluster=cluster, at=note.at, who=note.who, text=note.text))

    # Requests of other terminals to a run.

    def ask(self, run: str, word: str, who: str, reason: str, revert: str) -> int:
        values = {"run": run, "word": word, "who": who, "reason": reason, "revert": revert, "at": time.time()}
        with self._database.writing("journal-unusable", "the request could not be recorded") as connection:
            self._database.alone(connection)  # a request is visible before any with a higher number is
            key = connection.execute(sa.insert(REQUESTS).values(values)).inserted_primary_key
        return int(key[0]) if key else 0

    def withdraw(self, request: int) -> None:
        """The record stays, with author and reason; its word becomes one that no version knows."""
        change = sa.update(REQUESTS).where((REQUESTS.c.number == request) & _WAITS)
        with self._database.writing("journal-unusable", "the request could not be withdrawn") as connection:
            connection.execute(change.values(word=WITHDRAWN + REQUESTS.c.word))


def _chained(run: str, head: Head, events: Sequence[str]) -> tuple[Head, list[dict[str, object]]]:
    """Events as rows after ``head``, and the new head."""
    number, hashed = head
    rows: list[dict[str, object]] = []
    for body in events:
        number, hashed = number + 1, chain(hashed, body)
        rows.append({"run": run, "number": number, "body": body, "hash": hashed})
    return (number, hashed), rows
