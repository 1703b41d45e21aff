"""A controller: one process that drives a run. It may be killed or frozen at any action on the outside.

Its ports look real to ``app.driver``: a journal, an engine, a clock; only time is virtual.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import StrEnum
from functools import partial
from math import ceil

from rollout.app.driver import TICK
from rollout.app.ports import Observer, Ran, RunHeader, StartTimes, Target, Worker, Zones
from rollout.app.runs import Tools, begin, go_on
from rollout.core.model.conditions import Condition
from rollout.core.model.config_map import ConfigMapOutcome
from rollout.core.model.regions import RegionStanding
from rollout.core.model.report import RemoteAnswer, RemoteCommand
from rollout.core.presentation.summary import RunSummary
from rollout.core.run.commands import Ask, Command, JudgeWave, LiftSilences, OpenWave, PutConfigMap, is_change
from rollout.core.run.events import ConfigMapRead, Event, SilencesLifted, WaveJudged, WaveOpened
from rollout.core.run.facts import NodeList
from rollout.core.run.records import Records
from rollout.core.run.state import NodeState, Order, RunState
from rollout.core.run.transitions import GRACE
from rollout.errors import StateError
from rollout.simulator.fleet import ModelFleet, Sender
from rollout.simulator.journal import Desk, ModelJournal, Owner
from rollout.simulator.open_minutes import ModelTimes
from rollout.simulator.timeline import Task, Timeline

# Until when a run only waits for answers: the clock may jump there.


def next_tick(state: RunState, now: float, longest: float) -> float:
    """The next tick at which a run acts by itself, at most ``longest`` seconds from now. Earlier ticks change nothing."""
    soonest = min((moment for moment in moments(state) if moment > now), default=now + longest)
    ticks = max(1, ceil((min(soonest, now + longest) - now) / TICK - 1e-6))
    return now + ticks * TICK


def moments(state: RunState) -> Iterator[float]:
    """Every time that a tick checks: rounds, retries, patience, settling, pulls, the pace's window."""
    yield from (state.round_at, state.data_by)
    if state.closed is not None and state.closed.opens is not None:
        yield state.closed.opens
    limits = state.order.limits
    window = max(1, int(limits.pace)) / limits.pace
    yield from (at + window for at in state.started)
    patience = state.order.guard + GRACE
    records = Records.of(state.order, state.nodes, state.now, state.fewer)
    for _, record in records.those(records.listed(NodeList.SETTLING)):
        yield record.busy_until
    for _, record in records.those(records.listed(NodeList.POSTPONED)):
        if record.postponed is not None:
            yield record.postponed.again
    for _, record in records.those(records.listed(NodeList.TO_READ)):
        yield record.retry_at
    for _, record in records.those(records.listed(NodeList.SUSPECT)):
        if record.state is NodeState.UNKNOWN:
            yield record.retry_at
            yield record.since + patience


GATE_SECONDS = 1.0

EPOCH = 1_800_000_000.0
"""A controller's clock at the start of a play."""


class KilledError(BaseException):
    """kill -9: the controller runs nothing after it."""


class TouchPoint(StrEnum):
    """The actions on the outside, at which a controller may be struck."""

    BEFORE_WRITE = "before it wrote an event"
    AFTER_WRITE = "after it wrote an event, before it acted"
    BEFORE_ASK = "while it sends requests"
    WAITING = "while it waited for answers"
    ANSWERED = "with answers that it had not recorded"


@dataclass(frozen=True, slots=True)
class Strike:
    """At action number ``touch`` on the outside: killed, or frozen for ``frozen`` seconds."""

    touch: int
    frozen: float = 0.0


@dataclass
class Surroundings:
    """The environment of controllers. ``longest`` is the longest jump over idle ticks; ``longest_closed``: the same while a change window is closed. A controller with very many nodes is
    busy: it reads answers ``grain`` seconds after the first one.
    """

    timeline: Timeline
    fleet: ModelFleet
    tell: Callable[[str, str], None]
    longest: float = 2.0
    longest_closed: float = 0.0
    grain: float = 0.0


@dataclass
class Controller:
    """One process on ``host``. ``clock_ahead``: the error of its clock. A ``task`` lets others act meanwhile."""

    name: str
    room: Surroundings
    journal: ModelJournal
    order: Order
    host: str = "desk"
    take_over: bool = False
    clock_ahead: float = 0.0
    strikes: tuple[Strike, ...] = ()
    interrupt_at: float = float("inf")
    dies_at: float = float("inf")
    conditions: Sequence[Condition] = ()
    times: Callable[[Zones], StartTimes] = ModelTimes
    zones: Zones | None = None
    width: int = 1_000_000  # parallel reads; changes have their own limit
    observers: Sequence[Observer] = ()
    submitted: Callable[[Controller, Command], None] = lambda _controller, _command: None
    settled: Callable[[], None] = lambda: None
    alive: bool = True
    frozen: bool = False
    touches: int = 0
    seen: RunState | None = None
    end: RunState | None = None
    stopped: str = ""
    task: Task | None = None
    answers: list[Event] = field(default_factory=list)
    _queue: deque[Command] = field(default_factory=deque)
    _at_work: int = 0
    _naps: int = 0
    _asleep: bool = False

    def __post_init__(self) -> None:
        self.owner = Owner(self.host, lambda: self.alive)
        self.desk = TouchedDesk(self.journal, self.owner, self)
        self.sender = Sender(self.order.run, self.order, self.take_over, lambda: self.alive, self.now)

    # What it does.

    def begin(self, counter: int) -> None:
        self._carry_on(lambda: begin(self.order, counter, b"", _unasked, self._tools(), self.conditions))

    def go_on(self) -> None:
        self._carry_on(lambda: go_on(self.order, _unasked, self._tools(), self.conditions))

    def _carry_on(self, work: Callable[[], RunState]) -> None:
        try:
            self.end = work()
            self.room.tell(self.name, f"ends: {self.end.ending}{_why(self.end)}")
        except KilledError:
            self.stopped = "killed"
        except StateError as error:
            self.stopped = error.reference
            self.room.tell(self.name, f"stops: {error}")
        self.alive = False

    def _tools(self) -> Tools:
        return Tools(
            journal=self.desk, engine=self, nodes=_NoNodes(), local=_NoLocal(), clock=self,
            observers=(self, *self.observers), interrupted=lambda: self.room.timeline.now >= self.interrupt_at,
            who="model@desk", reason="", new_run_id=lambda: self.order.run, start_times=self.times(self),
        )  # fmt: skip

    # Where it can be struck.

    def touch(self, moment: TouchPoint) -> None:
        if not self.alive:
            raise KilledError
        if self.room.timeline.now >= self.dies_at:
            self._struck(Strike(0), moment)
        self.touches += 1
        for strike in self.strikes:
            if strike.touch == self.touches:
                self._struck(strike, moment)

    def _struck(self, strike: Strike, moment: TouchPoint) -> None:
        if not strike.frozen:
            self.alive = False
            self.room.tell(self.name, f"is killed {moment}")
            raise KilledError
        if self.task is None:
            return
        self.room.tell(self.name, f"freezes for {strike.frozen:g} s {moment}")
        self.frozen = True
        self.room.timeline.after(strike.frozen, self._thaw)
        self.task.pause()

    def _thaw(self) -> None:
        self.frozen = False
        self.room.tell(self.name, "thaws")
        if self.task is not None:
            self.task.resume()

    # Clock.

    def now(self) -> float:
        return EPOCH + self.room.timeline.now + self.clock_ahead

    def wall(self) -> str:
        return ""

    def wall_seconds(self) -> float:
        return self.now()

    def zone(self, name: str) -> tzinfo:
        """Without zone data, a model knows one zone."""
        return UTC if self.zones is None else self.zones.zone(name)

    # Engine.

    def submit(self, worker: Worker, command: Command) -> None:  # noqa: ARG002 - the fleet is the worker
        self.touch(TouchPoint.BEFORE_ASK)
        self.submitted(self, command)
        if is_change(command):
            self._start(command, self._hear)
            return
        self._queue.append(command)
        self._begin_next()

    def _begin_next(self) -> None:
        while self._queue and self._at_work < self.width:
            command = self._queue.popleft()
            self._at_work += 1
            self._start(command, self._looked)

    def _start(self, command: Command, heard: Callable[[Event], None]) -> None:
        if isinstance(command, Ask):
            self.room.fleet.carry(self.sender, command, heard)
        else:
            self.room.timeline.after(GATE_SECONDS, lambda: heard(self._of_gates(command)))

    def _of_gates(self, command: OpenWave | JudgeWave | LiftSilences | PutConfigMap) -> Event:
        fleet, now = self.room.fleet, self.now()
        match command:
            case OpenWave():
                return WaveOpened(now, command.wave, fleet.verdict("", before=True), "set by the scenario")
            case JudgeWave():
                return WaveJudged(now, command.wave, fleet.verdict(""), "set by the scenario")
            case LiftSilences():
                return SilencesLifted(now)
            case PutConfigMap():
                return ConfigMapRead(now, ConfigMapOutcome.WRITTEN, command.change.digest_after)

    def _looked(self, event: Event) -> None:
        if self.alive:
            self._at_work -= 1
            self._begin_next()
            self._hear(event)

    def _hear(self, event: Event) -> None:
        if self.alive:
            self.answers.append(event)
            self._wake(self._naps)

    def collect(self, timeout: float) -> tuple[Event, ...]:
        self.settled()
        self.touch(TouchPoint.WAITING)
        if not self.answers:
            self.wait(max(self.room.grain, self._idle(timeout)))
            if self.room.grain:
                self.room.timeline.run(self.room.timeline.now + self.room.grain)
        answers = tuple(self.answers)
        self.answers.clear()
        if answers:
            self.touch(TouchPoint.ANSWERED)
        return answers

    def _idle(self, timeout: float) -> float:
        if self.seen is None:
            return timeout
        now, longest = self.now(), self.room.longest
        if self.seen.closed is not None:
            longest = max(longest, self.room.longest_closed)
        return next_tick(self.seen, now, longest) - now

    def close(self) -> None:
        """Nothing to close."""

    def wait(self, seconds: float) -> None:
        """For this long, or until an answer arrives."""
        timeline = self.room.timeline
        if self.task is None:
            timeline.run(timeline.now + seconds, lambda: bool(self.answers))
            return
        self._naps += 1
        self._asleep = True
        timeline.after(seconds, partial(self._wake, self._naps))
        self.task.pause()

    def _wake(self, nap: int) -> None:
        if self.task is not None and self._asleep and nap == self._naps and not self.frozen:
            self._asleep = False
            self.task.resume()

    def write_slowly(self, seconds: float) -> None:
        """The disk is slow: answers arrive meanwhile and are not read."""
        if self.task is None:
            self.room.timeline.run(self.room.timeline.now + seconds)

    # Observer.

    def on_event(self, event: Event, before: RunState, after: RunState) -> None:  # noqa: ARG002 - the port's signature
        self.seen = after

    def on_end(self, state: RunState) -> None:
        self.seen = state


@dataclass
class TouchedDesk(Desk):
    """The journal of one controller, which may be struck at each write."""

    controller: Controller

    def begin(self, header: RunHeader) -> None:
        self.controller.touch(TouchPoint.BEFORE_WRITE)
        super().begin(header)
        self.controller.touch(TouchPoint.AFTER_WRITE)

    def append(self, run: str, events: Sequence[str], ended: RunSummary | None = None) -> None:
        self.controller.touch(TouchPoint.BEFORE_WRITE)
        if self.journal.timeline.now < self.journal.slow_until:
            self.controller.write_slowly(self.journal.slow_by)
        super().append(run, events, ended)
        self.controller.touch(TouchPoint.AFTER_WRITE)

    def renew(self, cluster: str, run: str, regions: Sequence[RegionStanding] = ()) -> None:
        self.controller.touch(TouchPoint.BEFORE_WRITE)
        super().renew(cluster, run, regions)

    def release(self, cluster: str, run: str) -> None:
        if self.controller.alive:
            super().release(cluster, run)


def _why(state: RunState) -> str:
    return f" ({state.halt.reference}: {state.halt.message})" if state.halt else ""


def _unasked(command: Command) -> Event:
    raise LookupError(f"the fleet does {command}")


class _NoNodes:
    """Nothing is run by SSH."""

    def run(self, target: Target, command: RemoteCommand) -> RemoteAnswer:
        raise LookupError(f"{target.name}: {command.line}")

    def release(self, target: Target) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


class _NoLocal:
    """Nothing is run here."""

    def run(self, command: tuple[str, ...], environment: Mapping[str, str], timeout: float) -> Ran:
        raise LookupError(f"{command} {environment} {timeout}")
