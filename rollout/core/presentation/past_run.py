"""A run of another version of rollout, shown from its summary: as lines for people, and its facts for a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from rollout.core.model.frozen import dataclass
from rollout.core.presentation.headline import NOTHING_KNOWN, WhatChanged
from rollout.core.presentation.summary import NodeCount, RunSummary
from rollout.core.presentation.summary_text import rolled_back, since_lines
from rollout.core.run.state import Goal
from rollout.core.text.documents import Moment, PrintedKey, Shown
from rollout.core.text.terminal import printable, seconds_text, wall


@dataclass(frozen=True, slots=True)
class PastRun:
    """``began`` is seconds since the epoch; ``plan`` its digest, ``""`` for a rollback. ``version`` ``""`` and ``rules``
    ``None``: not recorded. ``ours``: the version and the rules of this program. ``summary`` ``None``: none is kept.
    ``change``: as far as its plan can be read. ``rolled_back``: later rollback → the nodes on which it reverted this run.
    """

    run: str
    cluster: str
    goal: str
    began: float
    who: str
    reason: str
    plan: str
    version: str
    rules: int | None
    ours: tuple[str, int]
    summary: RunSummary | None
    rolled_back: Mapping[str, tuple[str, ...]]
    change: WhatChanged = NOTHING_KNOWN


def past_run_lines(past: PastRun) -> Iterator[str]:
    summary = past.summary
    what = "rollback" if past.goal == Goal.REVERT else "run"
    how = f"{printable(summary.ending)}, exit code {summary.exit_code}" if summary else "how it ended is not known"
    yield f"{what} {past.run} on {past.cluster}: {how}"
    yield f"  changes: {past.change}"
    yield from since_lines(past.rolled_back)
    took = f", took {seconds_text(max(0.0, summary.ended - past.began))}" if summary else ""
    reason = printable(past.reason, 300) or "no reason was given"
    yield f"  by {printable(past.who)}, began {wall(past.began)}{took}: {reason}"
    yield f"  its events were written by {_written_by(past)}; this is rollout {past.ours[0]} with rules {past.ours[1]}: it can be shown, not resumed"
    if past.plan:
        yield f"  plan: {printable(past.plan, 64)}"
    if summary:
        if summary.why:
            yield f"  why: {printable(summary.why, 400)}"
        for state, found in summary.nodes.items():
            yield f"  {printable(state)} ({found.count}): {printable(found.nodes, 400)}"
        if summary.owed:
            yield f"  pending recovery: {printable(summary.owed, 400)}"
        if summary.cordoned:
            yield f"  may still be cordoned by this run: {printable(summary.cordoned, 400)}"
    else:
        version = f"rollout {printable(past.version, 40)}" if past.version else "the version of rollout"
        yield "  no summary: the run has not ended, or its version wrote none"
        yield f"  if it has not ended: finish it with {version} that began it, or run: rollout rollback --cluster {past.cluster} --emergency"


def _written_by(past: PastRun) -> str:
    rules = f"rules {past.rules}" if past.rules is not None else "older rules"
    return f"rollout {printable(past.version, 40)} with {rules}" if past.version else f"another version with {rules}"


@dataclass(frozen=True, slots=True)
class AnotherVersion:
    """The version of rollout and of its rules; ``None``: not recorded."""

    rollout: str | None
    rules: int | None


@dataclass(frozen=True, slots=True)
class PendingNodes:
    """A nodeset: a version of other rules does not know what is pending there."""

    nodes: str


def _another_version(past: PastRun) -> AnotherVersion:
    return AnotherVersion(past.version or None, past.rules)


def _counts(nodes: Mapping[str, NodeCount]) -> Mapping[str, int]:
    return {state: found.count for state, found in nodes.items()}


PastRunFacts = Annotated[
    PastRun,
    Shown(
        """``plan``: its digest, ``None`` for a rollback. From ``ended`` to ``cordoned`` all are ``None`` without a summary.

``why``: the message of the halt, ``""`` without one; ``nodes``: node state → how many, and a nodeset.""",
        (
            "change", "run", "cluster", "goal", "who", "reason", PrintedKey("", "another_version", write=_another_version),
            PrintedKey("plan", or_null=True), PrintedKey("began", kind=Moment),
            PrintedKey("summary.ended", kind=Moment | None), "summary.ending", "summary.exit_code", "summary.why",
            PrintedKey("summary.nodes", "counts", write=_counts), "summary.nodes",
            PrintedKey("summary.owed", "pending_recovery", write=PendingNodes), "summary.cordoned",
            PrintedKey("rolled_back", write=rolled_back),
        ),
    ),
]  # fmt: skip
"""The same for programs."""
