"""The driver: journals the event, steps the machine, runs its commands, feeds the answers back. Decides nothing.

The order gives the safety: an event is durable before any command that follows from it is started. While the journal is
unreachable, nothing is started (see ``journal_away``). If it stays unreachable, the driver stops: armed nodes revert
themselves, and reading them shows that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter

from rollout.app.journal_away import AWAY, Patience
from rollout.app.ports import Clock, Engine, Journal, Observer, Worker
from rollout.app.start_times import Starts
from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.summary import run_summary
from rollout.core.run.commands import Ask, Command
from rollout.core.run.events import Event, InterruptAsked, Ticked, is_known, request_event
from rollout.core.run.journal_codec import encode_event
from rollout.core.run.machine import steps
from rollout.core.run.state import Order, Phase, RunState, Verb
from rollout.errors import StateError

TICK = 0.1
"""Seconds between two looks at the clock."""

HEARTBEAT = 5.0
"""Seconds between two renewals of the lease."""


LISTEN = 1.0
"""Seconds between two looks for requests of other terminals."""

LATE = 0.1
"""Seconds between a decision and its commands that the pace tolerates."""

_RESTARTS = (Verb.APPLY, Verb.REVERT)


class Driver:
    """Drives one run from its current state to its end."""

    def __init__(
        self,
        journal: Journal,
        engine: Engine,
        worker: Worker,
        clock: Clock,
        observers: Sequence[Observer] = (),
        interrupted: Callable[[], bool] = lambda: False,
        notice: Callable[[str], None] = lambda _words: None,
        starts: Starts | None = None,
        regions: Callable[[], Sequence[RegionStanding]] = tuple,
    ) -> None:
        self._listened = float("-inf")
        self._ticks_again = float("-inf")
        self._patience = Patience(engine, clock, interrupted, notice)
        self._journal = journal
        self._engine = engine
        self._worker = worker
        self._clock = clock
        self._observers = observers
        self._interrupted = interrupted
        self._starts = starts
        self._regions = regions

    def run(self, state: RunState, commands: tuple[Command, ...], events: Sequence[Event] = ()) -> RunState:
        """Do ``commands``, then continue until the run ends. ``events`` led to ``state`` and are journaled first."""
        run, cluster = state.order.run, state.order.cluster
        if events:
            self._write(state, [encode_event(event) for event in events])
        self._submit(commands)
        beat = self._clock.now()
        while state.phase is not Phase.ENDED:
            answers = (*self._patience.take_answers(), *self._engine.collect(TICK))
            asked = self._interrupted() and not state.interrupted
            # The interrupt comes first: the same Ctrl-C may have ended a wave gate's command, which is no verdict.
            batch: list[Event] = [InterruptAsked(self._clock.now())] if asked else []
            batch += [*answers, *self._requests(state), *self._time(state)]
            state = self._take(state, batch)
            if self._clock.now() - beat > HEARTBEAT:
                self._patience.write(state, lambda: self._journal.renew(cluster, run, self._regions()))
                beat = self._clock.now()
        for observer in self._observers:
            observer.on_end(state)
        return state

    def _requests(self, state: RunState) -> Sequence[Event]:
        """New requests of other terminals, looked for once a second."""
        now = self._clock.now()
        if now - self._listened < LISTEN:
            return ()
        self._listened = now
        try:
            requests = self._journal.requests(state.order.run, state.heard)
        except StateError as error:
            if error.reference != AWAY:
                raise
            return ()  # other terminals cannot write either; the next write waits for the journal
        return [request_event(request, now) for request in requests if is_known(request)]

    def _time(self, state: RunState) -> Sequence[Event]:
        """Whether changes may start at this time, then the time: changes start only on ticks."""
        now = self._clock.now()
        windows = self._starts.events(state, now) if self._starts is not None else ()
        return [*windows, Ticked(now)] if now >= self._ticks_again else windows

    def _take(self, state: RunState, batch: Sequence[Event]) -> RunState:
        """Step through a batch, journal the events that changed something in one durable write, then act."""
        lines: list[str] = []
        commands: list[Command] = []
        told: list[tuple[Event, RunState, RunState]] = []
        for event, before, after, asked in steps(state, batch):
            if asked or _changed(before, after):
                lines.append(encode_event(event))
                commands += asked
                told.append((event, before, after))
            state = after
        decided = self._clock.now()
        if lines:
            self._write(told[-1][2], lines)
        self._submit(commands)
        self._keep_the_pace(state.order, commands, late=self._clock.now() - decided)
        for event, before, after in told:
            for observer in self._observers:
                observer.on_event(event, before, after)
        return state

    def _write(self, state: RunState, lines: Sequence[str]) -> None:
        """Journal the events that led to ``state``. The events that end a run are written with its summary."""
        ended = run_summary(state) if state.phase is Phase.ENDED else None
        self._patience.write(state, lambda: self._journal.append(state.order.run, lines, ended))
        if ended is not None:
            self._journal.keep_end(state)

    def _keep_the_pace(self, order: Order, commands: Sequence[Command], late: float) -> None:
        """Restarts that were journaled or submitted late start late. The next tick's restarts keep their distance."""
        if late > LATE and any(isinstance(command, Ask) and command.verb in _RESTARTS for command in commands):
            burst = max(1, int(order.limits.pace))
            self._ticks_again = self._clock.now() + burst / order.limits.pace

    def _submit(self, commands: Sequence[Command]) -> None:
        for command in commands:
            self._engine.submit(self._worker, command)


def _changed(before: RunState, after: RunState) -> bool:
    """Whether anything except the time is different."""
    return before.nodes is not after.nodes or bool(_watched(before) != _watched(after))


_watched = attrgetter(*(field.name for field in fields(RunState) if field.name not in ("now", "nodes", "order")))
