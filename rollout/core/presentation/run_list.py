"""The runs of a journal: when each began, its operator, how it ended, and which later runs rolled it back."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from rollout.core.presentation.headline import NodesDone, WhatChanged
from rollout.core.presentation.past_run import PendingNodes
from rollout.core.presentation.summary_text import NewerRun, RolledBack
from rollout.core.run.state import Goal, Phase, RunState
from rollout.core.text.documents import Moment
from rollout.core.text.terminal import counted, printable, seconds_text, wall


class RunStanding(StrEnum):
    """Where a run is, from its journal alone. Up to ``NO_CONTROLLER`` it has not ended; the others are how it ended."""

    AT_WORK = "at-work"
    ON_HOLD = "on-hold"
    PAUSED = "paused"
    WINDOW_CLOSED = "window-closed"
    HALTING = "halting"
    NO_CONTROLLER = "no-controller"
    DONE = "done"
    HALTED = "halted"
    INTERRUPTED = "interrupted"
    PREFLIGHT = "preflight"
    CLAIMED = "claimed"
    UNKNOWN = "unknown"  # another version of rollout wrote another word


WITH_CONTROLLER = frozenset(
    {RunStanding.AT_WORK, RunStanding.ON_HOLD, RunStanding.PAUSED, RunStanding.WINDOW_CLOSED, RunStanding.HALTING}
)


def standing_at_work(state: RunState) -> RunStanding:
    """Of a run with a controller."""
    if state.halt is not None:
        return RunStanding.HALTING
    if not state.waits or state.phase not in (Phase.RUNNING, Phase.SOAKING):
        return RunStanding.AT_WORK
    if state.paused is None:
        return RunStanding.WINDOW_CLOSED
    return RunStanding.ON_HOLD if state.paused.held else RunStanding.PAUSED


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run of the journal. One that has not ended has no ``ended`` and no ``exit_code``: both are ``None``.

    ``change``: what it changes. ``progress``: ``None`` for a run that cannot be read. ``why``: the reason of its halt, or of its pause.
    ``rolled_back``: the later runs that reverted it and have ended, the oldest first. ``is_rolled_back``: on each node that may have
    its change. ``on_top``: later runs with changes in force.
    """

    change: WhatChanged
    progress: NodesDone | None
    run: str
    cluster: str
    goal: str
    began: Moment
    ended: Moment | None
    who: str
    reason: str
    state: RunStanding
    why: str
    exit_code: int | None
    pending_recovery: PendingNodes
    rolled_back: tuple[RolledBack, ...]
    on_top: tuple[NewerRun, ...]
    is_rolled_back: bool = False

    @property
    def nodes_rolled_back(self) -> int:
        return sum(later.count for later in self.rolled_back)

    def is_in(self, states: Collection[str]) -> bool:
        """A run that is held or paused is at work too: it has a controller."""
        return self.state in states or (RunStanding.AT_WORK in states and self.state in WITH_CONTROLLER)

    def took(self, now: float) -> str:
        """``now``: seconds since the epoch; ``""``: nobody works on it, so no time runs."""
        if self.ended is not None:
            return seconds_text(max(0.0, self.ended - self.began))
        return f"{seconds_text(max(0.0, now - self.began))} so far" if self.state in WITH_CONTROLLER else ""

    @property
    def standing(self) -> str:
        """Where it is, with what the exit code and later rollbacks add to it."""
        words = self.state.value.replace("-", " ")
        if self.state is RunStanding.DONE and self.exit_code:
            words = "done, incomplete"
        if self.rolled_back:
            words += (
                ", rolled back"
                if self.is_rolled_back
                else f", rolled back on {counted(self.nodes_rolled_back, 'node')}"
            )
        return words


@dataclass(frozen=True, slots=True)
class RunsDocument:
    """Runs, the newest first."""

    runs: tuple[ListedRun, ...]


@dataclass(frozen=True, slots=True)
class RunFilter:
    """``who``: a part of the name; ``""`` and no states: any. At most ``most`` runs. ``since``: seconds since the epoch."""

    who: str
    states: Collection[RunStanding]
    most: int
    since: float = 0.0

    def chosen(self, runs: Iterator[ListedRun]) -> Iterator[ListedRun]:
        return islice(filter(self._fits, runs), self.most)

    def _fits(self, run: ListedRun) -> bool:
        return run.began >= self.since and self.who in run.who and (not self.states or run.is_in(self.states))


def run_lines(runs: Collection[ListedRun], now: float) -> Iterator[str]:
    """``now``: seconds since the epoch."""
    if not runs:
        yield "the journal has no run, or none that the options choose; `rollout show config` shows which journal is read"
    for run in runs:
        what = "rollback" if run.goal == Goal.REVERT else "run"
        code = "" if run.exit_code is None else f", exit code {run.exit_code}"
        yield f"{wall(run.began)}  {what} {run.run} on {run.cluster} by {printable(run.who)}: {run.standing}{code}"
        yield f"  changes: {run.change}"
        took = run.took(now)
        took = f", {'' if run.ended is None else 'took '}{took}" if took else ""
        if run.progress is not None:
            yield f"  nodes: {run.progress.words(run.goal)}{took}"
        if run.why:
            yield f"  why: {printable(run.why, 300)}"
        if run.reason:
            yield f"  reason: {printable(run.reason, 300)}"
        if run.pending_recovery.nodes:
            yield f"  pending recovery: {printable(run.pending_recovery.nodes, 300)}"
        for later in run.rolled_back:
            nodes = f" on {counted(later.count, 'node')} ({printable(later.nodes, 200)})" if later.count else ""
            yield f"  rolled back by run {later.run}{nodes}"
        for newer in run.on_top:
            nodes = f"{counted(newer.count, 'node')} ({printable(newer.nodes, 200)})"
            yield f"  newer changes on top: run {newer.run} on {nodes}"
