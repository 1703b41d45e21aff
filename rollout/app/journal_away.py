"""What a controller does while its journal is unreachable: it starts nothing on nodes, and retries for a limited time.

Verbs in flight end on their nodes, and their answers are kept. Nothing is started that is not journaled. The write is
retried as long as a node may be armed, so that the node can still be confirmed. It is retried for at least
``AWAY_SECONDS``: the time that a database needs to return. The journal itself bounds each try. If a guard fires
meanwhile, its node reverts itself, and that is recorded when the node is read.
"""

from __future__ import annotations

from collections.abc import Callable

from rollout.app.ports import Clock, Engine
from rollout.core.run.events import Event
from rollout.core.run.facts import IN_MOTION
from rollout.core.run.state import Goal, RunState
from rollout.errors import StateError

AWAY_SECONDS = 60.0
"""The least time to wait for a journal."""

TRY_EVERY = 1.0
"""Seconds between two tries."""

AWAY = "journal-away"


class Patience:
    """Writes, and waits for an unreachable journal. ``answers`` came during the wait and are not handled yet."""

    def __init__(
        self, engine: Engine, clock: Clock, interrupted: Callable[[], bool], notice: Callable[[str], None]
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._interrupted = interrupted
        self._notice = notice
        self.answers: list[Event] = []

    def write(self, state: RunState, write: Callable[[], None]) -> None:
        """Repeats ``write`` after ``journal-away``: the journal stores it once. Other errors are raised unchanged."""
        began = self._clock.now()
        error = self._tried(write)
        if error is None:
            return
        until = waits_until(state, began)
        self._notice(f"{error.message}; nothing is started until it is back; retrying for {until - began:.0f} s")
        impatient = self._interrupted()  # an earlier Ctrl-C waits for nodes in flight, which needs the journal too
        while error is not None:
            if self._clock.now() >= until or (self._interrupted() and not impatient):
                raise _given_up(error, state, self._clock.now() - began) from error
            self.answers += self._engine.collect(TRY_EVERY)
            error = self._tried(write)
        self._notice(f"the journal is back after {self._clock.now() - began:.0f} s; the run continues")

    def take_answers(self) -> tuple[Event, ...]:
        """The answers that came during the wait, once."""
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
    """When the last guard that may be armed has fired, by the clock of ``now``; at least ``AWAY_SECONDS`` from now."""
    guards = (record.since + state.order.guard for record in state.nodes.values() if record.state in IN_MOTION)
    return max(now + AWAY_SECONDS, *guards, now)


def _given_up(error: StateError, state: RunState, waited: float) -> StateError:
    hint = f"armed nodes revert themselves; once the journal is back: `rollout resume {state.order.run}`"
    if state.order.goal is Goal.REVERT:
        hint += f"; without it, at once: `rollout rollback --emergency --cluster {state.order.cluster}`"
    return StateError(AWAY, f"{error.message}; retried for {waited:.0f} s, nothing was started meanwhile", hint=hint)
