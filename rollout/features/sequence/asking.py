"""Carries out clusters in sequence. Its state is read from the journal of each cluster: nothing else is stored.

A cluster's run is the newest run that applies exactly its plan. So the same command resumes a sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread
from typing import Generic, Protocol, Self, TypeVar

from rollout.app.call import CallPorts, Operator
from rollout.app.following import AWAY_SECONDS, late_findings, replay_if_readable
from rollout.app.journal_away import AWAY
from rollout.app.operator_commands import INTERRUPTED
from rollout.app.plan_file import check_preflight, preflight_text
from rollout.app.ports import Clock, Interruption, Journal, Nodes
from rollout.app.run_list import listed_runs
from rollout.app.runs import check_not_held, check_nothing_unfinished, check_plan, resumable
from rollout.core.model.approvals import Approval
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.plans.again import plan_again
from rollout.core.plans.required_back_ends import needs_of
from rollout.core.presentation.run_list import ListedRun, RunStanding
from rollout.core.presentation.summary import RunSummary, run_summary
from rollout.core.run.facts import MAY_HOLD
from rollout.core.run.journal_codec import transactions_in
from rollout.core.run.late_watch import LateFindings, ends_at, late_passed
from rollout.core.run.order import left_out
from rollout.core.run.state import Goal, NodeState, RunState
from rollout.core.text.terminal import counted
from rollout.errors import InputError, Problem, RolloutError, SecondInterruptError, StateError
from rollout.features.sequence.rules import (
    ClusterProgress,
    ClusterSequence,
    HaltRemedy,
    NextTurn,
    SequencedCluster,
    StagedCluster,
    Turn,
    next_turn,
)
from rollout.features.sequence.words import (
    SequenceDocument,
    sequence_document,
    sequence_exit,
    sequence_lines,
    turn_line,
)

JOIN_SECONDS = 0.2
"""How long the main thread waits at a time: only between waits does it take an interrupt."""

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


class OpenJournal(Journal, Protocol):
    def close(self) -> None:
        """Give its connections back. It can be used again."""
        ...


class SequencePorts(CallPorts, Protocol):
    """The ports of a call that starts a run in each of several clusters."""

    def journal(self) -> OpenJournal: ...

    def for_cluster(self, cluster: str, reason: str, interrupts: Interruption) -> Self:
        """The same for the run of one cluster: its lines begin with the cluster's name. ``interrupts``: of the whole call."""
        ...

    def check_workers(self, inventory: Inventory, names: Collection[str]) -> None:
        """``UsageError``: the zone of a node has no worker."""
        ...


Ports = TypeVar("Ports", bound=SequencePorts)


@dataclass(frozen=True, slots=True)
class PlanRuns(Generic[Ports]):
    """How one cluster's plan is applied, its run resumed, and its late gates asked: the commands ``apply``, ``resume`` and ``watch --late``.

    ``approvals``: those of a plan from its file, or the error that it may not be applied. ``late_pass``: whether the gates of a run pass.
    """

    approvals: Callable[[Ports, Plan, Inventory, Path], tuple[Approval, ...]]
    apply: Callable[[Ports, Nodes, Plan, Inventory, tuple[Approval, ...]], int]
    resume: Callable[[Ports, Journal, RunState], int]
    late_pass: Callable[[Ports, Journal, str], bool]


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """The plan files of a sequence. ``folder``: of the sequence file."""

    folder: Path
    read: Callable[[Path], Plan]

    def path(self, staged: StagedCluster) -> Path:
        return self.folder / staged.plan

    def plan(self, staged: StagedCluster) -> Plan:
        """The plan of a cluster. A wrong one is reported at its place in the sequence file."""
        path = self.path(staged)
        try:
            plan = self.read(path)
        except InputError as error:
            raise InputError(tuple(replace(problem, place=staged.place) for problem in error.problems)) from None
        if plan.cluster != staged.cluster:
            message = f"{path} is a plan of {plan.cluster}, not of {staged.cluster}"
            raise InputError((Problem("plan-of-another-cluster", message, staged.place),))
        return plan

    def plans(self, sequence: ClusterSequence) -> Mapping[str, Plan]:
        """Cluster → its plan."""
        return {staged.cluster: self.plan(staged) for staged in sequence.clusters}


@dataclass(frozen=True, slots=True)
class SequenceState:
    """Where a sequence is, and what happens next."""

    sequence: ClusterSequence
    clusters: Mapping[str, SequencedCluster]
    turn: NextTurn

    @property
    def document(self) -> SequenceDocument:
        return sequence_document(self.sequence, self.clusters, self.turn)

    @property
    def is_unfinished(self) -> bool:
        return sequence_exit(self.clusters, self.turn) is None

    @property
    def exit_code(self) -> int:
        """Of ``apply``, which an interrupt alone ends before the sequence has ended."""
        code = sequence_exit(self.clusters, self.turn)
        return INTERRUPTED if code is None else code


def sequence_state(call: CallPorts, sequence: ClusterSequence, files: PlanFiles) -> SequenceState:
    """From the journals alone."""
    clusters = cluster_states(call.past(), files.plans(sequence))
    return SequenceState(sequence, clusters, next_turn(sequence, clusters, call.clock.now()))


def apply_sequence(
    call: Ports,
    operator: Operator,
    sequence: ClusterSequence,
    files: PlanFiles,
    runs: PlanRuns[Ports],
    wait: Callable[[float], None],
) -> SequenceState:
    """Carry out a whole sequence. Nothing begins before every plan, its approvals and inventory are checked.

    ``wait`` sleeps. ``SecondInterruptError``: the operator did not wait for the runs.
    """
    plans = files.plans(sequence)
    past = call.past()
    clusters = cluster_states(past, plans)
    for staged in sequence.clusters:
        if clusters[staged.cluster].progress is ClusterProgress.NOT_BEGUN:
            _checked(call, past, staged, plans[staged.cluster], files, runs)
    turn = next_turn(sequence, clusters, call.clock.now())
    for cluster in turn.clusters if turn.turn is Turn.BEGIN else ():
        if clusters[cluster].run:
            check_not_held(past, cluster, clusters[cluster].run)
    if turn.turn in (Turn.HALT, Turn.END):
        return SequenceState(sequence, clusters, turn)
    operator.show(sequence_lines(sequence_document(sequence, clusters, turn)))
    left = [plans[cluster] for cluster, state in clusters.items() if state.progress is not ClusterProgress.DONE]
    what = f"{counted(sum(len(plan.nodes) for plan in left), 'node')} of {counted(len(left), 'cluster')}"
    operator.confirm(sequence.name, f"{what} will be changed")
    with closing(call.journal()) as journal:
        interrupts = call.interruption()
        interrupts.install()
        return _SequenceRun(call, operator, sequence, plans, files, runs, wait, journal, interrupts).carry_out()


def _checked(
    call: Ports, journal: Journal, staged: StagedCluster, plan: Plan, files: PlanFiles, runs: PlanRuns[Ports]
) -> tuple[Inventory, tuple[Approval, ...]]:
    """The inventory and the approvals of a cluster, after the checks that ``apply`` makes before it contacts a node."""
    inventory = call.inventory(staged.cluster)
    changes = check_plan(plan, inventory, staged.plan, call.jumps(inventory, plan.nodes))
    preflight = check_preflight(plan, changes)
    if preflight.refused:
        raise InputError((Problem("preflight", f"nothing was touched: {preflight_text(preflight)}", staged.place),))
    check_nothing_unfinished(journal, staged.cluster)
    call.check_back_ends(inventory, needs_of(plan))
    call.check_workers(inventory, [name for name in plan.nodes if name not in changes.left])
    return inventory, runs.approvals(call, plan, inventory, files.path(staged))


@dataclass(slots=True)
class _SequenceRun(Generic[Ports]):
    """One call of the command: every cluster's run in this process, and what is known of them."""

    call: Ports
    operator: Operator
    sequence: ClusterSequence
    plans: Mapping[str, Plan]
    files: PlanFiles
    runs: PlanRuns[Ports]
    sleep: Callable[[float], None]
    journal: Journal  # read between runs; each run writes over connections of its own
    interrupts: Interruption
    applied: dict[str, float] = field(default_factory=dict)  # cluster that already had its plan → when that was found

    def carry_out(self) -> SequenceState:
        clock = self.call.clock
        tools = SequenceTools(clock, self.interrupts.asked, self._wait, self._tell, self._late_pass)
        try:
            turn, clusters = carry_out(self.sequence, self._look, lambda names: _together(self._one, names), tools)
        except KeyboardInterrupt:
            raise SecondInterruptError from None
        return SequenceState(self.sequence, clusters, turn)

    def _one(self, cluster: str) -> None:
        """Apply a cluster's plan or resume its run, to its end.

        Inventory and approvals may have changed in the soak of an earlier stage: they are checked again.
        """
        own, journal = self._own(cluster), self.journal
        run = self._run_of(cluster)
        if run:
            with closing(own.journal()) as written:
                self.runs.resume(own, written, resumable(written, run))
            return
        staged = next(staged for staged in self.sequence.clusters if staged.cluster == cluster)
        plan = self.plans[cluster]
        if self.files.plan(staged) != plan:
            message = f"{staged.plan} was replaced since the sequence was confirmed"
            raise InputError((Problem("plan-replaced", message, staged.place, hint="repeat the command"),))
        inventory, approvals = _checked(own, journal, staged, plan, self.files, self.runs)
        with closing(own.nodes()) as nodes:
            self.runs.apply(own, nodes, plan, inventory, approvals)
        if not self._run_of(cluster):
            self.applied[cluster] = self.call.clock.now()

    def _late_pass(self, cluster: str) -> bool:
        return self.runs.late_pass(self._own(cluster), self.journal, self._run_of(cluster))

    def _own(self, cluster: str) -> Ports:
        why = f"sequence {self.sequence.name}"
        reason = f"{self.call.reason} ({why})" if self.call.reason else why
        return self.call.for_cluster(cluster, reason, self.interrupts)

    def _run_of(self, cluster: str) -> str:
        return cluster_states(self.journal, {cluster: self.plans[cluster]})[cluster].run

    def _look(self) -> Mapping[str, SequencedCluster]:
        states = cluster_states(self.journal, self.plans)
        return {name: _as_applied(state, self.applied.get(name)) for name, state in states.items()}

    def _wait(self, seconds: float) -> None:
        clock = self.call.clock
        until = clock.now() + seconds
        while clock.now() < until and not self.interrupts.asked():
            self.sleep(min(JOIN_SECONDS, seconds))

    def _tell(self, turn: NextTurn) -> None:
        self.operator.tell([turn_line(self.sequence, turn, self.call.clock.now())])


def _as_applied(state: SequencedCluster, at: float | None) -> SequencedCluster:
    """A cluster that already had its plan needs no run. ``at``: when that was found."""
    return state if at is None or state.run else replace(state, progress=ClusterProgress.DONE, ended=at)


def _together(one: Callable[[str], None], clusters: tuple[str, ...]) -> Mapping[str, RolloutError]:
    """Each cluster on a thread of its own, so that none waits for another. Cluster → why it did not begin or end."""
    refused: dict[str, RolloutError] = {}
    broken: list[BaseException] = []

    def guarded(cluster: str) -> None:
        try:
            one(cluster)
        except RolloutError as error:
            refused[cluster] = error
        except BaseException as error:  # noqa: BLE001 - raised again in the main thread
            broken.append(error)

    threads = [Thread(target=guarded, args=(cluster,), daemon=True) for cluster in clusters]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(JOIN_SECONDS)
    if broken:
        raise broken[0]
    return refused


# Where each cluster is.


def cluster_states(journal: Journal, plans: Mapping[str, Plan]) -> Mapping[str, SequencedCluster]:
    """``plans``: cluster → its plan. The state of each, from its newest run that applies this plan."""
    return {
        cluster: replace(_state_of(journal, plan), again=plan_again(cluster, plan.limit, plan.playbook))
        for cluster, plan in plans.items()
    }


def _state_of(journal: Journal, plan: Plan) -> SequencedCluster:
    if not plan.has_work:
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
        if late.ended and plan.late and state and not late_passed(late, ends_at(state, plan.late), late.ended.at)
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


# Turn by turn.


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
