"""Follows a run that another process controls, until it ends, has no controller, or the operator leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rollout.app.after_run import afterwards
from rollout.app.following import follow, replay
from rollout.app.ports import Journal, Observer
from rollout.core.model.frozen import dataclass
from rollout.core.presentation.summary import Summary, exit_code, summarize
from rollout.core.presentation.summary_text import Afterwards, ControllerPart, controller_of
from rollout.core.run.state import Phase, RunState
from rollout.core.text.documents import Inline


class WatchingOperator(Protocol):
    """The operator, who may leave before the run ends."""

    def wait(self, seconds: float) -> None:
        """Returns early if the operator leaves."""
        ...

    def look(self, state: RunState | None) -> bool:
        """The newest state. True: the operator leaves."""
        ...


@dataclass(frozen=True, slots=True)
class Watched:
    """The last state. ``after``: of a run that has not ended and has no controller; else ``None``."""

    state: RunState
    after: Afterwards | None = None

    @property
    def exit_code(self) -> int:
        return 5 if self.after is not None else exit_code(self.state) or 0


def watch_run(
    journal: Journal,
    run: str,
    observers: Sequence[Observer],
    operator: WatchingOperator | None,
    wait: Callable[[float], None],
    now: Callable[[], float],
) -> Watched | None:
    """``None``: the operator has left. ``wait`` sleeps, without an operator who may leave. ``now``: seconds since the epoch."""
    state = None
    for batch in follow(journal, run, operator.wait if operator else wait):
        for event, before, after in batch:
            state = after
            for observer in observers:
                observer.on_event(event, before, after)
        if operator and operator.look(state):
            return None
    if state is None or state.phase is not Phase.ENDED:
        state = state or replay(journal, run)
        return Watched(state, afterwards(journal, state, now()))
    for observer in observers:
        observer.on_end(state)
    return Watched(state)


@dataclass(frozen=True, slots=True)
class NoControllerDocument:
    """The last line of ``watch`` for a run that has not ended and has no controller."""

    summary: Inline[Summary]
    controller: ControllerPart | None


def no_controller_document(state: RunState, after: Afterwards) -> NoControllerDocument:
    summary = summarize(state)
    return NoControllerDocument(summary, controller_of(summary, after.controller, after.now))
