"""A journal in memory: the durable events when its controller died, and the lease.

It may fail, be slow or be unreachable. Its lease uses its own clock, which may step like a machine's clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rollout.app.ports import Holder, Note, RunHeader
from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.summary import RunSummary
from rollout.core.run.events import Request
from rollout.core.run.state import RunState
from rollout.errors import StateError
from rollout.simulator.timeline import Timeline

LEASE_SECONDS = 30.0


@dataclass
class Owner:
    """A process on a machine that may hold the lease."""

    host: str
    alive: Callable[[], bool]


@dataclass
class ModelLease:
    run: str
    owner: Owner
    heartbeat: float


@dataclass
class ModelJournal:
    """State that all controllers with this journal share."""

    timeline: Timeline
    headers: dict[str, RunHeader] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)
    summaries: dict[str, tuple[int, RunSummary]] = field(
        default_factory=dict
    )  # with the number of events that they cover
    words: list[tuple[str, Request]] = field(default_factory=list)
    withdrawn: set[int] = field(default_factory=set)  # numbers of words
    leases: dict[str, ModelLease] = field(default_factory=dict)
    answers: set[tuple[str, str, int]] = field(default_factory=set)  # run, node, serial of those that were read
    read: dict[str, int] = field(default_factory=dict)  # run → lines that were read for ``answers``
    away_until: float = 0.0
    slow_until: float = 0.0
    slow_by: float = 0.0
    fails: int = 0  # number of next writes that fail
    swallows: int = 0  # number of next writes that are stored without an acknowledgement
    unanswered: tuple[str, tuple[str, ...]] | None = None
    clock_ahead: float = 0.0  # of the lease's clock

    def check(self) -> None:
        """Raise if nothing can be written now."""
        if self.fails > 0:
            self.fails -= 1
            raise self.away("no space left on device")
        if self.timeline.now < self.away_until:
            raise self.away("the database does not answer")

    def away(self, words: str) -> StateError:
        return StateError("journal-away", words)

    @property
    def clock(self) -> float:
        return self.timeline.now + self.clock_ahead

    def store(self, run: str, events: Sequence[str], ended: RunSummary | None) -> None:
        self.lines.setdefault(run, []).extend(events)
        if ended is not None:
            self.summaries[run] = (len(self.lines[run]), ended)

    def has_answer(self, run: str, node: str, serial: int) -> bool:
        """Whether the answer with this number is durable. Lines are read when this is first asked."""
        lines = self.lines.get(run, [])
        for text in lines[self.read.get(run, 0) :]:
            if _ANSWER in text:
                body = json.loads(text)
                self.answers.add((run, body["node"], body["serial"]))
        self.read[run] = len(lines)
        return (run, node, serial) in self.answers


_ANSWER = '"event": "Answered"'


@dataclass
class Desk:
    """One controller's view of the journal: every write checks that it still has the lease."""

    journal: ModelJournal
    owner: Owner

    def begin(self, header: RunHeader) -> None:
        self._may_write(header.cluster, header.run)
        self.journal.headers[header.run] = header
        self.journal.lines[header.run] = []

    def append(self, run: str, events: Sequence[str], ended: RunSummary | None = None) -> None:
        """A retry after a missing answer is stored once."""
        self._may_write(self.journal.headers[run].cluster, run)
        if self.journal.unanswered == (run, tuple(events)):
            self.journal.unanswered = None
            return
        self.journal.store(run, events, ended)
        if self.journal.swallows > 0:
            self.journal.swallows -= 1
            self.journal.unanswered = (run, tuple(events))
            raise self.journal.away("the connection was lost while the database committed")

    def keep_end(self, state: RunState) -> None:
        """Its runs are replayed."""

    def kept_end(self, run: str) -> str | None:  # noqa: ARG002 - the port's signature
        return None

    def summary(self, run: str) -> RunSummary | None:
        events, summary = self.journal.summaries.get(run, (-1, None))
        return summary if events == len(self.journal.lines.get(run, ())) else None

    def _may_write(self, cluster: str, run: str) -> None:
        self.journal.check()
        if not self._is_mine(cluster, run):
            raise StateError("lease-lost", "another controller has taken this run over; this one stops")

    def _is_mine(self, cluster: str, run: str) -> bool:
        lease = self.journal.leases.get(cluster)
        return lease is not None and lease.run == run and lease.owner is self.owner

    def header(self, run: str) -> RunHeader:
        if run not in self.journal.headers:
            raise StateError("no-such-run", f"the journal has no run {run!r}")
        return self.journal.headers[run]

    def events(self, run: str, after: int = 0) -> tuple[str, ...]:
        return tuple(self.journal.lines.get(run, ())[after:])

    def head(self, run: str) -> tuple[int, str]:
        """Its lines never change: it has no hashes."""
        return len(self.journal.lines.get(run, ())), ""

    def runs(self, cluster: str = "") -> tuple[RunHeader, ...]:
        headers = reversed(tuple(self.journal.headers.values()))
        return tuple(header for header in headers if not cluster or header.cluster == cluster)

    def listed(self) -> tuple[RunHeader, ...]:
        return self.runs()

    def highest_counter(self, cluster: str) -> int:
        return max((header.counter for header in self.runs(cluster)), default=0)

    def acquire(self, cluster: str, run: str) -> None:
        self.journal.check()
        held = self.journal.leases.get(cluster)
        if held and held.owner is not self.owner and self._may_live(held):
            raise StateError("locked", f"run {held.run} holds {cluster}: {held.owner.host}")
        self.journal.leases[cluster] = ModelLease(run, self.owner, self.journal.clock)

    def _may_live(self, held: ModelLease) -> bool:
        if held.owner.host == self.owner.host:
            return held.owner.alive()
        return self.journal.clock - held.heartbeat <= LEASE_SECONDS

    def renew(self, cluster: str, run: str, regions: Sequence[RegionStanding] = ()) -> None:  # noqa: ARG002 - the model has none
        self._may_write(cluster, run)
        self.journal.leases[cluster].heartbeat = self.journal.clock

    def release(self, cluster: str, run: str) -> None:
        self.journal.check()
        if self._is_mine(cluster, run):
            del self.journal.leases[cluster]

    def holder(self, cluster: str) -> Holder | None:
        lease = self.journal.leases.get(cluster)
        if lease is None:
            return None
        here = lease.owner.host == self.owner.host
        silent = self.journal.clock - lease.heartbeat
        return Holder(lease.run, lease.owner.host, silent, self._may_live(lease), here)

    def unlock(self, cluster: str, note: Note) -> None:  # noqa: ARG002 - the port's signature
        self.journal.leases.pop(cluster, None)

    def note(self, cluster: str, note: Note) -> None:
        """The simulation does not read notes."""

    def notes(self, cluster: str) -> tuple[Note, ...]:  # noqa: ARG002 - the port's signature
        return ()

    def ask(self, run: str, word: str, who: str, reason: str, revert: str) -> int:
        number = len(self.journal.words) + 1
        self.journal.words.append((run, Request(number, word, who, reason, revert)))
        return number

    def requests(self, run: str, after: int) -> tuple[Request, ...]:
        sent = (request for of, request in self.journal.words if of == run and request.number > after)
        return tuple(request for request in sent if request.number not in self.journal.withdrawn)

    def withdraw(self, request: int) -> None:
        self.journal.withdrawn.add(request)
