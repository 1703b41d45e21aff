"""The driver: journal the event, step the machine, run its commands, feed the answers back. Decides nothing.

The order is the safety: an event is durable before any command that follows from it is begun. When the journal cannot
be written the driver stops at once: armed nodes take themselves back, and reading them says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rollout.app.ports import Clock, Engine, Journal, Observer, Worker
from rollout.core.run.commands import Command
from rollout.core.run.events import Event, InterruptAsked, Ticked
from rollout.core.run.journal_codec import encode_event
from rollout.core.run.machine import step
from rollout.core.run.requests import asked, is_known
from rollout.core.run.state import Phase, RunState

TICK = 0.1
"""Seconds between two looks at the clock."""

HEARTBEAT = 5.0
"""Seconds between two renewals of the lease."""


LISTEN = 1.0
"""Seconds between two looks at what other terminals ask."""


class Driver:
    """One run from where it stands to its end."""

    def __init__(
        self,
        journal: Journal,
        engine: Engine,
        worker: Worker,
        clock: Clock,
        observers: Sequence[Observer] = (),
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._listened = float("-inf")
        self._journal = journal
        self._engine = engine
        self._worker = worker
        self._clock = clock
        self._observers = observers
        self._interrupted = interrupted

    def run(self, state: RunState, commands: tuple[Command, ...], events: Sequence[Event] = ()) -> RunState:
        """Do ``commands``, then go on until the run has ended. ``events`` led to ``state`` and are journaled first."""
        run, cluster = state.order.run, state.order.cluster
        if events:
            self._journal.append(run, [encode_event(event) for event in events])
        self._submit(commands)
        beat = self._clock.now()
        while state.phase is not Phase.ENDED:
            answers = self._engine.collect(TICK)
            asked = self._interrupted() and not state.interrupted
            # First the interruption: the same Ctrl-C may have ended a wave gate's command, which is no verdict.
            batch: list[Event] = [InterruptAsked(self._clock.now())] if asked else []
            batch += [*answers, *self._requests(state), Ticked(self._clock.now())]
            state = self._take(state, batch)
            if self._clock.now() - beat > HEARTBEAT:
                beat = self._clock.now()
                self._journal.renew(cluster, run)
        for observer in self._observers:
            observer.on_end(state)
        return state

    def _requests(self, state: RunState) -> Sequence[Event]:
        """What other terminals have asked since, looked for once a second."""
        now = self._clock.now()
        if now - self._listened < LISTEN:
            return ()
        self._listened = now
        return [
            asked(request, now) for request in self._journal.requests(state.order.run, state.heard) if is_known(request)
        ]

    def _take(self, state: RunState, batch: Sequence[Event]) -> RunState:
        """Step through a batch, write down what changed anything in one durable go, then act."""
        lines: list[str] = []
        commands: list[Command] = []
        told: list[tuple[Event, RunState, RunState]] = []
        for event in batch:
            after, asked = step(state, event)
            if asked or _changed(state, after):
                lines.append(encode_event(event))
                commands += asked
                told.append((event, state, after))
            state = after
        if lines:
            self._journal.append(state.order.run, lines)
        self._submit(commands)
        for event, before, after in told:
            for observer in self._observers:
                observer.on_event(event, before, after)
        return state

    def _submit(self, commands: Sequence[Command]) -> None:
        for command in commands:
            self._engine.submit(self._worker, command)


def _changed(before: RunState, after: RunState) -> bool:
    """Whether anything but the time is different."""
    return before.nodes is not after.nodes or any(getattr(before, name) != getattr(after, name) for name in _WATCHED)


_WATCHED = tuple(name for name in RunState.__slots__ if name not in ("now", "nodes", "order"))
