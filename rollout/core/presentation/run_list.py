"""The runs of a journal: when each began, its operator, how it ended, and which later runs rolled it back."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from rollout.core.presentation.past_run import PendingNodes
from rollout.core.presentation.summary_text import NewerRun, RolledBack
from rollout.core.run.state import Goal
from rollout.core.text.documents import Moment
from rollout.core.text.terminal import counted, printable, wall


class RunStanding(StrEnum):
    """Where a run is, from its journal alone. The first two have not ended; the others are how it ended."""

    AT_WORK = "at-work"
    NO_CONTROLLER = "no-controller"
    DONE = "done"
    HALTED = "halted"
    INTERRUPTED = "interrupted"
    PREFLIGHT = "preflight"
    CLAIMED = "claimed"
    UNKNOWN = "unknown"  # another version of rollout wrote another word


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run of the journal. One that has not ended has no ``ended`` and no ``exit_code``: both are ``None``.

    ``rolled_back``: the later runs that reverted it and have ended, the oldest first. ``on_top``: later runs with changes in force.
    """

    run: str
    cluster: str
    goal: str
    began: Moment
    ended: Moment | None
    who: str
    reason: str
    state: RunStanding
    exit_code: int | None
    pending_recovery: PendingNodes
    rolled_back: tuple[RolledBack, ...]
    on_top: tuple[NewerRun, ...]


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
        return run.began >= self.since and self.who in run.who and (not self.states or run.state in self.states)


def run_lines(runs: Collection[ListedRun]) -> Iterator[str]:
    if not runs:
        yield "no such run in this journal; `rollout show config` shows which journal is read"
    for run in runs:
        what = "rollback" if run.goal == Goal.REVERT else "run"
        code = "" if run.exit_code is None else f", exit code {run.exit_code}"
        yield f"{wall(run.began)}  {what} {run.run} on {run.cluster} by {printable(run.who)}: {run.state}{code}"
        if run.reason:
            yield f"  reason: {printable(run.reason, 300)}"
        if run.pending_recovery.nodes:
            yield f"  pending recovery: {printable(run.pending_recovery.nodes, 300)}"
        for later in run.rolled_back:
            nodes = f"{counted(later.count, 'node')} {printable(later.nodes, 200)}"
            yield f"  rolled back by run {later.run} on {nodes}"
        for newer in run.on_top:
            nodes = f"{counted(newer.count, 'node')} {printable(newer.nodes, 200)}"
            yield f"  newer changes on top: run {newer.run} on {nodes}"
