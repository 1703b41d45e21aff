"""A run's report as a document, and as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from rollout.core.model.verdict import Verdict
from rollout.core.presentation.headline import NodesDone, WhatChanged, headline_lines
from rollout.core.presentation.pages.health_gates import evidence_rows
from rollout.core.presentation.pages.markup import clock
from rollout.core.presentation.pages.moments import MomentKind, fallen, moments
from rollout.core.presentation.pages.sections import next_steps, taken_back, used_budgets
from rollout.core.presentation.pages.story import Story
from rollout.core.presentation.summary import FailureLog, Summary, failure_log, summarize
from rollout.core.presentation.summary_text import (
    NOTHING_SINCE,
    Afterwards,
    SinceThen,
    since_lines,
    since_then,
    summary_lines,
)
from rollout.core.run.budgets import Distance
from rollout.core.run.state import NodeState
from rollout.core.text.documents import Inline, Moment, Shown
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable


@dataclass(frozen=True, slots=True)
class ReportMoment:
    """Something worth a sentence."""

    at: Moment
    kind: MomentKind
    text: str


@dataclass(frozen=True, slots=True)
class ReportFailure:
    """Nodes (a nodeset) with the same state, reference and message; when the first and the last of them failed.

    ``log``: of the first of them that has one.
    """

    state: NodeState
    reference: str
    message: str
    nodes: str
    count: int
    first: Moment
    last: Moment
    log: FailureLog | None


@dataclass(frozen=True, slots=True)
class ReportReading:
    """One reading of a gate; ``baseline``: before the wave."""

    at: Moment
    wave: str
    gate: str
    verdict: Verdict
    evidence: str
    baseline: bool


_BUDGET = Shown(
    "A budget at the halt, or at the end. ``name`` is the wave's or the rack's; ``\"\"``: the fleet.",
    ("scope", "name", "wrong", "limit", "left", "budget.causes"),
)


@dataclass(frozen=True, slots=True)
class NextStep:
    """A command that an operator may run now, and what it does."""

    command: str
    what: str


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """What ``report`` tells of a run. ``change``: what it changes. ``seconds``: until the last of its ``events``."""

    change: WhatChanged
    progress: NodesDone
    summary: Summary
    who: str
    reason: str
    began: Moment
    ended: Moment
    seconds: float
    events: int
    moments: tuple[ReportMoment, ...]
    failures: tuple[ReportFailure, ...]
    gates: tuple[ReportReading, ...]
    budgets: tuple[Annotated[Distance, _BUDGET], ...]
    next: tuple[NextStep, ...]
    since: Inline[SinceThen]


def report_document(story: Story, after: Afterwards) -> ReportDocument:
    past, summary = story.past, summarize(story.state)
    return ReportDocument(
        change=past.change,
        progress=story.headline().nodes,
        summary=summary,
        who=past.who,
        reason=past.reason,
        began=story.began,
        ended=story.ended,
        seconds=story.ended - story.began,
        events=story.events,
        moments=tuple(ReportMoment(story.began + moment.at, moment.kind, moment.text) for moment in moments(story)),
        failures=tuple(_failures(story)),
        gates=tuple(_gates(story)),
        budgets=tuple(used_budgets(story)),
        next=tuple(NextStep(command, what) for command, what in next_steps(story.state, after)),
        since=since_then(summary, after),
    )


def _failures(story: Story) -> Iterator[ReportFailure]:
    for kind in fallen(story):
        nodes = fold(kind.nodes)
        log = failure_log(story.state, kind.nodes)
        yield ReportFailure(
            kind.state, kind.reference, kind.message, nodes, len(kind.nodes), kind.first, kind.last, log
        )


def _gates(story: Story) -> Iterator[ReportReading]:
    for judged in story.judged:
        wave, reading = story.past.order.waves[judged.wave].name, judged.reading
        yield ReportReading(judged.at, wave, reading.gate, reading.verdict, reading.evidence, judged.baseline)


LONGEST = 300


def report_lines(story: Story, after: Afterwards = NOTHING_SINCE) -> Iterator[str]:
    """The summary, then what happened, the gates' results, how far budgets were used, and what to do next."""
    first = (
        *headline_lines(story.headline(after.now if after.controller.alive else None)),
        *since_lines(after.rolled_back),
    )
    yield from summary_lines(summarize(story.state), after, first)
    yield from (f"  {back}" for back in (taken_back(story),) if back)
    yield ""
    yield "What happened"
    for moment in moments(story):
        sign = {"halt": "■", "bad": "✗", "good": "✓"}.get(moment.kind, " ")
        yield f"  {clock(moment.at):>8} {sign} {printable(moment.text, LONGEST)}"
    gates = list(evidence_rows(story))
    if gates:
        yield ""
        yield "What the gates measured"
    for gate, wave, when, verdict, evidence in gates:
        yield printable(f"{gate}, wave {wave}, {when}: {verdict.value.upper()} {evidence}", LONGEST).join(("  ", ""))
    budgets = used_budgets(story)
    if budgets:
        yield ""
        yield "Budgets, when it halted" if story.halted_in else "Budgets"
    for budget in budgets:
        end = "used up" if not budget.left else f"halts at {counted(budget.left, 'more failed node')}"
        yield f"  {budget.short} ({'/'.join(sorted(budget.budget.causes))}), {end}"
    steps = list(next_steps(story.state, after))
    if steps:
        yield ""
        yield "What to do next"
    for command, what in steps:
        yield f"  {command}   {what}"
