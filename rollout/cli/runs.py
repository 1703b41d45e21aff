"""``apply``, ``status``, ``resume`` and ``rollback``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from rollout.app.following import last_way_back, replay
from rollout.app.load import load_policy
from rollout.app.plan import check_preflight
from rollout.app.ports import Journal, RunHeader
from rollout.app.reading import read_receipts
from rollout.app.runs import (
    check_in_inventory,
    check_nothing_unfinished,
    check_plan,
    emergency,
    gates_of,
    highest_counter,
    owing,
    resumable,
    rollback_order,
    start_apply,
    start_revert,
)
from rollout.app.runs import resume as resume_run
from rollout.cli.gate_backends import check_backends, gate_backends
from rollout.cli.options import limit_option, reason_option, session_options, typed_confirmation, yes_option
from rollout.cli.plan import make_plan, preflight_text, read_bounded, read_fleet, the_playbook
from rollout.cli.wiring import Session, new_run_id, operator
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import EMERGENCY_LIMITS, Limits, Share
from rollout.core.model.way_back import WayBack
from rollout.core.plans import plan_codec
from rollout.core.plans.estimate import BACK_SECONDS
from rollout.core.plans.plan_text import plan_text
from rollout.core.run.order import left_out, predicted_seconds
from rollout.core.run.requests import Word
from rollout.core.run.state import Order, RunState
from rollout.core.telling.summary import exit_code, summarize
from rollout.core.telling.summary_text import summary_document, summary_lines
from rollout.core.text.nodesets import fold, select
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import counted, printable, seconds_text
from rollout.errors import InputError, Problem, StateError, UsageError


@click.command()
@click.argument("plan_file", required=False, type=click.Path(path_type=Path))
@click.option("--cluster", default="", help="Plan and apply in one go, instead of a plan file.")
@click.option("--playbook", default="", help="With --cluster: which playbook.")
@click.option("--set", "overrides", multiple=True, metavar="NAME=VALUE", help="With --cluster: one more setting.")
@limit_option
@yes_option
@reason_option
@session_options
def apply(
    session: Session,
    plan_file: Path | None,
    cluster: str,
    playbook: str,
    overrides: tuple[str, ...],
    limit: str,
    yes: bool,  # noqa: FBT001 - click's flag
) -> int:
    """Carry a plan out: canary, growing waves, gates; halts and takes back by itself."""
    if (plan_file is None) == (not cluster):
        raise UsageError("plan-or-cluster", "say either a plan file or --cluster")
    if plan_file is not None and (playbook or overrides or limit):
        raise UsageError(
            "plan-is-fixed", "a plan file is applied as it is: --playbook, --set and --limit go with --cluster"
        )
    if plan_file is not None:
        plan, inventory = _read_plan(session, plan_file)
    else:
        plan, inventory = _plan_now(session, cluster, playbook, overrides, limit)
    preflight = check_preflight(plan)
    if preflight.refused:
        raise UsageError("preflight", f"nothing was touched: {preflight_text(preflight)}")
    if not plan.nodes:
        return _nothing_to_do(session, plan)
    check_nothing_unfinished(session.past(), plan.cluster)
    what = f"{counted(len(plan.nodes), 'node')} of {plan.cluster} will be changed"
    with gate_backends(inventory, plan.gates, session.kubeconfig) as backends:
        typed_confirmation(plan.cluster, what, yes=yes)
        with session.tools(session.journal(), plan.limits.in_flight, backends) as tools:
            state = start_apply(plan, session.way(inventory, tuple(plan.nodes)), tools)
    return exit_code(state) or 0


def _read_plan(session: Session, path: Path) -> tuple[Plan, Inventory]:
    try:
        plan = plan_codec.decode(read_bounded(path), str(path))
    except OSError as exc:
        raise InputError((Problem("file-missing", f"{path}: {exc.strerror}"),)) from exc
    inventory = session.inventory(plan.cluster)
    check_plan(plan, inventory, str(path))
    return plan, inventory


def _plan_now(
    session: Session, cluster: str, playbook: str, overrides: tuple[str, ...], limit: str
) -> tuple[Plan, Inventory]:
    files = session.files()
    inventory = session.inventory(cluster)
    policy = load_policy(files, playbook or the_playbook(files, inventory))
    check_backends(inventory, policy.gates, session.kubeconfig)
    selection = select(limit, inventory) if limit else tuple(inventory.nodes)
    fleet = read_fleet(session, inventory, selection)
    plan = make_plan(session, inventory, policy, fleet, selection, limit, overrides)
    if session.output == "text":
        click.echo(plan_text(plan))
    return plan, inventory


def _nothing_to_do(session: Session, plan: Plan) -> int:
    if session.output == "text":
        click.echo("nothing to do")
        for left in left_out(plan):
            click.echo(f"not in the plan, {left.what} ({left.count}) {left.nodes}: {printable(left.reason, 400)}")
    return 4 if left_out(plan) else 0


@click.command()
@click.argument("run", required=False, default="")
@session_options
def status(session: Session, run: str) -> int:
    """Where a run stands (the newest, without RUN), from its journal."""
    journal = session.past()
    headers = journal.runs()
    summary = summarize(replay(journal, known_run(session, headers, run)))
    if session.output == "json":
        click.echo(json.dumps(summary_document(summary), sort_keys=True))
    else:
        click.echo("\n".join(summary_lines(summary)))
        older = [header for header in headers if header.run != summary.run][:8]
        click.echo(
            "\n".join(f"  earlier: {header.run} {header.goal} {header.cluster} by {header.who}" for header in older)
        )
    return 0


@click.command()
@click.argument("run", required=False, default="")
@click.option("--promote", is_flag=True, help="Also lift a pause, or a hold after a wave.")
@yes_option
@reason_option
@session_options
def resume(session: Session, run: str, promote: bool, yes: bool) -> int:  # noqa: FBT001 - click's flags
    """Go on with a run (the newest, without RUN) that was interrupted, halted or lost its controller."""
    journal = session.past()
    state = resumable(journal, known_run(session, journal.runs(), run))
    waiting = journal.requests(state.order.run, state.heard)
    for request in waiting if session.output == "text" else ():
        click.echo(f"not heard yet: {printable(f'{request.word} by {request.who}: {request.reason}', 300)}")
    promote = promote and bool(state.paused is not None or waiting)
    return _go_on(session, journal, state, " after its halt" if state.halt else "", yes=yes, promote=promote)


@click.command("catch-up")
@click.argument("run", required=False, default="")
@yes_option
@reason_option
@session_options
def catch_up(session: Session, run: str, yes: bool) -> int:  # noqa: FBT001 - click's flag
    """Do what a run that has ended (the newest, without RUN) still owes to nodes that could not be reached."""
    journal = session.past()
    state = owing(journal, known_run(session, journal.runs(), run))
    owed = fold(name for name, record in state.nodes.items() if record.owed)
    return _go_on(session, journal, state, f" for who is owed: {owed}", yes=yes)


def _go_on(session: Session, journal: Journal, state: RunState, why: str, *, yes: bool, promote: bool = False) -> int:
    cluster = state.order.cluster
    inventory = session.inventory(cluster)
    check_in_inventory(state.order.nodes, inventory, "the run has it: put it back, also if it does not answer any more")
    with gate_backends(inventory, gates_of(journal, state.order.run), session.kubeconfig) as backends:
        typed_confirmation(cluster, f"run {state.order.run} on {cluster} goes on{why}", yes=yes)
        if promote:  # not before: who does not go on has not said it
            journal.ask(state.order.run, Word.CONTINUE, operator(), session.reason, "")
        with session.tools(journal, state.order.limits.in_flight, backends) as tools:
            state = resume_run(state, session.way(inventory, tuple(state.order.nodes)), tools)
    return exit_code(state) or 0


@click.command()
@click.argument("run", required=False, default="")
@click.option("--cluster", default="", help="With --emergency: whose nodes.")
@click.option("--emergency", "from_nodes", is_flag=True, help="From what the nodes know alone: the newest run on them.")
@limit_option
@click.option("--pace", type=click.FloatRange(0.1), default=None, help="Restarts a second.")
@click.option("--per-rack", type=click.IntRange(1, 100), default=None, help="Percent of a rack at once.")
@click.option("--force", is_flag=True, help="Also where others have written since; their bytes are kept on the node.")
@yes_option
@reason_option
@session_options
def rollback(
    session: Session,
    run: str,
    cluster: str,
    from_nodes: bool,  # noqa: FBT001 - click's flags
    limit: str,
    pace: float | None,
    per_rack: int | None,
    force: bool,  # noqa: FBT001
    yes: bool,  # noqa: FBT001
) -> int:
    """Take a run back: RUN by the journal, or --cluster C --emergency by the nodes alone."""
    if from_nodes != bool(cluster) or (not from_nodes and not run):
        raise UsageError(
            "run-or-emergency", "say RUN, or --cluster CLUSTER --emergency (RUN then picks one of its runs)"
        )
    limits = EMERGENCY_LIMITS
    if pace:
        limits = replace(limits, pace=pace)
    if per_rack:
        limits = replace(limits, per_rack=Share(percent=float(per_rack)))
    if from_nodes:
        return _emergency(session, cluster, run, limit, limits, force=force, yes=yes)
    journal = session.past()
    source = replay(journal, known_run(session, journal.runs(), run))
    inventory = session.inventory(source.order.cluster)
    chosen = frozenset(select(limit, inventory) if limit else inventory.nodes)
    order = rollback_order(source, new_run_id(), chosen, inventory, limits, force=force)
    _predict(session, order)
    if source.silences and session.output == "text":
        click.echo("its silences are not lifted, they end by themselves: " + printable(", ".join(source.silences), 300))
    if not order.nodes:
        return 0
    typed_confirmation(
        order.cluster, f"{counted(len(order.nodes), 'node')} of {order.cluster} will be taken back", yes=yes
    )
    counter = max(highest_counter(journal, order.cluster), source.counter, source.highest) + 1
    with session.tools(journal, limits.in_flight) as tools:
        state = start_revert(order, counter, session.way(inventory, tuple(order.nodes)), tools)
    return exit_code(state) or 0


def _emergency(session: Session, cluster: str, run: str, limit: str, limits: Limits, *, force: bool, yes: bool) -> int:
    inventory = session.inventory_in_emergency(cluster)
    names = select(limit, inventory) if limit else tuple(inventory.nodes)
    nodes = session.nodes()
    try:
        reports = read_receipts(session.way(inventory, names), nodes)
    finally:
        nodes.close()
    found = emergency(reports, new_run_id(), run, inventory, limits, force=force)
    if session.output == "text":
        click.echo(f"newest run on the nodes: {found.source}; {len(found.already)} nodes are back already")
        if found.silent:
            click.echo(f"no answer from {counted(len(found.silent), 'node')}, still owed: {fold(found.silent)}")
    _predict(session, found.order)
    if not found.order.nodes:
        return 4 if found.silent else 0
    typed_confirmation(cluster, f"{counted(len(found.order.nodes), 'node')} of {cluster} will be taken back", yes=yes)
    with session.tools(session.journal_if_any(), limits.in_flight) as tools:
        way = session.way(inventory, tuple(found.order.nodes))
        state: RunState = start_revert(found.order, found.counter, way, tools)
    return exit_code(state) or 0


def known_run(session: Session, headers: Sequence[RunHeader], run: str) -> str:
    """The run that is meant: the newest, where none is named."""
    if not headers:
        raise UsageError("no-runs", f"the journal in {session.state} holds no run yet")
    names = [header.run for header in headers]
    if run and run not in names:
        hint = did_you_mean(run, names) or f"the newest is {names[0]}"
        raise UsageError("no-such-run", f"the journal in {session.state} has no run `{printable(run, 60)}`", hint=hint)
    return run or names[0]


def _predict(session: Session, order: Order) -> None:
    """How long it will take, said before anything is done: by the rehearsal, where the journal has one."""
    if session.output != "text":
        return
    if not order.nodes:
        click.echo("nothing to take back")
        return
    known = _last_way_back(session, order.cluster)
    each = known.revert_seconds if known else BACK_SECONDS
    why = f"as run {known.run} measured it on {counted(known.nodes, 'node')}" if known else "never rehearsed"
    time = seconds_text(predicted_seconds(order, each))
    click.echo(
        f"{counted(len(order.nodes), 'node')} to take back, about {time} "
        f"at {order.limits.pace:g} a second ({each:.0f} s a node, {why})"
    )


def _last_way_back(session: Session, cluster: str) -> WayBack | None:
    """An emergency does not wait for a journal that cannot be read."""
    try:
        return last_way_back(session.past(), cluster)
    except StateError:
        return None
