"""Carries out clusters in sequence. Its state is read from the journal of each cluster: nothing else is stored.

A cluster's run is the newest run that applies exactly its plan. So the same command resumes a sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rollout.app.following import AWAY_SECONDS, late_findings, replay_if_readable
from rollout.app.journal_away import AWAY
from rollout.app.ports import Clock, Journal
from rollout.app.run_list import listed_runs
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.presentation.run_list import ListedRun, RunStanding
from rollout.core.presentation.summary import RunSummary, run_summary
from rollout.core.run.facts import MAY_HOLD
from rollout.core.run.journal_codec import transactions_in
from rollout.core.run.late_watch import LateFindings, late_passed
from rollout.core.run.order import left_out
from rollout.core.run.state import Goal, NodeState, RunState
from rollout.core.text.terminal import counted
from rollout.errors import RolloutError, StateError
from rollout.features.sequence.rules import (
    ClusterProgress,
    ClusterSequence,
    HaltRemedy,
    NextTurn,
    SequencedCluster,
    Turn,
    next_turn,
)

LOOK_AGAIN = 30.0
"""Seconds between two looks into the journals during a soak."""

RETRY = 5.0
"""Seconds until an unreachable journal is tried again."""

FAILED = (NodeState.FAILED, NodeState.REVERTED, NodeState.UNREACHABLE, NodeState.UNKNOWN)
"""States that count against the budget of a sequence. A refused node was not touched."""

_PROGRESS = {
    RunStanding.AT_WORK: ClusterProgress.UNFINISHED,
    RunStanding.NO_CONTROLLER: ClusterProgress.UNFINISHED,
    RunStanding.INTERRUPTED: ClusterProgress.INTERRUPTED,
    RunStanding.DONE: ClusterProgress.DONE,
}
"""Every other ending stops the sequence: an operator resumes or rolls back the run."""

Act = Callable[[tuple[str, ...]], Mapping[str, RolloutError]]
"""Runs these clusters to their ends, together. Returns cluster → why it did not begin or end, of those that did not."""


@dataclass(frozen=True, slots=True)
class SequenceTools:
    """``interrupted``: whether the operator interrupted; ``wait`` sleeps until then or an interrupt; ``tell`` prints a line.

    ``late_pass``: asks the late gates of a cluster's run now; whether they pass.
    """

    clock: Clock
    interrupted: Callable[[], bool]
    wait: Callable[[float], None]
    tell: Callable[[NextTurn], None]
    late_pass: Callable[[str], bool]


def cluster_states(journal: Journal, plans: Mapping[str, Plan]) -> Mapping[str, SequencedCluster]:
    """``plans``: cluster → its plan. The state of each, from its newest run that applies this plan."""
    return {cluster: _state_of(journal, plan) for cluster, plan in plans.items()}


def _state_of(journal: Journal, plan: Plan) -> SequencedCluster:
    if not plan.nodes:
        return SequencedCluster(ClusterProgress.DONE, 0, left=bool(left_out(plan)))
    digest = plan_codec.digest(plan)
    mine = (
        header.run
        for header in journal.runs(plan.cluster)
        if header.goal == Goal.APPLY and plan_codec.digest_in(header.plan) == digest
    )
    run = next(mine, "")
    if not run:
        return SequencedCluster(ClusterProgress.NOT_BEGUN, len(plan.nodes))
    listed, *later = _since(journal, plan.cluster, run)
    state = replay_if_readable(journal, run)
    summary = run_summary(state) if state is not None else journal.summary(run)
    progress = _PROGRESS.get(listed.state, ClusterProgress.HALTED)
    watched = plan.late is not None and state is not None and progress is ClusterProgress.DONE
    late = late_findings(journal, state) if watched and state is not None else LateFindings()
    counts = {kind: found.count for kind, found in summary.nodes.items()} if summary else {}
    followed = [each.run for each in later if each.state not in _TURNED_AWAY]
    back = _rollback(journal, listed, later)
    if back is not None:
        progress, remedy, why = _of_rollback(listed, back)
    elif followed and progress in (ClusterProgress.UNFINISHED, ClusterProgress.INTERRUPTED):
        progress, remedy = ClusterProgress.HALTED, HaltRemedy.PLAN_AGAIN
        why = f"run {run} has not finished, and run {followed[-1]} followed it"
    elif late.harm is not None:
        progress, remedy = ClusterProgress.HALTED, HaltRemedy.ROLL_BACK
        why = f"the late gates of run {run} failed: {late.harm.said}"
    else:
        remedy = HaltRemedy.PLAN_AGAIN if followed else _of_ending(listed, summary)
        why = _why(listed, summary.why if summary else "")
    failed = sum(counts.get(kind, 0) for kind in FAILED) - _reverted_with_others(state)
    return SequencedCluster(
        progress,
        len(plan.nodes),
        run,
        failed,
        progress is ClusterProgress.DONE and bool(listed.exit_code) and not failed,
        listed.ended or 0.0,
        why,
        remedy,
        late_due=watched,
        late_over=f"the late watch of run {run} ended: {late.ended.said}"
        if late.ended and not late_passed(late)
        else "",
        rollback=back.run if back is not None else "",
        pending=listed.pending_recovery.nodes,
    )


def _reverted_with_others(state: RunState | None) -> int:
    """Nodes that were reverted because their run halted, and did not fail themselves. ``None``: not known, so none."""
    records = state.nodes.values() if state is not None else ()
    return sum(record.state is NodeState.REVERTED and record.cause is None for record in records)


_TURNED_AWAY = (RunStanding.PREFLIGHT, RunStanding.CLAIMED)


def _since(journal: Journal, cluster: str, run: str) -> list[ListedRun]:
    """``run`` and the later runs of its cluster, the oldest first."""
    found: list[ListedRun] = []
    for each in listed_runs(journal, cluster):
        found.insert(0, each)
        if each.run == run:
            break
    return found


def _rollback(journal: Journal, listed: ListedRun, later: Sequence[ListedRun]) -> ListedRun | None:
    """The newest run that reverts this one, also if it has not ended or has reverted no node yet."""
    reverted_by = {each.run for each in listed.rolled_back}
    for each in reversed(later):
        begun = each.goal == Goal.REVERT and each.state not in _TURNED_AWAY
        if each.run in reverted_by or (begun and listed.run in _runs_reverted_by(journal, each.run)):
            return each
    return None


def _runs_reverted_by(journal: Journal, run: str) -> frozenset[str]:
    return frozenset(tx.rpartition("-")[0] for tx in transactions_in(journal.header(run).order))


def _of_rollback(listed: ListedRun, back: ListedRun) -> tuple[ClusterProgress, HaltRemedy, str]:
    """Where a cluster is that was or is rolled back, what to do about it, and why the sequence stops."""
    run = listed.run
    match back.state:
        case RunStanding.DONE | RunStanding.PREFLIGHT | RunStanding.CLAIMED | RunStanding.UNKNOWN:
            return _of_ended_rollback(listed, back)
        case RunStanding.AT_WORK:
            remedy, why = HaltRemedy.AWAIT_ROLLBACK, f"run {run} is being rolled back by {back.run}"
        case RunStanding.NO_CONTROLLER:
            why = f"run {run} is being rolled back by {back.run}, which has no controller"
            remedy = HaltRemedy.RESUME_ROLLBACK
        case RunStanding.HALTED | RunStanding.INTERRUPTED:
            why = f"the rollback {back.run} of run {run} ended as {back.state}"
            remedy = HaltRemedy.RESUME_ROLLBACK
    return ClusterProgress.HALTED, remedy, why


def _of_ended_rollback(listed: ListedRun, back: ListedRun) -> tuple[ClusterProgress, HaltRemedy, str]:
    """A rollback may have reverted some nodes only: the others, which it did not reach, still have the change."""
    run, pending = listed.run, back.pending_recovery.nodes
    reverted = sum(each.count for each in listed.rolled_back if each.run == back.run)
    nodes = f" on {counted(reverted, 'node')}" if reverted else ""
    why = f"run {run} was rolled back by {back.run}{nodes}"
    if not pending:
        return ClusterProgress.ROLLED_BACK, HaltRemedy.PLAN_AGAIN, why
    if not reverted:
        why = f"the rollback {back.run} of run {run} reverted no node"
    progress = ClusterProgress.ROLLED_BACK if reverted else ClusterProgress.HALTED
    return progress, HaltRemedy.RECOVER_ROLLBACK, f"{why}; pending recovery: {pending}"


def _of_ending(listed: ListedRun, summary: RunSummary | None) -> HaltRemedy:
    """What may be done about a run that has ended, if no run followed it."""
    if listed.state is RunStanding.DONE:
        return HaltRemedy.RECOVER
    if listed.state is RunStanding.PREFLIGHT:
        return HaltRemedy.PLAN_AGAIN
    if summary is None or summary.owed or any(kind in summary.nodes for kind in MAY_HOLD):
        return HaltRemedy.RESUME_OR_ROLL_BACK
    return HaltRemedy.RESUME_OR_PLAN_AGAIN


def _why(listed: ListedRun, halt: str) -> str:
    ended = f"run {listed.run} ended as {listed.state}"
    return f"{ended}: {halt}" if halt else ended


def carry_out(
    sequence: ClusterSequence, look: Callable[[], Mapping[str, SequencedCluster]], act: Act, tools: SequenceTools
) -> tuple[NextTurn, Mapping[str, SequencedCluster]]:
    """Continue until the sequence has ended, halted or was interrupted. The last turn, and the state of each cluster.

    A turn of ``BEGIN``, ``SOAK`` or ``ASK`` at the end: it was interrupted there. ``STOP``: a single ``apply`` would end
    with the same ``StateError``.
    """
    refused: dict[str, RolloutError] = {}
    held: Mapping[str, StateError] = {}  # of the last turn: not halted, because another controller may go on with them
    passed: set[str] = set()  # clusters with late gates that passed after their soak
    told: NextTurn | None = None
    while True:
        found = {
            cluster: SequencedCluster(
                ClusterProgress.HALTED,
                state.nodes,
                state.run,
                state.failed,
                why=str(refused[cluster]),
                remedy=HaltRemedy.AS_SAID,
            )
            if cluster in refused
            else replace(state, late_due=state.late_due and cluster not in passed)
            for cluster, state in _seen(look, tools).items()
        }
        turn = _unless_held(next_turn(sequence, found, tools.clock.now()), held)
        if turn.turn in (Turn.HALT, Turn.STOP, Turn.END) or tools.interrupted():
            return turn, found
        if turn != told:
            tools.tell(turn)
            told = turn
        errors: Mapping[str, RolloutError] = {}
        if turn.turn is Turn.BEGIN:
            errors = act(turn.clusters)
        elif turn.turn is Turn.ASK:
            now_passed, errors = _asked(turn.clusters, tools)
            passed |= now_passed
            if not errors and not passed.issuperset(turn.clusters):
                tools.wait(LOOK_AGAIN)
        else:
            tools.wait(min(LOOK_AGAIN, turn.until - tools.clock.now()))
        held = {cluster: error for cluster, error in errors.items() if isinstance(error, StateError)}
        refused |= {cluster: error for cluster, error in errors.items() if cluster not in held}


def _seen(look: Callable[[], Mapping[str, SequencedCluster]], tools: SequenceTools) -> Mapping[str, SequencedCluster]:
    """What ``look`` finds. A soak lasts for days: an unreachable journal is retried as long as ``follow`` does."""
    away = 0.0
    while True:
        try:
            return look()
        except StateError as error:
            if error.reference != AWAY or away >= AWAY_SECONDS or tools.interrupted():
                raise
        tools.wait(RETRY)
        away += RETRY


def _asked(clusters: tuple[str, ...], tools: SequenceTools) -> tuple[set[str], Mapping[str, RolloutError]]:
    """The clusters with late gates that pass now, and cluster → why its late gates could not be asked."""
    passed: set[str] = set()
    errors: dict[str, RolloutError] = {}
    for cluster in clusters:
        try:
            passed |= {cluster} if tools.late_pass(cluster) else set()
        except RolloutError as error:  # such as an inventory that was removed
            if error.reference != AWAY:  # else the next look retries
                errors[cluster] = error
    return passed, errors


def _unless_held(turn: NextTurn, held: Mapping[str, StateError]) -> NextTurn:
    """``STOP`` instead of beginning or asking a cluster again that could not begin, end or be asked just now."""
    clusters = tuple(cluster for cluster in turn.clusters if cluster in held)
    if not clusters or turn.turn is Turn.HALT:
        return turn
    return NextTurn(Turn.STOP, turn.stage, clusters, why="; ".join(f"{each}: {held[each]}" for each in clusters))
