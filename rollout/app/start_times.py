"""When a run may start changes: what the timed conditions of its plan answer, as events for the run machine.

The machine reads no clock, and its journal must replay on any machine. So conditions are evaluated here, and only the answer is
journaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rollout.app.ports import StartTimes
from rollout.core.model.conditions import OPEN, Condition, StartAnswer
from rollout.core.run.events import Window, WindowClosed, WindowOpened
from rollout.core.run.state import Goal, Phase, RunState


class NoStartTimes:
    """Where no condition can be evaluated, all are closed."""

    def check(self, conditions: Iterable[Condition]) -> None:
        """Nothing is known of any."""

    def by(self, conditions: Sequence[Condition]) -> Callable[[], StartAnswer]:  # noqa: ARG002 - the port's signature
        return lambda: StartAnswer(is_open=False, until=None, why="when changes may start is not evaluated here")


class Starts:
    """The timed conditions of one run."""

    def __init__(self, conditions: Iterable[Condition], times: StartTimes) -> None:
        timed = _timed(conditions)
        self._now = times.by(timed) if timed else None

    def events(self, state: RunState, now: float) -> Sequence[Window]:
        """What has changed for the run since the machine was told last; ``now`` is the event's time."""
        over = state.halt is not None or state.phase in (Phase.CLOSING, Phase.ENDED)
        if self._now is None or over or state.order.goal is Goal.REVERT:
            return ()
        answer = self._now()
        if answer.is_open:
            return () if state.closed is None else (WindowOpened(now),)
        if state.closed is not None and (state.closed.why, state.closed.opens) == (answer.why, answer.until):
            return ()
        return (WindowClosed(now, answer.why, answer.until),)


def closed_lines(conditions: Iterable[Condition], times: StartTimes, then: str) -> tuple[str, ...]:
    """What an operator reads outside the windows, before nodes are changed or reverted: why, and what happens ``then``."""
    timed = _timed(conditions)
    answer = times.by(timed)() if timed else OPEN
    return () if answer.is_open else (f"the change window is closed: {answer.why}; {then}",)


def _timed(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    return tuple(dict.fromkeys(each for each in conditions if each.is_timed))


WAITS = "the run claims its nodes and waits"
PASSES = "a rollback does not wait for it"
