"""Starts, resumes and reverts runs: everything between a decision and the driver."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cache, partial

from rollout import __version__
from rollout.app.backends import Backends
from rollout.app.driver import Driver
from rollout.app.following import (
    TURNED_AWAY,
    EndedRuns,
    headers_of,
    highest_seen,
    last_that_acted,
    other_cluster,
    plan_of,
    playbook_of,
)
from rollout.app.isolation import Keep, keep_nothing
from rollout.app.journal_away import AWAY
from rollout.app.node_access import NodeAccess
from rollout.app.node_worker import NodeWorker
from rollout.app.ports import Clock, Engine, Journal, Local, Nodes, Observer, PastRuns, RunHeader, StartTimes, Worker
from rollout.app.roll_call import Lists, lists_all
from rollout.app.start_times import NoStartTimes, Starts
from rollout.app.wave_gates import perhaps_set
from rollout.core.model.approvals import Approval
from rollout.core.model.conditions import Condition
from rollout.core.model.fleet_changes import AS_PLANNED, UNCHANGED, FleetChanges, is_their_list
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.regions import RegionStanding
from rollout.core.model.verdict import Verdict
from rollout.core.plans import plan_codec
from rollout.core.plans.again import SAME_SETTINGS, plan_again
from rollout.core.plans.fleet_comparison import Jumps, check_fleet, fleet_changes, run_changes
from rollout.core.plans.required_back_ends import Needs, needs_of
from rollout.core.presentation.summary import RunSummary, summarize
from rollout.core.presentation.summary_text import FORCED, forced_rollback
from rollout.core.run.commands import Ask, Command
from rollout.core.run.events import Approved, Event, FleetRead, Resumed, WaveOpened
from rollout.core.run.facts import needs_force
from rollout.core.run.journal_codec import encode_order
from rollout.core.run.machine import opening, step
from rollout.core.run.order import apply_order
from rollout.core.run.retries import need_a_plan, resume_has_work
from rollout.core.run.state import Ending, Goal, NodeState, Order, Phase, RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import InputError, StateError, UsageError


@dataclass(frozen=True, slots=True)
class Tools:
    """The ports that a run needs, wired by the composition root."""

    journal: Journal
    engine: Engine
    nodes: Nodes
    local: Local
    clock: Clock
    observers: Sequence[Observer]
    interrupted: Callable[[], bool]
    who: str
    reason: str
    new_run_id: Callable[[], str]
    backends: Backends = field(default_factory=Backends)
    notice: Callable[[str], None] = lambda _words: None  # tells the operator what delays a run
    start_times: StartTimes = field(default_factory=NoStartTimes)
    regions: Callable[[], Sequence[RegionStanding]] = tuple  # of the nodes, if workers of regions reach them
    keep: Keep = keep_nothing  # stores the trace of an answer that rollout fails on
    lists: Lists = lists_all  # what the inventory, read now, shows of a node that left


def check_plan(plan: Plan, inventory: Inventory, file: str, jumps: Jumps) -> FleetChanges:
    """What changed in the fleet since the plan. ``InputError``: one of its nodes is reached otherwise or sits elsewhere.

    ``jumps``: the bastions on the way to its nodes, as far as they are known here.
    """
    changes = fleet_changes(plan, inventory, jumps)
    check_fleet(plan, inventory, changes, file)
    return changes


def check_nothing_unfinished(journal: Journal, cluster: str) -> None:
    """The newest run of a cluster that acted must have ended, or be reverted, before another may start."""
    headers = headers_of(journal, cluster)
    if not headers:
        return
    if _ended_after_acting(journal.summary(headers[0].run)):
        journal.events(headers[0].run)  # raises if it was changed: no run starts with a broken journal
        return
    try:
        state = last_that_acted(journal, cluster, or_else=headers[-1].run)
    except StateError as error:
        if error.reference in _UNTOLD:
            return  # claims on the nodes show whether a run of another version still holds them
        raise
    run = state.order.run
    if state.phase is not Phase.ENDED:
        check_not_held(journal, cluster, run)
        raise StateError(
            "run-unfinished",
            f"run {run} of {cluster} has not ended",
            hint=f"`rollout resume {run}` or `rollout rollback {run}`",
        )


def check_not_held(journal: Journal, cluster: str, run: str) -> None:
    """``StateError`` ``locked``, with the holder, while another controller is at work on the cluster."""
    with leased(journal, cluster, run):
        pass


def _ended_after_acting(summary: RunSummary | None) -> bool:
    """Told without a replay. A run that was turned away may have acted before, so its events must be read."""
    return summary is not None and summary.ending not in TURNED_AWAY


_UNTOLD = frozenset({"another-version", "journal-unreadable"})
"""References of runs that this version cannot replay."""


def start_apply(
    plan: Plan,
    access: NodeAccess,
    tools: Tools,
    approvals: Sequence[Approval] = (),
    changes: FleetChanges = UNCHANGED,
    today: Sequence[Condition] = (),
) -> RunState:
    """Start a run that applies a plan to those of its nodes that are still there. ``changes``: in the fleet since the plan.

    ``today``: the conditions of the inventory of today, as in ``resume``.
    """
    check_nothing_unfinished(tools.journal, plan.cluster)
    order = apply_order(tools.new_run_id(), plan, changes)
    counter = max(plan.counter, highest_counter(tools.journal, plan.cluster)) + 1
    worker = NodeWorker(
        order.run, access, tools.nodes, tools.local, tools.clock, plan, backends=tools.backends, who=tools.who,
        approved=bool(approvals), has_ended=EndedRuns(tools.journal, order.cluster),
        other_cluster=cache(partial(other_cluster, tools.journal, order.cluster)), keep=tools.keep, lists=tools.lists,
        holds=partial(_holds, tools.journal, plan.cluster, order.run),
    )  # fmt: skip
    conditions = _with_todays(plan.conditions, today)
    return begin(order, counter, plan_codec.encode(plan), worker, tools, conditions, approvals)


def _with_todays(planned: Sequence[Condition], today: Sequence[Condition]) -> Sequence[Condition]:
    """What was written since the plan counts too."""
    return (*planned, *(each for each in today if each not in planned))


def start_revert(order: Order, counter: int, access: NodeAccess, tools: Tools) -> RunState:
    """Start a run that reverts transactions. It takes over the claims of the run that made them."""
    worker = NodeWorker(
        order.run, access, tools.nodes, tools.local, tools.clock, take_over=True, force=order.force,
        backends=tools.backends, keep=tools.keep, holds=partial(_holds, tools.journal, order.cluster, order.run),
    )  # fmt: skip
    return begin(order, counter, b"", worker, tools)


def begin(
    order: Order,
    counter: int,
    plan: bytes,
    worker: Worker,
    tools: Tools,
    conditions: Sequence[Condition] = (),
    approvals: Sequence[Approval] = (),
) -> RunState:
    """Journal an order and its ``approvals``, and carry it out under the cluster's lease while each of ``conditions`` is open."""
    with leased(tools.journal, order.cluster, order.run):
        at = tools.clock.now()
        tools.journal.begin(
            RunHeader(
                run=order.run,
                cluster=order.cluster,
                goal=order.goal,
                order=encode_order(order),
                counter=counter,
                plan=plan,
                at=at,
                who=tools.who,
                reason=tools.reason,
                version=__version__,
            )
        )
        state, commands = opening(order, counter, at)
        events = [Approved(at, each.person, each.key, each.signature) for each in approvals]
        for event in events:
            state, _ = step(state, event)
        return _driver(worker, tools, conditions).run(state, commands, events)


@contextmanager
def leased(journal: Journal, cluster: str, run: str) -> Iterator[None]:
    """Hold the cluster's lease. If it cannot be released, it expires without heartbeats, so that is no failure."""
    journal.acquire(cluster, run)
    try:
        yield
    finally:
        try:
            journal.release(cluster, run)
        except StateError as error:
            if error.reference != AWAY:
                raise


def _holds(journal: PastRuns, cluster: str, run: str) -> bool:
    """Whether this process has the cluster's lease, as far as the journal answers."""
    try:
        holder = journal.holder(cluster)
    except StateError:
        return False
    return holder is not None and holder.run == run and holder.here and holder.pid in (None, os.getpid())


def _driver(worker: Worker, tools: Tools, conditions: Sequence[Condition]) -> Driver:
    return Driver(
        tools.journal, tools.engine, worker, tools.clock, tools.observers, tools.interrupted, tools.notice,
        Starts(conditions, tools.start_times), tools.regions,
    )  # fmt: skip


def highest_counter(journal: Journal, cluster: str) -> int:
    """The highest token of the newest runs, also if a resume or a second claim raised it. Nodes may know higher."""
    newest = (highest_seen(journal, header.run) for header in headers_of(journal, cluster)[:3])
    return max(journal.highest_counter(cluster), *newest, 0)


def resumable(journal: Journal, run: str) -> RunState:
    """The state of a run that may be resumed, or the reason why not."""
    state = _newest(journal, run)
    if state.phase is Phase.ENDED and state.ending in (Ending.DONE, Ending.PREFLIGHT):
        owed = state.owes_config_map or any(record.owed and not needs_force(record) for record in state.nodes.values())
        forced = [forced_rollback(state.order.cluster, of, names) for of, names in summarize(state).need_force.items()]
        again = fold(need_a_plan(state))
        plan = (
            f"`{plan_again(state.order.cluster, again, playbook_of(journal, run))}` plans the nodes without the change again, "
            f"{SAME_SETTINGS}"
            if again
            else "plan again"
        )
        if owed and state.ending is Ending.DONE:
            hint = f"`rollout resume --recover-only {run}` does its pending recoveries"
        elif forced:
            hint = f"others wrote its files since: `{forced[0]}` overwrites them. {FORCED}"
        else:
            hint = plan
        raise StateError("nothing-to-resume", f"run {run} has ended: {state.ending}", hint=hint)
    return state


def with_pending_recovery(journal: Journal, run: str) -> RunState:
    """The state of a run that ended as done and has pending recoveries. ``StateError`` for any other run."""
    state = _newest(journal, run)
    if state.ending is Ending.PREFLIGHT:
        raise StateError("nothing-owed", f"run {run} has touched no node", hint="plan again")
    if state.phase is not Phase.ENDED or state.ending is not Ending.DONE:
        hint = f"`rollout resume {run}` also does its pending recoveries" if resume_has_work(state) else ""
        raise StateError("not-done", f"run {run} has not ended as done: {state.ending or state.phase}", hint=hint)
    if not state.owes_config_map and not any(record.owed for record in state.nodes.values()):
        raise StateError("nothing-owed", f"run {run} has no pending recovery")
    return state


def _newest(journal: Journal, run: str) -> RunState:
    """The state of a run. ``StateError`` if a newer run has acted since."""
    newest = last_that_acted(journal, journal.header(run).cluster, or_else=run)
    if newest.order.run != run:
        other = newest.order.run
        ended = newest.ending is Ending.DONE
        playbook, limit = plan_codec.selection_in(journal.header(run).plan)
        again = plan_again(newest.order.cluster, limit, playbook)
        anew = f"plan again, {SAME_SETTINGS}: {again}" if playbook else f"`rollout report {other}` shows what it did"
        hint = anew if ended else f"`rollout resume {other}`"
        raise StateError(
            "superseded", f"run {run} was followed by {other}{', which is done' if ended else ''}", hint=hint
        )
    return newest


def resume(
    state: RunState,
    access: NodeAccess,
    tools: Tools,
    today: Sequence[Condition] = (),
    changes: FleetChanges = UNCHANGED,
) -> RunState:
    """Resume a run: take a new token, read every node, and continue from the state that the nodes report.

    ``today``: the conditions of the inventory of today. ``changes``: in the fleet since the run's order was made; ``access`` has the
    nodes that did not leave.
    """
    order = state.order
    plan = _plan_of(tools.journal, order.run)
    take_over = order.goal is Goal.REVERT
    worker = NodeWorker(
        order.run, access, tools.nodes, tools.local, tools.clock, plan, take_over, order.force, tools.backends, tools.who,
        bool(state.approved), EndedRuns(tools.journal, order.cluster),
        cache(partial(other_cluster, tools.journal, order.cluster)), tools.keep, tools.lists,
        partial(_holds, tools.journal, order.cluster, order.run),
    )  # fmt: skip
    conditions = _with_todays(plan.conditions if plan is not None else (), today)
    return go_on(order, worker, tools, conditions, changes)


def go_on(
    order: Order,
    worker: Worker,
    tools: Tools,
    conditions: Sequence[Condition] = (),
    changes: FleetChanges = UNCHANGED,
) -> RunState:
    """Continue a run under the lease, from a fresh replay: others may have acted while the operator was asked."""
    with leased(tools.journal, order.cluster, order.run):
        state = _newest(tools.journal, order.run)
        if state.phase is Phase.ENDED and state.ending is Ending.DONE:
            _withdraw_unheard(tools.journal, state)
        at = tools.clock.now()
        events: list[Event] = [Resumed(at, max(state.counter, state.highest) + 1), *_lost_opening(tools, state, at)]
        left = {name: leaver.reference for name, leaver in changes.left.items()}
        if (
            left
            or changes.sizes != AS_PLANNED
            or any(record.state is NodeState.GONE for record in state.nodes.values())
        ):
            events.append(FleetRead(at, left, changes.sizes.racks, changes.sizes.zones))
        commands: list[Command] = []
        for event in events:
            state, asked = step(state, event)
            commands += asked
        return _driver(worker, tools, conditions).run(state, _still_asked(state, commands), events)


def _lost_opening(tools: Tools, state: RunState, at: float) -> Iterator[Event]:
    """What is known of a wave for which the last controller recorded no answer: it may have set its silences."""
    plan = plan_of(tools.journal.header(state.order.run)) if state.wave_is_opening else None
    if plan is not None and (silences := perhaps_set(plan)):
        why = "the last controller recorded no answer, and may have set silences"
        yield WaveOpened(at, state.wave, Verdict.UNKNOWN, why, "", silences)


def _still_asked(state: RunState, commands: Sequence[Command]) -> tuple[Command, ...]:
    """Without questions to nodes that left."""
    return tuple(
        each
        for each in commands
        if not isinstance(each, Ask)
        or (state.nodes[each.node].asked is each.verb and state.nodes[each.node].serial == each.serial)
    )


def _withdraw_unheard(journal: Journal, state: RunState) -> None:
    """Withdraw requests that a run did not handle before it was done. They must not end a later ``resume --recover-only``."""
    for request in journal.requests(state.order.run, state.heard):
        journal.withdraw(request.number)


def needs_of_run(journal: Journal, run: str) -> Needs:
    """What a resumed run needs of back ends. A rollback needs nothing."""
    return needs_of(_plan_of(journal, run))


def _plan_of(journal: Journal, run: str) -> Plan | None:
    written = journal.header(run).plan
    try:
        return plan_codec.decode_journaled(written, f"the plan of {run}") if written else None
    except InputError as exc:
        hint = f"use the version of rollout that wrote it, or `rollout rollback {run}`"
        raise StateError("journal-unreadable", str(exc), hint=hint) from exc


def changes_since(
    state: RunState, journal: Journal, inventory: Inventory, jumps: Jumps, *, most_left: bool = False
) -> FleetChanges:
    """What changed in the fleet since a run began. ``UsageError``: the list of nodes does not show that those it lacks left.

    A list that was kept may be older than the node. One with fewer than half of the run's machines may be of another cluster,
    unless the operator has told that they left (``most_left``).
    """
    plan = _plan_of(journal, state.order.run)
    changes = run_changes(state.order.nodes, plan.nodes if plan is not None else {}, state.order, inventory, jumps)
    if changes.left and inventory.remembered:
        what = f"the node list of {inventory.remembered} does not have {printable(fold(changes.left), 300)}"
        hint = "whether they left is not known: repeat the command once the API server answers"
        raise UsageError("not-in-inventory", what, hint=hint)
    were = {name for name, record in state.nodes.items() if record.state is not NodeState.GONE}
    there = were.difference(changes.left)
    if not most_left and not is_their_list(were, there):
        raise UsageError(
            "most-nodes-unlisted",
            f"the inventory of {state.order.cluster} lists {listed_nodes(inventory)}, and {len(there)} of the {len(were)} "
            f"machines of run {state.order.run}: whether the others left is not known",
            hint="it may list another cluster: check the kubeconfig's context, or the selector of the inventory. "
            f"If they left: `rollout resume {state.order.run} --most-left`",
        )
    return changes


def listed_nodes(inventory: Inventory) -> str:
    """``3 nodes of the API server``: how many nodes are listed, and by what."""
    by = f" of {inventory.listed_by}" if inventory.listed_by else ""
    return f"{counted(len(inventory.nodes), 'node')}{by}"
