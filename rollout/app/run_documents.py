"""What ``status``, ``watch`` and ``report`` print of a run for programs, from its journal."""

from __future__ import annotations

from rollout.app.after_run import afterwards
from rollout.app.following import attendance
from rollout.app.freezes import freeze_in
from rollout.app.ports import Note, PastRuns
from rollout.core.model.frozen import dataclass
from rollout.core.presentation.freeze_text import FreezeNoted
from rollout.core.presentation.past_run import PastRun, PastRunFacts, past_run_facts
from rollout.core.presentation.summary import Summary, summarize
from rollout.core.presentation.summary_text import ControllerPart, SinceThen, controller_of, since_then
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.core.run.state import RunState
from rollout.core.text.documents import Inline, Moment

MOST_NOTES = 100
"""Newest notes on a cluster that are printed: commands of operators, unlocks."""


@dataclass(frozen=True, slots=True)
class JournalHead:
    """How many events a run has, and the hash that covers its header and all of them."""

    events: int
    head: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """The chain of a run, and the newest notes on its cluster."""

    journal: JournalHead
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class StatusDocument:
    """The state of a run. ``age``: seconds since it began; ``who`` began it, and the ``reason`` that they gave.

    ``frozen``: the freeze of its cluster that is in force.
    ``waiting_plans``: plans in the current folder that wait for approvals, or to be applied with them.
    """

    summary: Inline[Summary]
    who: str
    reason: str
    frozen: FreezeNoted | None
    began: Moment
    age: float
    since: Inline[SinceThen]
    waiting_plans: tuple[WaitingPlan, ...]
    recorded: Inline[Recorded]


@dataclass(frozen=True, slots=True)
class PastRunDocument:
    """A run of another version of rollout: it can be shown, not resumed."""

    facts: Inline[PastRunFacts]
    recorded: Inline[Recorded]


@dataclass(frozen=True, slots=True)
class NoControllerDocument:
    """The last line of ``watch`` for a run that has not ended and has no controller."""

    summary: Inline[Summary]
    controller: ControllerPart | None


def status_document(
    journal: PastRuns, state: RunState, now: float, plans: tuple[WaitingPlan, ...] = ()
) -> StatusDocument:
    """``now``: seconds since the epoch."""
    header, summary = journal.header(state.order.run), summarize(state)
    return StatusDocument(
        summary=summary,
        who=header.who,
        reason=header.reason,
        frozen=freeze_in(journal, summary.cluster),
        began=header.at,
        age=max(0.0, now - header.at),
        since=since_then(summary, afterwards(journal, state, now)),
        waiting_plans=plans,
        recorded=recorded(journal, summary.cluster, summary.run),
    )


def past_run_document(journal: PastRuns, past: PastRun) -> PastRunDocument:
    return PastRunDocument(past_run_facts(past), recorded(journal, past.cluster, past.run))


def no_controller_document(journal: PastRuns, state: RunState, now: float) -> NoControllerDocument:
    summary = summarize(state)
    found = attendance(journal, summary.cluster, summary.run)
    return NoControllerDocument(summary, controller_of(summary, found, now))


def recorded(journal: PastRuns, cluster: str, run: str) -> Recorded:
    return Recorded(JournalHead(*journal.head(run)), journal.notes(cluster)[-MOST_NOTES:])
