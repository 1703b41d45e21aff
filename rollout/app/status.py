"""A run as its journal has it, and what is around it. Reads no node."""

from __future__ import annotations

from collections import Counter

from rollout.app.after_run import afterwards
from rollout.app.call import CallPorts
from rollout.app.chosen_run import chosen_run
from rollout.app.following import state_to_show
from rollout.app.freezes import freeze_in
from rollout.app.owned import owned_in
from rollout.app.past_runs import past_run
from rollout.app.ports import PastRuns, RunHeader
from rollout.app.run_changes import change_of
from rollout.app.run_documents import PastRunDocument, Recorded, past_run_document, recorded
from rollout.core.model.frozen import dataclass
from rollout.core.presentation.freeze_text import FreezeNoted
from rollout.core.presentation.headline import Headline, NodesDone, WhatChanged, nodes_done
from rollout.core.presentation.owned_text import OwnedNoted
from rollout.core.presentation.past_run import PastRun
from rollout.core.presentation.summary import Summary, summarize
from rollout.core.presentation.summary_text import Afterwards, SinceThen, since_then
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.core.run.state import Phase, RunState
from rollout.core.text.documents import Inline, Moment

MOST_OTHERS = 8
"""Runs before and after this one that are named."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A run of this version, and what came after its events."""

    state: RunState
    after: Afterwards


@dataclass(frozen=True, slots=True)
class RunStatus:
    """``at``: seconds since the epoch. ``plans``: those in the current folder that wait for approvals, or to be applied.

    ``change``: what it changes. ``run``: a ``PastRun`` if another version of rollout wrote it. ``later`` and ``earlier``: runs of the journal, the newest first.
    """

    at: float
    header: RunHeader
    change: WhatChanged
    run: Replayed | PastRun
    frozen: FreezeNoted | None
    owned: OwnedNoted | None
    plans: tuple[WaitingPlan, ...]
    recorded: Recorded
    later: tuple[RunHeader, ...]
    earlier: tuple[RunHeader, ...]


def run_status(call: CallPorts, run: str) -> RunStatus:
    """``run`` ``""``: the newest."""
    journal = call.past_runs()
    return status_of(journal, chosen_run(call, journal, run), call.clock.now(), call.waiting_plans(journal))


def status_of(journal: PastRuns, run: str, now: float, plans: tuple[WaitingPlan, ...] = ()) -> RunStatus:
    header, headers = journal.header(run), journal.listed()
    at = next(index for index, listed in enumerate(headers) if listed.run == run)
    return RunStatus(
        now,
        header,
        change_of(journal, header),
        past_run(journal, run) or _replayed(journal, run, now),
        freeze_in(journal, header.cluster),
        owned_in(journal, header.cluster),
        plans,
        recorded(journal, header.cluster, run),
        headers[:at][-MOST_OTHERS:],
        headers[at + 1 :][:MOST_OTHERS],
    )


def _replayed(journal: PastRuns, run: str, now: float) -> Replayed:
    state = state_to_show(journal, run)
    return Replayed(state, afterwards(journal, state, now))


def headline(status: RunStatus, run: Replayed) -> Headline:
    header, counts = status.header, Counter(record.state.value for record in run.state.nodes.values())
    ended = run.state.now if run.state.phase is Phase.ENDED else None
    now = status.at if run.after.controller.alive else None
    nodes = nodes_done(header.goal, counts)
    return Headline(status.change, header.goal, nodes, header.who, header.reason, header.at, ended, now)


# The same for programs.


@dataclass(frozen=True, slots=True)
class StatusDocument:
    """The state of a run. ``age``: seconds since it began; ``who`` began it, and the ``reason`` that they gave.

    ``change``: what it changes. ``ended``: when, and ``seconds``: how long it took; ``None`` while it has not ended.

    ``frozen``: the freeze of its cluster that is in force. ``owned``: the owned settings of its cluster, with the last comparison.
    ``waiting_plans``: plans in the current folder that wait for approvals, or to be applied with them.
    """

    change: WhatChanged
    progress: NodesDone
    summary: Inline[Summary]
    who: str
    reason: str
    frozen: FreezeNoted | None
    owned: OwnedNoted | None
    began: Moment
    ended: Moment | None
    seconds: float | None
    age: float
    since: Inline[SinceThen]
    waiting_plans: tuple[WaitingPlan, ...]
    recorded: Inline[Recorded]


def status_document(status: RunStatus) -> StatusDocument | PastRunDocument:
    if isinstance(status.run, PastRun):
        return past_run_document(status.run, status.recorded)
    summary = summarize(status.run.state)
    head = headline(status, status.run)
    return StatusDocument(
        change=head.change,
        progress=head.nodes,
        summary=summary,
        who=status.header.who,
        reason=status.header.reason,
        frozen=status.frozen,
        owned=status.owned,
        began=head.began,
        ended=head.ended,
        seconds=None if head.ended is None else max(0.0, head.ended - head.began),
        age=max(0.0, status.at - status.header.at),
        since=since_then(summary, status.run.after),
        waiting_plans=status.plans,
        recorded=status.recorded,
    )
