"""Runs, their events, leases, requests and notes. Bodies of events are text and hashes chain them (see
``core.run.journal_codec.chain``): a journal with a changed or missing line is refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from rollout.adapters.journal.address import PostgresUrl
from rollout.adapters.journal.database import AWAY, Database
from rollout.adapters.journal.heads import Head, Heads, beginning
from rollout.adapters.journal.leases import Leases
from rollout.adapters.journal.tables import EVENTS, NOTES, REQUESTS, RUNS, SUMMARIES
from rollout.app.ports import Holder, Note, RunHeader
from rollout.core.presentation.summary import NodeCount, RunSummary
from rollout.core.run.events import Request
from rollout.core.run.journal_codec import GENESIS, chain
from rollout.core.text import json_text
from rollout.errors import StateError

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


def get(connection: sa.Connection, run: str, events: int) -> RunSummary | None:
    """``None`` when no summary covers all ``events`` of the run."""
    row = connection.execute(sa.select(SUMMARIES).where(SUMMARIES.c.run == run)).first()
    if row is None or row.events != events:
        return None
    try:
        nodes = {
            str(state): NodeCount(int(found["count"]), str(found["nodes"]))
            for state, found in json_text.parse(row.nodes).items()
        }
        reverted = {str(other): str(names) for other, names in json_text.parse(row.reverted).items()}
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        raise StateError("journal-broken", f"the summary of {run} is not the one that was written") from exc
    return RunSummary(
        row.ended, row.ending, row.exit_code, row.why, row.counter, nodes, row.owed, row.cordoned, reverted
    )


_WITHDRAWN = "withdrawn-"
"""Prefix of the word of a withdrawn request."""

_EMPTY: Mapping[str, sa.ColumnElement[Any]] = {"order": sa.literal(""), "plan": sa.literal(b"")}
_LISTED: list[sa.ColumnElement[Any]] = [_EMPTY.get(each.name, each) for each in RUNS.c if each.name != "number"]
"""The columns of a header, without what grows with the nodes of a run."""

_WAITS = ~REQUESTS.c.word.startswith(_WITHDRAWN)

_OR_HEADER = ", or its header is not"
_NODES_KNOW = "`rollout rollback --cluster C --emergency` works from the nodes' receipts, without the journal"


class SqlJournal:
    """See ``app.ports.Journal``. ``place`` is a folder (created 0700, with ``journal.db`` in it) or a PostgreSQL.

    ``beside`` is the folder of this machine for the heads of chains; by default the journal's own folder, if any.
    """

    def __init__(self, place: Path | PostgresUrl, beside: Path | None = None) -> None:
        self._database = Database(place)
        self._kept = Heads(beside or (place if isinstance(place, Path) else None))
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
            found = self._head(connection, run)
            before = self._heads.setdefault(run, found)
            after, rows = _chained(run, before, events)
            if found == before:
                _insert(connection, rows)
            elif found != after:
                raise _broken(f"{run} has events that its only controller did not write")
            if ended is not None:
                put(connection, run, after[0], ended)
        self._heads[run] = after
        self._kept.keep(run, after)

    def summary(self, run: str) -> RunSummary | None:
        with self._database.reading() as connection:
            return get(connection, run, self._head(connection, run)[0])

    def acquire(self, cluster: str, run: str) -> None:
        self._leases.acquire(cluster, run)
        self._heads.pop(run, None)  # others may have written meanwhile

    def header(self, run: str) -> RunHeader:
        with self._database.reading() as connection:
            row = connection.execute(sa.select(RUNS).where(RUNS.c.run == run)).first()
        if row is None:
            raise StateError("no-such-run", f"the journal has no run {run!r}", hint="`rollout status` lists the runs")
        return RunHeader(*row[1:])

    def events(self, run: str, after: int = 0) -> tuple[str, ...]:
        kept = self._kept.kept(run)  # before reading the database: a controller writes the database first
        columns = sa.select(EVENTS.c.number, EVENTS.c.body, EVENTS.c.hash)
        query = columns.where((EVENTS.c.run == run) & (EVENTS.c.number >= after)).order_by(EVENTS.c.number)
        with self._database.reading() as connection:
            rows = [(int(number), str(body), str(hashed)) for number, body, hashed in connection.execute(query)]
            hashes = {after: _start(rows[0], after, self._beginning(connection, run)) if rows else ""}
            if not rows and not after:
                hashes = {0: self._beginning(connection, run)}
        bodies: list[str] = []
        for number, body, hashed in rows:
            if number == after:
                continue
            at = after + len(bodies)
            if chain(hashes[at], body) != hashed:
                raise _broken(f"event {at + 1} of {run} is not the one that was written{_OR_HEADER * (at == 0)}")
            bodies.append(body)
            hashes[at + 1] = hashed
        self._check_kept(run, kept, after + len(bodies), hashes)
        return tuple(bodies)

    def _check_kept(self, run: str, kept: Head | None, last: int, hashes: Mapping[int, str]) -> None:
        """Raises unless the head outside the database is in the chain."""
        if kept is None:
            return
        number, hashed = kept
        file = self._kept.file(run)
        restored = f"was the journal restored from a backup? Then move {file} away and run the command again; if not: {_NODES_KNOW}"
        if number > last:
            message = f"the last events of {run} are missing: the journal has {last}, {file} records {number}"
            raise _broken(message, restored)
        if number in hashes and hashes[number] != hashed and (number or last == 0):
            what, hint = (f"event {number}", restored) if number else ("the header", _NODES_KNOW)
            raise _broken(f"{what} of {run} is not the one that was written: {file} records another", hint)

    def head(self, run: str) -> tuple[int, str]:
        with self._database.reading() as connection:
            return self._head(connection, run)

    @staticmethod
    def _beginning(connection: sa.Connection, run: str) -> str:
        """Of the run's chain."""
        row = connection.execute(sa.select(RUNS).where(RUNS.c.run == run)).first()
        return beginning(RunHeader(*row[1:])) if row else GENESIS

    def runs(self, cluster: str = "") -> tuple[RunHeader, ...]:
        query = sa.select(RUNS).order_by(RUNS.c.number.desc())
        if cluster:
            query = query.where(RUNS.c.cluster == cluster)
        with self._database.reading() as connection:
            return tuple(RunHeader(*row[1:]) for row in connection.execute(query))

    def listed(self) -> tuple[RunHeader, ...]:
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(*_LISTED).order_by(RUNS.c.number.desc()))
            return tuple(RunHeader(*row) for row in rows)

    def highest_counter(self, cluster: str) -> int:
        """Highest counter of the runs in this journal; a node with a higher one reports it when it is claimed."""
        query = sa.select(sa.func.max(RUNS.c.counter)).where(RUNS.c.cluster == cluster)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    @classmethod
    def _head(cls, connection: sa.Connection, run: str) -> Head:
        query = sa.select(EVENTS.c.number, EVENTS.c.hash).where(EVENTS.c.run == run)
        row = connection.execute(query.order_by(EVENTS.c.number.desc()).limit(1)).first()
        return (int(row.number), str(row.hash)) if row else (0, cls._beginning(connection, run))

    # The lease, seen from outside.

    def holder(self, cluster: str) -> Holder | None:
        return self._leases.holder(cluster)

    def unlock(self, cluster: str, note: Note) -> None:
        with self._database.writing("journal-unusable", "the lease could not be taken away") as connection:
            self._leases.take_away(connection, cluster)
            connection.execute(sa.insert(NOTES).values(cluster=cluster, at=note.at, who=note.who, text=note.text))

    def note(self, cluster: str, note: Note) -> None:
        with self._database.writing(AWAY, "the note could not be recorded") as connection:
            connection.execute(sa.insert(NOTES).values(cluster=cluster, at=note.at, who=note.who, text=note.text))

    def notes(self, cluster: str) -> tuple[Note, ...]:
        query = sa.select(NOTES.c.at, NOTES.c.who, NOTES.c.text).where(NOTES.c.cluster == cluster)
        with self._database.reading() as connection:
            return tuple(Note(*row) for row in connection.execute(query.order_by(NOTES.c.number)))

    # Requests of other terminals to a run.

    def ask(self, run: str, word: str, who: str, reason: str, revert: str) -> int:
        values = {"run": run, "word": word, "who": who, "reason": reason, "revert": revert, "at": time.time()}
        with self._database.writing("journal-unusable", "the request could not be recorded") as connection:
            key = connection.execute(sa.insert(REQUESTS).values(values)).inserted_primary_key
        return int(key[0]) if key else 0

    def requests(self, run: str, after: int) -> tuple[Request, ...]:
        columns = (REQUESTS.c.number, REQUESTS.c.word, REQUESTS.c.who, REQUESTS.c.reason, REQUESTS.c.revert)
        query = sa.select(*columns).where((REQUESTS.c.run == run) & (REQUESTS.c.number > after) & _WAITS)
        with self._database.reading() as connection:
            return tuple(Request(*row) for row in connection.execute(query.order_by(REQUESTS.c.number)))

    def withdraw(self, request: int) -> None:
        """The record stays, with author and reason; its word becomes one that no version knows."""
        change = sa.update(REQUESTS).where((REQUESTS.c.number == request) & _WAITS)
        with self._database.writing("journal-unusable", "the request could not be withdrawn") as connection:
            connection.execute(change.values(word=_WITHDRAWN + REQUESTS.c.word))


def _broken(message: str, hint: str = _NODES_KNOW) -> StateError:
    return StateError("journal-broken", message, hint=hint)


def _start(first: tuple[int, str, str], after: int, header: str) -> str:
    """The hash that these events chain to: the previous event or the header. Older versions' chains began empty."""
    number, body, hashed = first
    if number == after:
        return hashed
    return GENESIS if chain(GENESIS, body) == hashed else header


def _insert(connection: sa.Connection, rows: Sequence[Mapping[str, object]]) -> None:
    """The database may finish the commit of a lost connection late, after our check."""
    try:
        connection.execute(sa.insert(EVENTS), rows)
    except sa.exc.IntegrityError as exc:
        raise StateError(AWAY, "an event was written by a connection that had been lost; checking again") from exc


def _chained(run: str, head: Head, events: Sequence[str]) -> tuple[Head, list[dict[str, object]]]:
    """Events as rows after ``head``, and the new head."""
    number, hashed = head
    rows: list[dict[str, object]] = []
    for body in events:
        number, hashed = number + 1, chain(hashed, body)
        rows.append({"run": run, "number": number, "body": body, "hash": hashed})
    return (number, hashed), rows
