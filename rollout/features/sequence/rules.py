"""Clusters in sequence: which clusters may begin next. The decision is made from the state of their runs alone.

A stage passes when the run of each of its clusters is done, was not rolled back, the stage's soak is over, and then the
late gates of each run pass (``watchFor`` of its playbook). A halt in one cluster, and the budget over all clusters, stop
every cluster that has not begun. Runs that have begun continue under their own budgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rollout.core.model.playbook import Share
from rollout.core.text.terminal import counted
from rollout.errors import Place

# Clusters in sequence: stages of clusters, each with a plan of its own, and a budget over all of them.


DEFAULT_BUDGET = Share(percent=1.0)
DEFAULT_SOAK = 600.0


@dataclass(frozen=True, slots=True)
class StagedCluster:
    """``plan``: the path of its plan file, relative to the sequence file; ``place``: where that is written."""

    cluster: str
    plan: str
    place: Place


@dataclass(frozen=True, slots=True)
class ClusterStage:
    """Clusters that begin together. ``soak``: seconds between their last end and the next stage."""

    name: str
    clusters: tuple[StagedCluster, ...]
    soak: float


@dataclass(frozen=True, slots=True)
class ClusterSequence:
    """``budget``: of the nodes of all plans; at that many failed nodes no further cluster begins."""

    name: str
    stages: tuple[ClusterStage, ...]
    budget: Share

    @property
    def clusters(self) -> tuple[StagedCluster, ...]:
        return tuple(cluster for stage in self.stages for cluster in stage.clusters)


class ClusterProgress(StrEnum):
    """Where a cluster is in its sequence."""

    NOT_BEGUN = "not-begun"
    UNFINISHED = "unfinished"  # its run has not ended: at work, or without a controller
    INTERRUPTED = "interrupted"
    DONE = "done"
    HALTED = "halted"  # its run halted, or ended before it touched a node
    ROLLED_BACK = "rolled-back"


class HaltRemedy(StrEnum):
    """What an operator may do about a cluster. If it halted: before the sequence is repeated."""

    RESUME_OR_ROLL_BACK = "resume-or-roll-back"
    RESUME_OR_PLAN_AGAIN = "resume-or-plan-again"  # its run left no node that a rollback would revert
    ROLL_BACK = "roll-back"  # its run is done, and late gates failed
    PLAN_AGAIN = "plan-again"  # it was rolled back or followed by another run, or touched nothing
    RECOVER = "recover"  # it is done with pending recoveries: not halted
    RECOVER_ROLLBACK = "recover-rollback"  # its rollback is done with pending recoveries
    AWAIT_ROLLBACK = "await-rollback"  # a controller rolls it back now
    RESUME_ROLLBACK = "resume-rollback"  # its rollback halted, was interrupted or lost its controller
    AS_SAID = "as-said"  # it could not begin: the error says what to do


_GOES_ON = frozenset({ClusterProgress.NOT_BEGUN, ClusterProgress.UNFINISHED, ClusterProgress.INTERRUPTED})


@dataclass(frozen=True, slots=True)
class SequencedCluster:
    """``nodes``: of its plan; ``failed``: how many failed, without those reverted with others; ``run`` ``""``: none. ``why``: of a halt.
    ``rollback``: the run that rolls it back, or ``""``. ``pending``: the nodeset of its pending recoveries.

    ``left``: it is done and no node failed, but nodes were not changed, such as refused ones. ``late_due``: its run has late gates,
    which did not pass since this process looks. ``late_over``: the watch has ended without a pass, and why. ``again``: the command
    that makes its plan anew.
    """

    progress: ClusterProgress
    nodes: int
    run: str = ""
    failed: int = 0
    left: bool = False
    ended: float = 0.0
    why: str = ""
    remedy: HaltRemedy = HaltRemedy.RESUME_OR_ROLL_BACK
    late_due: bool = False
    late_over: str = ""
    rollback: str = ""
    pending: str = ""
    again: str = ""


class Turn(StrEnum):
    """What a sequence does next."""

    BEGIN = "begin"
    SOAK = "soak"
    ASK = "ask"
    HALT = "halt"
    STOP = "stop"  # this controller cannot continue: another one holds a cluster, or a cluster's state is unusable
    END = "end"


@dataclass(frozen=True, slots=True)
class NextTurn:
    """``clusters``: to begin, to resume or to ask, or with a late watch that can no longer pass; ``until``: the end of the soak; ``why``: of the halt or the stop."""

    turn: Turn
    stage: int = 0
    clusters: tuple[str, ...] = ()
    until: float = 0.0
    why: str = ""


def next_turn(sequence: ClusterSequence, clusters: Mapping[str, SequencedCluster], now: float) -> NextTurn:
    """``clusters``: the state of every cluster of the sequence; ``now``: seconds since the epoch."""
    why = _stopped(sequence, clusters)
    if why:
        return NextTurn(Turn.HALT, why=why)
    for at, stage in enumerate(sequence.stages):
        names = [staged.cluster for staged in stage.clusters]
        waiting = tuple(name for name in names if clusters[name].progress in _GOES_ON)
        if waiting:
            return NextTurn(Turn.BEGIN, at, waiting)
        until = max(clusters[name].ended for name in names) + stage.soak
        if now < until and stage is not sequence.stages[-1]:
            return NextTurn(Turn.SOAK, at, until=until)
        due = tuple(name for name in names if clusters[name].late_due)
        if due and _begins_later(sequence.stages[at + 1 :], clusters):
            over = next((name for name in due if clusters[name].late_over), None)
            if over is None:
                return NextTurn(Turn.ASK, at, due)
            return NextTurn(Turn.HALT, at, (over,), why=f"{over}: {clusters[over].late_over}")
    return NextTurn(Turn.END)


def failed_limit(sequence: ClusterSequence, clusters: Mapping[str, SequencedCluster]) -> int:
    """At how many failed nodes no further cluster begins."""
    return sequence.budget.of(sum(state.nodes for state in clusters.values()))


def _begins_later(stages: tuple[ClusterStage, ...], clusters: Mapping[str, SequencedCluster]) -> bool:
    later = (clusters[staged.cluster] for stage in stages for staged in stage.clusters)
    return any(state.progress is ClusterProgress.NOT_BEGUN for state in later)


def _stopped(sequence: ClusterSequence, clusters: Mapping[str, SequencedCluster]) -> str:
    """Why nothing may begin; ``""``: it may."""
    for staged in sequence.clusters:
        state = clusters[staged.cluster]
        if state.progress in (ClusterProgress.HALTED, ClusterProgress.ROLLED_BACK):
            return f"{staged.cluster}: {state.why}"
    failed, limit = sum(state.failed for state in clusters.values()), failed_limit(sequence, clusters)
    remains = any(state.progress is ClusterProgress.NOT_BEGUN for state in clusters.values())
    if remains and failed >= limit:
        return f"{counted(failed, 'node')} failed over all clusters; the budget of the sequence is {limit}"
    return ""
