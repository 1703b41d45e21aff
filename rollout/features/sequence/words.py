"""Clusters in sequence for people and programs: where each cluster is, and what happens next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rollout.core.plans.again import SAME_SETTINGS
from rollout.core.presentation.past_run import PendingNodes
from rollout.core.text.documents import Moment
from rollout.core.text.nodesets import expand
from rollout.core.text.terminal import counted, printable, seconds_text, wall
from rollout.features.sequence.rules import (
    ClusterProgress,
    ClusterSequence,
    HaltRemedy,
    NextTurn,
    SequencedCluster,
    Turn,
    failed_limit,
)


@dataclass(frozen=True, slots=True)
class ClusterLine:
    """``run`` ``None``: none yet. ``ended`` ``None``: it has not ended, or nothing was to do.

    ``left``: it is done and no node failed, but nodes were not changed, such as refused ones.
    ``why``: of a halt. ``hint``: what to do before the sequence is repeated, or about pending recoveries.
    """

    cluster: str
    plan: str
    progress: ClusterProgress
    run: str | None
    nodes: int
    failed: int
    left: bool
    ended: Moment | None
    why: str | None
    hint: str | None
    pending_recovery: PendingNodes


@dataclass(frozen=True, slots=True)
class StageLines:
    """``soak_seconds`` must pass before the next stage may begin."""

    name: str
    soak_seconds: float
    clusters: tuple[ClusterLine, ...]


@dataclass(frozen=True, slots=True)
class SequenceDocument:
    """Clusters in sequence. ``next``: what happens next; ``until``: the end of a soak; ``failed`` nodes of ``limit``."""

    sequence: str
    next: Turn
    until: Moment | None
    why: str | None
    failed: int
    limit: int
    exit_code: int | None
    stages: tuple[StageLines, ...]


def sequence_document(
    sequence: ClusterSequence, clusters: Mapping[str, SequencedCluster], turn: NextTurn
) -> SequenceDocument:
    return SequenceDocument(
        sequence=sequence.name,
        next=turn.turn,
        until=turn.until if turn.turn is Turn.SOAK else None,
        why=turn.why or None,
        failed=sum(state.failed for state in clusters.values()),
        limit=failed_limit(sequence, clusters),
        exit_code=sequence_exit(clusters, turn),
        stages=tuple(
            StageLines(
                stage.name,
                stage.soak,
                tuple(
                    _line(cluster.cluster, cluster.plan, clusters[cluster.cluster], turn) for cluster in stage.clusters
                ),
            )
            for stage in sequence.stages
        ),
    )


def _line(cluster: str, plan: str, state: SequencedCluster, turn: NextTurn) -> ClusterLine:
    hint = None
    halted = state.progress in (ClusterProgress.HALTED, ClusterProgress.ROLLED_BACK)
    if halted:
        hint = _after_halt(plan, state)
    elif turn.turn is Turn.HALT and cluster in turn.clusters:
        hint = f"see `rollout report {state.run}`; if the cluster is healthy, {_REMOVE}"
    elif state.remedy is HaltRemedy.RECOVER and state.pending:
        answers = "answers" if len(expand(state.pending)) == 1 else "answer"
        hint = f"once {printable(state.pending, 300)} {answers}: `rollout resume --recover-only {state.run}`"
    return ClusterLine(
        cluster, plan, state.progress, state.run or None, state.nodes, state.failed, state.left, state.ended or None,
        state.why if halted else None, hint, PendingNodes(state.pending),
    )  # fmt: skip


_REMOVE = "remove it from the sequence file; then repeat the sequence"


def _after_halt(plan: str, state: SequencedCluster) -> str:
    run, again = state.run, f"replace its plan {plan} by `{state.again} --out FILE`, {SAME_SETTINGS}"
    acts = {
        HaltRemedy.RESUME_OR_ROLL_BACK: f"`rollout resume {run}`, or `rollout rollback {run}` and {again}",
        HaltRemedy.RESUME_OR_PLAN_AGAIN: f"`rollout resume {run}`, or {again}",
        HaltRemedy.ROLL_BACK: f"`rollout rollback {run}` and {again}",
        HaltRemedy.PLAN_AGAIN: again,
        HaltRemedy.RECOVER_ROLLBACK: f"`rollout resume --recover-only {state.rollback}` and {again}",
        HaltRemedy.AWAIT_ROLLBACK: f"wait for the end of run {state.rollback} and {again}",
        HaltRemedy.RESUME_ROLLBACK: f"`rollout resume {state.rollback}` and {again}",
    }
    act = acts.get(state.remedy)
    return (
        f"see `rollout report {run}`; {act}; then repeat the sequence"
        if act
        else "correct this; then repeat the sequence"
    )


_EXIT = {Turn.HALT: 3, Turn.STOP: 5}


def sequence_exit(clusters: Mapping[str, SequencedCluster], turn: NextTurn) -> int | None:
    """0 done · 3 halted · 4 done, but some nodes failed or were left · 5 stopped; ``None``: it has not ended."""
    if turn.turn in _EXIT:
        return _EXIT[turn.turn]
    if turn.turn is not Turn.END:
        return None
    return 4 if any(state.failed or state.left for state in clusters.values()) else 0


def sequence_lines(document: SequenceDocument) -> Iterator[str]:
    for stage in document.stages:
        yield f"stage {stage.name}:"
        for cluster in stage.clusters:
            failed = f", {cluster.failed} failed" if cluster.failed else ""
            pending = cluster.pending_recovery.nodes
            failed += f", pending recovery: {printable(pending, 300)}" if pending and not cluster.why else ""
            left = ", others left unchanged" if cluster.left else ""
            if cluster.progress is ClusterProgress.DONE and not cluster.run:
                left += ", no run: by its plan there was nothing to do"
            run = f", run {cluster.run}" if cluster.run and cluster.run not in (cluster.why or "") else ""
            why = f": {printable(cluster.why, 400)}" if cluster.why else ""
            progress = cluster.progress.replace("-", " ")
            yield f"  {cluster.cluster}: {progress}, {counted(cluster.nodes, 'node')}{failed}{left}{run}{why}"
    yield _ending(document)
    yield from _next_steps(document)


def _next_steps(document: SequenceDocument) -> Iterator[str]:
    """What to do about a halt, before the sequence is repeated, and about pending recoveries."""
    clusters = [cluster for stage in document.stages for cluster in stage.clusters]
    hints = [f"{cluster.cluster}: {printable(cluster.hint, 600)}" for cluster in clusters if cluster.hint]
    yield from hints
    if (
        document.next is Turn.HALT
        and not any(cluster.why for cluster in clusters)
        and document.failed >= document.limit
    ):
        reports = " and ".join(f"`rollout report {cluster.run}`" for cluster in clusters if cluster.failed)
        yield f"see {reports}; correct these nodes and plan again, or raise `budget`; then repeat the sequence"


def _ending(document: SequenceDocument) -> str:
    name = f"sequence {document.sequence}"
    match document.next:
        case Turn.END:
            return f"{name}: done, {counted(document.failed, 'node')} failed; the budget is {counted(document.limit, 'node')}"
        case Turn.HALT:
            return f"{name}: halted; no further cluster begins. {printable(document.why or '', 400)}"
        case Turn.STOP:
            return f"{name}: stopped; no cluster is halted. {printable(document.why or '', 800)}"
        case Turn.SOAK:
            return f"{name}: soaking until {wall(document.until or 0.0)}"
        case Turn.ASK:
            return f"{name}: the late gates of its stage must pass before the next stage"
        case Turn.BEGIN:
            return f"{name}: not finished"


def turn_line(sequence: ClusterSequence, turn: NextTurn, now: float) -> str:
    """What begins now, at ``now`` seconds since the epoch."""
    stage = sequence.stages[turn.stage]
    place = f"stage {stage.name} ({turn.stage + 1} of {len(sequence.stages)})"
    if turn.turn is Turn.SOAK:
        return f"{place}: passed; soaking {seconds_text(turn.until - now)} before the next stage"
    clusters = ", ".join(turn.clusters)
    return f"{place}: measuring the late gates of {clusters}" if turn.turn is Turn.ASK else f"{place}: {clusters}"
