"""``apply --sequence`` and ``status --sequence``: clusters in sequence, each with its own plan and run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread

import click

from rollout.adapters.clock import SystemClock
from rollout.adapters.files import FolderFiles
from rollout.adapters.interrupts import Interrupts
from rollout.app.plan_file import check_preflight
from rollout.app.ports import Journal, Nodes
from rollout.app.runs import check_not_held, check_nothing_unfinished, check_plan, resumable
from rollout.cli.options import typed_confirmation
from rollout.cli.proposals import say
from rollout.composition.back_ends import check_backends
from rollout.composition.plan_files import plan_in, preflight_text
from rollout.composition.wiring import SecondInterruptError, Session
from rollout.core.model.approvals import Approval
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.plans.required_back_ends import needs_of
from rollout.core.run.state import RunState
from rollout.core.text import documents
from rollout.core.text.terminal import LONGEST_PATH, counted, printable
from rollout.errors import InputError, Problem, RolloutError
from rollout.features.sequence.asking import SequenceTools, carry_out, cluster_states
from rollout.features.sequence.rules import (
    ClusterProgress,
    ClusterSequence,
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
from rollout.features.sequence.written import load_sequence

JOIN_SECONDS = 0.2
"""How long the main thread waits at a time: only between waits does it take an interrupt."""


@dataclass(frozen=True, slots=True)
class PlanRuns:
    """How one cluster's plan is applied, its run resumed, and its late gates asked: the commands ``apply``, ``resume`` and ``watch-late``.

    ``approvals``: those of a plan from its file, or the error that it may not be applied. ``late_pass``: whether the gates of a run pass.
    """

    approvals: Callable[[Session, Plan, Inventory, Path], tuple[Approval, ...]]
    apply: Callable[[Session, Nodes, Plan, Inventory, tuple[Approval, ...]], int]
    resume: Callable[[Session, Journal, RunState], int]
    late_pass: Callable[[Session, Journal, str], bool]


def apply_sequence(session: Session, file: Path, runs: PlanRuns, *, yes: bool) -> int:
    """The exit code of a whole sequence. Nothing begins before every plan, its approvals and inventory are checked."""
    sequence, plans = _read(file)
    journal = session.past()
    found = cluster_states(journal, plans)
    for each in sequence.clusters:
        if found[each.cluster].progress is ClusterProgress.NOT_BEGUN:
            _checked(session, journal, each, plans[each.cluster], file, runs)
    turn = next_turn(sequence, found, SystemClock().now())
    for cluster in turn.clusters if turn.turn is Turn.BEGIN else ():
        if found[cluster].run:
            check_not_held(journal, cluster, found[cluster].run)
    if turn.turn not in (Turn.HALT, Turn.END):
        if session.output == "text":
            say("\n".join(sequence_lines(sequence_document(sequence, found, turn))))
        left = [plans[cluster] for cluster, state in found.items() if state.progress is not ClusterProgress.DONE]
        what = f"{counted(sum(len(plan.nodes) for plan in left), 'node')} of {counted(len(left), 'cluster')}"
        typed_confirmation(sequence.name, f"{what} will be changed", yes=yes)
        with closing(session.journal()) as journal:
            turn, found = _SequenceRun(session, sequence, plans, file, runs, journal).carry_out()
    _show(session, sequence_document(sequence, found, turn), documents.line)  # after the events of its runs
    code = sequence_exit(found, turn)
    if code is None and session.output == "text":
        say(f"To continue: rollout apply --sequence {printable(str(file), LONGEST_PATH)}")
    return 130 if code is None else code


def show_sequence(session: Session, file: Path) -> int:
    """Show where a sequence is, from the journals alone."""
    sequence, plans = _read(file)
    found = cluster_states(session.past(), plans)
    turn = next_turn(sequence, found, SystemClock().now())
    _show(session, sequence_document(sequence, found, turn), documents.page)
    return 0


def _read(file: Path) -> tuple[ClusterSequence, Mapping[str, Plan]]:
    sequence = load_sequence(FolderFiles(Path()).read(str(file)), str(file))
    plans = {each.cluster: _plan(file.parent / each.plan, each) for each in sequence.clusters}
    return sequence, plans


def _plan(path: Path, each: StagedCluster) -> Plan:
    """The plan of a cluster. A wrong one is reported at its place in the sequence file."""
    try:
        plan = plan_in(path)
    except InputError as error:
        raise InputError(tuple(replace(problem, place=each.place) for problem in error.problems)) from None
    if plan.cluster != each.cluster:
        message = f"{path} is a plan of {plan.cluster}, not of {each.cluster}"
        raise InputError((Problem("plan-of-another-cluster", message, each.place),))
    return plan


def _checked(
    session: Session, journal: Journal, each: StagedCluster, plan: Plan, file: Path, runs: PlanRuns
) -> tuple[Inventory, tuple[Approval, ...]]:
    """The inventory and the approvals of a cluster, after the checks that ``apply`` makes before it contacts a node."""
    inventory = session.inventory(each.cluster)
    changes = check_plan(plan, inventory, each.plan, session.jumps(inventory, plan.nodes))
    preflight = check_preflight(plan, changes)
    if preflight.refused:
        raise InputError((Problem("preflight", f"nothing was touched: {preflight_text(preflight)}", each.place),))
    check_nothing_unfinished(journal, each.cluster)
    check_backends(inventory, needs_of(plan), session.kubeconfig)
    if session.engine is not None:
        session.access(
            inventory, tuple(name for name in plan.nodes if name not in changes.left)
        )  # refuses a zone without a worker
    return inventory, runs.approvals(session, plan, inventory, file.parent / each.plan)


@dataclass(slots=True)
class _SequenceRun:
    """One call of the command: every cluster's run in this process, and what is known of them."""

    session: Session
    sequence: ClusterSequence
    plans: Mapping[str, Plan]
    file: Path
    runs: PlanRuns
    journal: Journal  # read between runs; each run writes over connections of its own
    interrupts: Interrupts = field(default_factory=Interrupts)
    clock: SystemClock = field(default_factory=SystemClock)
    applied: dict[str, float] = field(default_factory=dict)  # cluster that already had its plan → when that was found

    def carry_out(self) -> tuple[NextTurn, Mapping[str, SequencedCluster]]:
        self.interrupts.install()
        tools = SequenceTools(self.clock, self.interrupts.asked, self._wait, self._tell, self._late_pass)
        try:
            return carry_out(self.sequence, self._look, lambda clusters: _together(self._one, clusters), tools)
        except KeyboardInterrupt:
            raise SecondInterruptError from None

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
        each = next(each for each in self.sequence.clusters if each.cluster == cluster)
        plan = self.plans[cluster]
        if _plan(self.file.parent / each.plan, each) != plan:
            message = f"{each.plan} was replaced since the sequence was confirmed"
            raise InputError((Problem("plan-replaced", message, each.place, hint="repeat the command"),))
        inventory, approvals = _checked(own, journal, each, plan, self.file, self.runs)
        with closing(own.nodes()) as nodes:
            self.runs.apply(own, nodes, plan, inventory, approvals)
        if not self._run_of(cluster):
            self.applied[cluster] = self.clock.now()

    def _late_pass(self, cluster: str) -> bool:
        return self.runs.late_pass(self._own(cluster), self.journal, self._run_of(cluster))

    def _own(self, cluster: str) -> Session:
        return replace(self.session, label=cluster, interrupts=self.interrupts, reason=self._reason())

    def _run_of(self, cluster: str) -> str:
        return cluster_states(self.journal, {cluster: self.plans[cluster]})[cluster].run

    def _look(self) -> Mapping[str, SequencedCluster]:
        found = cluster_states(self.journal, self.plans)
        return {name: _as_applied(state, self.applied.get(name)) for name, state in found.items()}

    def _wait(self, seconds: float) -> None:
        until = self.clock.now() + seconds
        while self.clock.now() < until and not self.interrupts.asked():
            time.sleep(min(JOIN_SECONDS, seconds))

    def _tell(self, turn: NextTurn) -> None:
        say(turn_line(self.sequence, turn, self.clock.now()), err=self.session.output != "text")

    def _reason(self) -> str:
        said = f"sequence {self.sequence.name}"
        return f"{self.session.reason} ({said})" if self.session.reason else said


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


def _show(session: Session, document: SequenceDocument, as_json: Callable[[SequenceDocument], str]) -> None:
    if session.output == "json":
        click.echo(as_json(document))
    else:
        say("\n".join(sequence_lines(document)))
