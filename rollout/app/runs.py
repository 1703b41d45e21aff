"""Beginning, resuming and taking back runs: everything between a decision and the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rollout.app.backends import Backends
from rollout.app.driver import Driver
from rollout.app.following import replay, replay_if_readable
from rollout.app.node_worker import NodeWorker, Way
from rollout.app.ports import Clock, Engine, Journal, Local, Nodes, Observer, RunHeader
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import Gate, Limits
from rollout.core.model.report import Outcome, Report
from rollout.core.model.roles import Role, role_of
from rollout.core.plans import plan_codec
from rollout.core.plans.planning import rack_sizes
from rollout.core.run.events import Resumed
from rollout.core.run.journal_codec import encode_order
from rollout.core.run.machine import opening, step
from rollout.core.run.order import apply_order, revert_order
from rollout.core.run.state import Ending, Goal, LeftOut, NodeState, Order, Phase, RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem, StateError, UsageError


@dataclass(frozen=True, slots=True)
class Tools:
    """What a run needs of the outside, wired by the composition root."""

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


def check_plan(plan: Plan, inventory: Inventory, file: str) -> None:
    """A plan may only be applied to the inventory it was made for."""
    if plan.cluster != inventory.cluster or plan.inventory_digest != inventory.digest:
        raise InputError(
            (
                Problem(
                    "plan-for-another-inventory",
                    f"{file} was made for {plan.cluster} with another version of its inventory",
                    hint=f"plan again: rollout plan --cluster {inventory.cluster}",
                ),
            )
        )


def check_nothing_unfinished(journal: Journal, cluster: str) -> None:
    """The newest run of a cluster that did anything must have ended (or be taken back) before another may begin."""
    headers = journal.runs(cluster)
    if not headers:
        return
    state = last_that_acted(journal, cluster, or_else=headers[-1].run)
    run = state.order.run
    if state.phase is not Phase.ENDED:
        journal.acquire(cluster, run)  # while its controller lives: locked, and by whom
        journal.release(cluster, run)
        raise StateError(
            "run-unfinished",
            f"run {run} of {cluster} has not ended",
            hint=f"`rollout resume {run}` or `rollout rollback {run}`",
        )


def start_apply(plan: Plan, way: Way, tools: Tools) -> RunState:
    """Carry a plan out from the beginning."""
    check_nothing_unfinished(tools.journal, plan.cluster)
    order = apply_order(tools.new_run_id(), plan)
    counter = max(plan.counter, highest_counter(tools.journal, plan.cluster)) + 1
    worker = NodeWorker(
        order.run, way, tools.nodes, tools.local, tools.clock, plan, backends=tools.backends, who=tools.who
    )
    return _begin(order, counter, plan_codec.encode(plan), worker, tools)


def start_revert(order: Order, counter: int, way: Way, tools: Tools) -> RunState:
    """Take transactions back, over claims of the run that made them."""
    worker = NodeWorker(order.run, way, tools.nodes, tools.local, tools.clock, take_over=True, force=order.force)
    return _begin(order, counter, b"", worker, tools)


def _begin(order: Order, counter: int, plan: bytes, worker: NodeWorker, tools: Tools) -> RunState:
    tools.journal.acquire(order.cluster, order.run)
    try:
        at = tools.clock.now()
        tools.journal.begin(
            RunHeader(
                order.run, order.cluster, order.goal, encode_order(order), counter, plan, at, tools.who, tools.reason
            )
        )
        state, commands = opening(order, counter, at)
        return _driver(worker, tools).run(state, commands)
    finally:
        tools.journal.release(order.cluster, order.run)


def _driver(worker: NodeWorker, tools: Tools) -> Driver:
    return Driver(tools.journal, tools.engine, worker, tools.clock, tools.observers, tools.interrupted)


def highest_counter(journal: Journal, cluster: str) -> int:
    """The highest token of the newest runs, also those that a resume or a second claim raised. Nodes may know higher."""
    states = [state for header in journal.runs(cluster)[:3] if (state := replay_if_readable(journal, header.run))]
    return max([journal.highest_counter(cluster), *(max(state.counter, state.highest) for state in states)])


def resumable(journal: Journal, run: str) -> RunState:
    """The state of a run that may be resumed, or the reason why not."""
    state = _newest(journal, run)
    if state.phase is Phase.ENDED and state.ending in (Ending.DONE, Ending.PREFLIGHT):
        owed = any(record.owed for record in state.nodes.values())
        hint = f"`rollout catch-up {run}` for the nodes it owes" if owed else "plan again"
        raise StateError("nothing-to-resume", f"run {run} has ended: {state.ending}", hint=hint)
    return state


def owing(journal: Journal, run: str) -> RunState:
    """The state of a run that has ended and still owes something to nodes, or the reason why it is not one."""
    state = _newest(journal, run)
    if state.phase is not Phase.ENDED or state.ending is not Ending.DONE:
        hint = f"`rollout resume {run}` asks the nodes it owes too"
        raise StateError("not-done", f"run {run} has not ended as it should: {state.ending or state.phase}", hint=hint)
    if not any(record.owed for record in state.nodes.values()):
        raise StateError("nothing-owed", f"run {run} owes nothing to any node")
    return state


def _newest(journal: Journal, run: str) -> RunState:
    """A run that no other has followed."""
    state = replay(journal, run)
    newest = last_that_acted(journal, state.order.cluster, or_else=run)
    if newest.order.run != run:
        other = newest.order.run
        raise StateError("superseded", f"run {run} was followed by {other}", hint=f"`rollout resume {other}`")
    return state


def last_that_acted(journal: Journal, cluster: str, *, or_else: str) -> RunState:
    """The newest run of a cluster that was not turned away before it touched a node (``or_else``: enough of looking back)."""
    for header in journal.runs(cluster):
        state = replay(journal, header.run)
        if header.run == or_else or state.ending not in (Ending.CLAIMED, Ending.PREFLIGHT):
            return state
    return replay(journal, or_else)


def resume(state: RunState, way: Way, tools: Tools) -> RunState:
    """Go on with a run: a new token, every node read back, then on from where they really stand."""
    order = state.order
    plan = _plan_of(tools.journal, order.run)
    take_over = order.goal is Goal.REVERT
    worker = NodeWorker(
        order.run, way, tools.nodes, tools.local, tools.clock, plan, take_over, order.force, tools.backends, tools.who
    )
    tools.journal.acquire(order.cluster, order.run)
    try:
        state = replay(tools.journal, order.run)
        event = Resumed(tools.clock.now(), max(state.counter, state.highest) + 1)
        state, commands = step(state, event)
        return _driver(worker, tools).run(state, commands, [event])
    finally:
        tools.journal.release(order.cluster, order.run)


def gates_of(journal: Journal, run: str) -> tuple[Gate, ...]:
    """The gates that going on with a run will ask; a rollback asks none."""
    plan = _plan_of(journal, run)
    return plan.gates if plan else ()


def _plan_of(journal: Journal, run: str) -> Plan | None:
    written = journal.header(run).plan
    try:
        return plan_codec.decode(written, f"the plan of {run}") if written else None
    except InputError as exc:
        hint = f"use the version of rollout that wrote it, or `rollout rollback {run}`"
        raise StateError("journal-unreadable", str(exc), hint=hint) from exc


_HOLDING = frozenset(
    {
        NodeState.CONFIRMED, NodeState.APPLIED, NodeState.APPLYING, NodeState.REVERTING, NodeState.UNKNOWN,
        NodeState.UNREACHABLE,
    }
)  # fmt: skip


def rollback_order(
    state: RunState, run: str, chosen: frozenset[str], inventory: Inventory, limits: Limits, *, force: bool
) -> Order:
    """The order that takes a run back from those of its nodes that may hold its change.

    A run that has not ended holds all its nodes: who was not touched yet is only set free.
    """
    claimed = state.phase is not Phase.ENDED
    transactions = {
        name: state.transaction(name)
        for name, record in state.nodes.items()
        if name in chosen and (claimed or record.state in _HOLDING or record.owed)
    }
    return _revert_order(run, inventory, transactions, limits, force=force)


def _revert_order(
    run: str,
    inventory: Inventory,
    transactions: Mapping[str, str],
    limits: Limits,
    left_out: tuple[LeftOut, ...] = (),
    *,
    force: bool,
) -> Order:
    check_in_inventory(transactions, inventory, "use --limit")
    racks = rack_sizes(inventory)
    rack_of = {name: inventory.nodes[name].rack for name in transactions}
    singly = [name for name in transactions if role_of(inventory.nodes[name].labels) is Role.CONTROL_PLANE]
    return revert_order(
        run, inventory.cluster, transactions, rack_of, racks, limits, left_out, force=force, singly=singly
    )


def check_in_inventory(names: Iterable[str], inventory: Inventory, hint: str) -> None:
    """Only the inventory says how a node is reached."""
    gone = [name for name in names if name not in inventory.nodes]
    if gone:
        raise UsageError("not-in-inventory", f"the inventory no longer has {printable(fold(gone), 300)}", hint=hint)


@dataclass(frozen=True, slots=True)
class Emergency:
    """What the nodes alone say: which run is the newest, who is to be taken back, who did not answer."""

    source: str
    order: Order
    counter: int
    silent: tuple[str, ...]
    already: tuple[str, ...]


def emergency(
    reports: Mapping[str, Report], run: str, source: str, inventory: Inventory, limits: Limits, *, force: bool
) -> Emergency:
    """Pick the newest run on the nodes (or ``source``) and only those nodes whose newest transaction is in it.

    Taking it back makes that transaction ``reverted``, still the newest: repeating steps no further back. Nodes that a
    run holds and has not touched are set free: asked for a transaction that they do not have. So are those that took
    their change back by themselves, while nobody could reach them.
    """
    newest = {name: report.receipts[0] for name, report in reports.items() if report.receipts}
    silent = tuple(name for name, report in reports.items() if report.outcome is not Outcome.DONE)
    counters = [report.token.counter for report in reports.values() if report.token]
    if not newest:
        raise UsageError("nothing-to-take-back", "no node that answered holds a transaction of ours")
    known = {receipt.run for report in reports.values() for receipt in report.receipts}
    if source and source not in known:
        hint = did_you_mean(source, known)
        raise UsageError(
            "no-such-run", f"no node that answered holds a transaction of `{printable(source)}`", hint=hint
        )
    last = source or max(newest.values(), key=lambda receipt: receipt.counter).run
    held = {name: receipt for name, receipt in newest.items() if receipt.run == last}
    todo = {name: receipt.tx for name, receipt in held.items() if receipt.state != "reverted"}
    todo |= {name: receipt.tx for name, receipt in held.items() if name not in todo and _held_by(reports[name])}
    already = tuple(name for name in held if name not in todo)
    todo |= {
        name: f"{run_of}-1" for name, report in reports.items() if name not in held and (run_of := _held_by(report))
    }
    counter = max([*counters, *(receipt.counter for receipt in newest.values())]) + 1
    unasked = (LeftOut("silent", "did not answer; owed", fold(silent), len(silent)),) if silent else ()
    order = _revert_order(run, inventory, todo, limits, unasked, force=force)
    return Emergency(last, order, counter, silent, already)


def _held_by(report: Report) -> str:
    """The run that still has a claim on a node, or ``""``."""
    return report.token.run if report.token is not None and report.token.live else ""
