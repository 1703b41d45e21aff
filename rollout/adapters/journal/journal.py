"""Runs, their events, leases, requests and notes. Bodies of events are text and hashes chain them (see
``core.run.journal_codec.chain``): a journal that was changed or lost a line is refused, never guessed at.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import sqlalchemy as sa

from rollout.adapters.journal.database import Database
from rollout.adapters.journal.leases import Leases
from rollout.adapters.journal.tables import EVENTS, NOTES, REQUESTS, RUNS
from rollout.app.ports import Holder, Note, RunHeader
from rollout.core.run.journal_codec import GENESIS, chain
from rollout.core.run.requests import Request
from rollout.errors import StateError


class SqlJournal:
    """See ``app.ports.Journal``. ``folder`` is made 0700; the file in it is ``journal.db``."""

    def __init__(self, folder: Path) -> None:
        self._database = Database(folder)
        self._leases = Leases(self._database)
        self.acquire = self._leases.acquire
        self.renew = self._leases.renew
        self.release = self._leases.release

    def close(self) -> None:
        self._database.close()

    # Runs and their events.

    def begin(self, header: RunHeader) -> None:
        message = "the run could not be written down; nothing was done"
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
                )
            )

    def append(self, run: str, events: Sequence[str]) -> None:
        with self._database.writing("journal-away", "an event could not be written down") as connection:
            self._leases.check(connection, run)
            number, previous = self._head(connection, run)
            rows = []
            for offset, body in enumerate(events, start=1):
                previous = chain(previous, body)
                rows.append({"run": run, "number": number + offset, "body": body, "hash": previous})
            connection.execute(sa.insert(EVENTS), rows)

    def header(self, run: str) -> RunHeader:
        for header in self.runs():
            if header.run == run:
                return header
        raise StateError("no-such-run", f"the journal has no run {run!r}", hint="`rollout status` lists the runs")

    def events(self, run: str, after: int = 0) -> tuple[str, ...]:
        columns = sa.select(EVENTS.c.number, EVENTS.c.body, EVENTS.c.hash)
        query = columns.where((EVENTS.c.run == run) & (EVENTS.c.number >= after)).order_by(EVENTS.c.number)
        previous = GENESIS
        bodies: list[str] = []
        with self._database.reading() as connection:
            for number, body, hashed in connection.execute(query):
                if number == after:
                    previous = hashed
                    continue
                previous = chain(previous, body)
                if previous != hashed:
                    raise StateError(
                        "journal-broken",
                        f"event {after + len(bodies) + 1} of {run} is not the one that was written",
                        hint="the nodes know where they stand: `rollout rollback --cluster C --emergency` needs no journal",
                    )
                bodies.append(body)
        return tuple(bodies)

    def runs(self, cluster: str = "") -> tuple[RunHeader, ...]:
        query = sa.select(RUNS).order_by(RUNS.c.number.desc())
        if cluster:
            query = query.where(RUNS.c.cluster == cluster)
        with self._database.reading() as connection:
            return tuple(RunHeader(*row[1:]) for row in connection.execute(query))

    def highest_counter(self, cluster: str) -> int:
        """Of the runs begun here; a node that knows a higher one says so when it is claimed."""
        query = sa.select(sa.func.max(RUNS.c.counter)).where(RUNS.c.cluster == cluster)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    @staticmethod
    def _head(connection: sa.Connection, run: str) -> tuple[int, str]:
        query = sa.select(EVENTS.c.number, EVENTS.c.hash).where(EVENTS.c.run == run)
        row = connection.execute(query.order_by(EVENTS.c.number.desc()).limit(1)).first()
        return (int(row.number), str(row.hash)) if row else (0, GENESIS)

    # The lease, seen from outside.

    def holder(self, cluster: str) -> Holder | None:
        return self._leases.holder(cluster)

    def unlock(self, cluster: str, note: Note) -> None:
        with self._database.writing("journal-unusable", "the lease could not be taken away") as connection:
            self._leases.take_away(connection, cluster)
            connection.execute(sa.insert(NOTES).values(cluster=cluster, at=note.at, who=note.who, text=note.text))

    def note(self, cluster: str, note: Note) -> None:
        with self._database.writing("journal-unusable", "the note could not be written down") as connection:
            connection.execute(sa.insert(NOTES).values(cluster=cluster, at=note.at, who=note.who, text=note.text))

    def notes(self, cluster: str) -> tuple[Note, ...]:
        query = sa.select(NOTES.c.at, NOTES.c.who, NOTES.c.text).where(NOTES.c.cluster == cluster)
        with self._database.reading() as connection:
            return tuple(Note(*row) for row in connection.execute(query.order_by(NOTES.c.number)))

    # What other terminals ask of a run.

    def ask(self, run: str, word: str, who: str, reason: str, revert: str) -> int:
        values = {"run": run, "word": word, "who": who, "reason": reason, "revert": revert, "at": time.time()}
        with self._database.writing("journal-unusable", "the request could not be written down") as connection:
            key = connection.execute(sa.insert(REQUESTS).values(values)).inserted_primary_key
        return int(key[0]) if key else 0

    def requests(self, run: str, after: int) -> tuple[Request, ...]:
        columns = (REQUESTS.c.number, REQUESTS.c.word, REQUESTS.c.who, REQUESTS.c.reason, REQUESTS.c.revert)
        query = sa.select(*columns).where((REQUESTS.c.run == run) & (REQUESTS.c.number > after))
        with self._database.reading() as connection:
            return tuple(Request(*row) for row in connection.execute(query.order_by(REQUESTS.c.number)))
