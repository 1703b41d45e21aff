"""``rollback``: a run by its journal, or, in an emergency, by what the nodes alone know."""

from __future__ import annotations

from dataclasses import replace

import click

from rollout.app.following import last_way_back, replay
from rollout.app.reading import read_receipts
from rollout.app.rollbacks import emergency, rollback_order
from rollout.app.runs import (
    highest_counter,
    start_revert,
)
from rollout.cli.options import limit_option, reason_option, session_options, typed_confirmation, yes_option
from rollout.cli.which_run import known_run
from rollout.cli.wiring import Session, new_run_id
from rollout.core.model.playbook import EMERGENCY_LIMITS, Limits, Share
from rollout.core.model.way_back import WayBack
from rollout.core.plans.estimate import BACK_SECONDS
from rollout.core.run.order import predicted_seconds
from rollout.core.run.state import Order, RunState
from rollout.core.telling.summary import exit_code
from rollout.core.text.nodesets import fold, select
from rollout.core.text.terminal import counted, printable, seconds_text
from rollout.errors import StateError, UsageError


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
    click.echo(
        "no node's image pulls are waited for: where a kubelet or runtime restarts, they are cancelled and tried again"
    )


def _last_way_back(session: Session, cluster: str) -> WayBack | None:
    """An emergency does not wait for a journal that cannot be read."""
    try:
        return last_way_back(session.past(), cluster)
    except StateError:
        return None
