"""What a controller does while its journal is away: nothing to any node, and no longer than makes sense.

In-flight verbs end on their nodes and their answers are kept; nothing is begun that is not written down. It is tried
again as long as a node may still be armed, so that what can be confirmed is, and at least ``AWAY_SECONDS``: what a
database needs to come back. Each try is bounded by the journal itself. Nodes whose guard fires meanwhile take
themselves back, and are recorded so when they are read.
"""

from __future__ import annotations

from collections.abc import Callable

from rollout.app.ports import Clock, Engine
from rollout.core.run.capacity import IN_MOTION
from rollout.core.run.events import Event
from rollout.core.run.state import Goal, RunState
from rollout.errors import StateError

AWAY_SECONDS = 60.0
"""The least that a journal is waited for."""

TRY_EVERY = 1.0
"""Seconds between two tries."""

AWAY = "journal-away"


class Patience:
    """Writes, and waits for the journal where it is away. ``answers`` came while it waited, and are nobody's yet."""

    def __init__(
        self, engine: Engine, clock: Clock, interrupted: Callable[[], bool], notice: Callable[[str], None]
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._interrupted = interrupted
        self._notice = notice
        self.answers: list[Event] = []

    def write(self, state: RunState, write: Callable[[], None]) -> None:
        """``write`` may be done again after ``journal-away``: the journal keeps it once. Other errors are raised as they are."""
        began = self._clock.now()
        error = self._tried(write)
        if error is None:
            return
        until = waits_until(state, began)
        self._notice(f"{error.message}; nothing is begun until it can be, tried for {until - began:.0f} s")
        impatient = self._interrupted()  # who has asked already waits for what is in flight: that needs the journal too
        while error is not None:
            if self._clock.now() >= until or (self._interrupted() and not impatient):
                raise _given_up(error, state, self._clock.now() - began) from error
            self.answers += self._engine.collect(TRY_EVERY)
            error = self._tried(write)
        self._notice(f"the journal is back after {self._clock.now() - began:.0f} s; the run goes on")

    def take_answers(self) -> tuple[Event, ...]:
        """What came while it waited, once."""
        taken, self.answers = tuple(self.answers), []
        return taken

    @staticmethod
    def _tried(write: Callable[[], None]) -> StateError | None:
        try:
            write()
        except StateError as error:
            if error.reference != AWAY:
                raise
            return error
        return None


def waits_until(state: RunState, now: float) -> float:
    """Until the last guard that may be armed has fired, by the clock of ``now``; at least ``AWAY_SECONDS``."""
    guards = (record.since + state.order.guard for record in state.nodes.values() if record.state in IN_MOTION)
    return max(now + AWAY_SECONDS, *guards, now)


def _given_up(error: StateError, state: RunState, waited: float) -> StateError:
    hint = f"armed nodes take themselves back; once the journal is there again: `rollout resume {state.order.run}`"
    if state.order.goal is Goal.REVERT:
        hint += f"; without it, at once: `rollout rollback --emergency --cluster {state.order.cluster}`"
    return StateError(AWAY, f"{error.message}; tried for {waited:.0f} s, nothing was begun meanwhile", hint=hint)
