"""What is read from a journal, in SQL that every database takes. No library of databases is imported here.

Bodies of events are text and hashes chain them (see ``core.run.journal_codec.chain``): a journal with a changed or missing
line is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rollout.adapters.journal.ends import Ends
from rollout.adapters.journal.heads import Head, Heads, beginning
from rollout.adapters.journal.owner import is_alive, is_here, machine_of, process_of
from rollout.app.ports import Holder, Note, RunHeader
from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.summary import NodeCount, RunSummary
from rollout.core.run.events import Request
from rollout.core.run.journal_codec import GENESIS, chain
from rollout.core.text import json_text
from rollout.errors import StateError

Select = Callable[[str, Mapping[str, object]], Sequence[Any]]
"""The rows of a statement. A value stands in it as ``:name``."""

WITHDRAWN = "withdrawn-"
"""Prefix of the word of a withdrawn request."""


def _sql(columns: Sequence[str], rest: str) -> str:
    return f"SELECT {', '.join(columns)} {rest}"


_HEADER = ("run", "cluster", "goal", '"order"', "counter", "plan", "at", "who", "reason", "version")
_SUMMARY = ("events", "nodes", "reverted", "ended", "ending", "exit_code", "why", "counter", "owed", "cordoned")
_RUNS = _sql(_HEADER, "FROM runs")
_LISTED = _sql([name for name in _HEADER if name not in ('"order"', "plan")], "FROM runs ORDER BY number DESC")
"""Without what grows with the nodes of a run."""
_EVENTS = _sql(("number", "body", "hash"), "FROM events WHERE run = :run AND number >= :after ORDER BY number")
_HEAD = _sql(("number", "hash"), "FROM events WHERE run = :run ORDER BY number DESC LIMIT 1")
_ENDED = _sql(_SUMMARY, "FROM summaries WHERE run = :run")
_COUNTER = _sql(("max(counter)",), "FROM runs WHERE cluster = :cluster")
_NOTES = _sql(("at", "who", "text"), "FROM notes WHERE cluster = :cluster ORDER BY number")
_REQUESTS = _sql(
    ("number", "word", "who", "reason", "revert"),
    "FROM requests WHERE run = :run AND number > :after AND word NOT LIKE :withdrawn ORDER BY number",
)

_OR_HEADER = ", or its header is not"
_NODES_KNOW = "`rollout rollback --cluster C --emergency` works from the nodes' receipts, without the journal"


class Reads:
    """See ``app.ports.PastRuns``. ``beside``: the folder of what this machine keeps beside the journal, if any.

    ``clock``: SQL for epoch seconds by the database's own clock.

    ``doubt``: of a reader that acts on nothing. It is told when this machine has written events that the database does
    not have, and the run is read as the database has it. Others refuse such a run.
    """

    def __init__(
        self,
        selecting: Callable[[], AbstractContextManager[Select]],
        beside: Path | None,
        clock: str,
        doubt: Callable[[str], None] | None = None,
    ) -> None:
        self._selecting = selecting
        self._doubt = doubt
        self._kept = Heads(beside)
        self._ends = Ends(beside)
        self._lease = _sql(("run", "owner", f"{clock} - heartbeat", "regions"), "FROM leases WHERE cluster = :cluster")

    def summary(self, run: str) -> RunSummary | None:
        with self._selecting() as select:
            events, _ = head_of(select, run)
            rows = select(_ENDED, {"run": run})
        if not rows or rows[0][0] != events:
            return None
        _, nodes, reverted, ended, ending, code, why, counter, owed, cordoned = rows[0]
        counts, others = _counts(run, nodes, reverted)
        return RunSummary(ended, ending, code, why, counter, counts, owed, cordoned, others)

    def header(self, run: str) -> RunHeader:
        with self._selecting() as select:
            header = _header(select, run)
        if header is None:
            raise StateError("no-such-run", f"the journal has no run {run!r}", hint="`rollout status` lists the runs")
        return header

    def events(self, run: str, after: int = 0) -> tuple[str, ...]:
        kept = self._kept.kept(run)  # before reading the database: a controller writes the database first
        with self._selecting() as select:
            rows = select(_EVENTS, {"run": run, "after": after})
            beginning = "" if after and not rows else _beginning(select, run)
        start = _start(rows[0], after, beginning) if rows else beginning
        chained = rows[1:] if rows and rows[0][0] == after else rows
        bodies = tuple(body for _, body, _ in chained)
        hashes = [start, *(hashed for _, _, hashed in chained)]
        for at, body in enumerate(bodies):
            if chain(hashes[at], body) != hashes[at + 1]:
                wrong = after + at + 1
                raise broken(f"event {wrong} of {run} is not the one that was written{_OR_HEADER * (wrong == 1)}")
        self._check_kept(run, kept, after + len(bodies), dict(enumerate(hashes, after)))
        return bodies

    def _check_kept(self, run: str, kept: Head | None, last: int, hashes: Mapping[int, str]) -> None:
        """Raises unless the head outside the database is in the chain."""
        if kept is None:
            return
        number, hashed = kept
        file = self._kept.file(run)
        restored = f"was the journal restored from a backup? Then move {file} away and run the command again; if not: {_NODES_KNOW}"
        if number > last:
            message = f"the last events of {run} are missing: the journal has {last}, {file} records {number}"
            if self._doubt is None:
                raise broken(message, restored)
            self._doubt(f"{message}; a failover or a restore lost them, or somebody changed the journal")
        elif number in hashes and hashes[number] != hashed and (number or last == 0):
            if self._doubt is not None and number:
                message = f"event {number} of {run} is not the one that this machine wrote ({file})"
                self._doubt(f"{message}: after a failover or a restore another one continued it, or it was changed")
                return
            what, hint = (f"event {number}", restored) if number else ("the header", _NODES_KNOW)
            raise broken(f"{what} of {run} is not the one that was written: {file} records another", hint)

    def head(self, run: str) -> tuple[int, str]:
        with self._selecting() as select:
            return head_of(select, run)

    def kept_end(self, run: str) -> str | None:
        _, hashed = self.head(run)
        return self._ends.kept(run, hashed)

    def runs(self, cluster: str = "") -> tuple[RunHeader, ...]:
        where = " WHERE cluster = :cluster" if cluster else ""
        with self._selecting() as select:
            return tuple(
                RunHeader(*row) for row in select(f"{_RUNS}{where} ORDER BY number DESC", {"cluster": cluster})
            )

    def listed(self) -> tuple[RunHeader, ...]:
        with self._selecting() as select:
            return tuple(
                RunHeader(run, cluster, goal, "", counter, b"", *rest)
                for run, cluster, goal, counter, *rest in select(_LISTED, {})
            )

    def highest_counter(self, cluster: str) -> int:
        """Highest counter of the runs in this journal; a node with a higher one reports it when it is claimed."""
        with self._selecting() as select:
            return int(select(_COUNTER, {"cluster": cluster})[0][0] or 0)

    def notes(self, cluster: str) -> tuple[Note, ...]:
        with self._selecting() as select:
            return tuple(Note(*row) for row in select(_NOTES, {"cluster": cluster}))

    def requests(self, run: str, after: int) -> tuple[Request, ...]:
        values = {"run": run, "after": after, "withdrawn": f"{WITHDRAWN}%"}
        with self._selecting() as select:
            return tuple(Request(*row) for row in select(_REQUESTS, values))

    def holder(self, cluster: str) -> Holder | None:
        """The age of a lease is measured with the database's clock at both ends: clocks of machines may differ."""
        with self._selecting() as select:
            rows = select(self._lease, {"cluster": cluster})
        for run, owner, silent, regions in rows:
            return Holder(
                run=run,
                host=machine_of(owner),
                silent=silent,
                alive=is_alive(owner, silent),
                here=is_here(owner),
                pid=process_of(owner),
                regions=_regions(regions),
            )
        return None


def head_of(select: Select, run: str) -> Head:
    rows = select(_HEAD, {"run": run})
    return (int(rows[0][0]), str(rows[0][1])) if rows else (0, _beginning(select, run))


def _header(select: Select, run: str) -> RunHeader | None:
    rows = select(f"{_RUNS} WHERE run = :run", {"run": run})
    return RunHeader(*rows[0]) if rows else None


def _beginning(select: Select, run: str) -> str:
    """Of the run's chain."""
    header = _header(select, run)
    return beginning(header) if header else GENESIS


def broken(message: str, hint: str = _NODES_KNOW) -> StateError:
    return StateError("journal-broken", message, hint=hint)


def _start(first: tuple[int, str, str], after: int, header: str) -> str:
    """The hash that these events chain to: the previous event or the header. Older versions' chains began empty."""
    number, body, hashed = first
    if number == after:
        return hashed
    return GENESIS if chain(GENESIS, body) == hashed else header


def _counts(run: str, nodes: str, reverted: str) -> tuple[Mapping[str, NodeCount], Mapping[str, str]]:
    """Of a summary: the nodes by state, and those that other runs reverted. ``StateError`` for another form."""
    try:
        counts = {
            str(state): NodeCount(int(found["count"]), str(found["nodes"]))
            for state, found in json_text.parse(nodes).items()
        }
        return counts, {str(other): str(names) for other, names in json_text.parse(reverted).items()}
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as exc:
        raise StateError("journal-broken", f"the summary of {run} is not the one that was written") from exc


def _regions(text: str) -> tuple[RegionStanding, ...]:
    """None, if another version wrote them in another form: they are only shown."""
    try:
        regions: tuple[RegionStanding, ...] = json_text.decode(tuple[RegionStanding, ...], json_text.parse(text))
    except ValueError:
        return ()
    return regions
