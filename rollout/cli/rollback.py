"""``rollback``: reverts a run by its journal, or, in an emergency, by what the nodes alone report."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import click

from rollout.adapters.zones import SystemZones
from rollout.app.change_windows import PASSES, closed_lines
from rollout.app.emergencies import EmergencyOptions, EmergencyRollback
from rollout.app.following import plan_of, replay
from rollout.app.freezes import freeze_in
from rollout.app.ports import Journal, Nodes
from rollout.app.proofs import promised_files, prove
from rollout.app.reverted_elsewhere import reverted_elsewhere
from rollout.app.rollbacks import NOTHING_SINCE, RunsToRevert, SinceRun, rollback_order, since_run
from rollout.app.runs import Tools, highest_counter, start_revert
from rollout.cli.cordons import CordonsDocument, lift_and_tell, lift_those_of
from rollout.cli.options import (
    PercentOption,
    known_run,
    limit_option,
    reason_option,
    session_options,
    typed_confirmation,
    yes_option,
)
from rollout.cli.proposals import say
from rollout.cli.registry import Kinds, registered
from rollout.composition.emergency_io import (
    EmergencyTerminal,
    known_revert_times,
    left_behind,
    tell_proofs,
    to_be_proven,
)
from rollout.composition.wiring import Session, new_run_id
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import EMERGENCY_LIMITS, Limits, Share
from rollout.core.model.proof import Proven, as_before
from rollout.core.presentation.emergency_text import EMERGENCY_DOCUMENTS, PROOF_DOCUMENTS, predicted_lines
from rollout.core.presentation.freeze_text import noted_line
from rollout.core.presentation.nothing_to_revert import NothingToRevertDocument, not_reverted_lines, nothing_to_revert
from rollout.core.presentation.rollback_time import node_time, time_back
from rollout.core.presentation.summary import exit_code
from rollout.core.run.facts import may_hold
from rollout.core.run.state import Ending, Order, RunState
from rollout.core.text import documents, durations
from rollout.core.text.nodesets import select
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError
from rollout.features.approvals.asking import rules_for


@dataclass(frozen=True, slots=True)
class Emergencies:
    """The options that belong to ``--emergency``."""

    cluster: str
    from_nodes: bool
    every_run: bool
    until_done: bool
    at_most: str


def revert_documents() -> Kinds:
    """What the revert of a run by the journal prints."""
    from rollout.adapters.progress import RUN_DOCUMENTS  # noqa: PLC0415 - only `rollout schema documents` needs it here

    return (*RUN_DOCUMENTS, CordonsDocument, *PROOF_DOCUMENTS)


def _documents() -> Kinds:
    return (*revert_documents(), NothingToRevertDocument, *EMERGENCY_DOCUMENTS)


@registered("Revert a run, or all nodes in an emergency.", prints=_documents, needs_output=False)
@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--cluster", default="", help="With --emergency: the cluster.")
@click.option(
    "--emergency", "from_nodes", is_flag=True, help="Use only what the nodes report: revert their newest run."
)
@click.option("--every-run", is_flag=True, help="With --emergency: each node's newest transaction, of any run.")
@click.option("--until-done", is_flag=True, help="With --emergency: retry unreachable nodes until all are reverted.")
@click.option(
    "--at-most", default="", metavar="TIME", help="With --until-done: stop retrying after this time, e.g. 2h."
)
@limit_option
@click.option("--pace", type=click.FloatRange(0.1), default=None, help="Restarts per second (default: 30).")
@click.option("--per-rack", type=PercentOption(), default=None, help="Share of a rack at once (default: 50%).")
@click.option(
    "--per-zone",
    type=PercentOption(),
    default=None,
    help="Share of a zone at once (default: 50% if there are several zones).",
)
@click.option("--in-flight", type=click.IntRange(1, 2000), default=None, help="Nodes in flight at once (default: 200).")
@click.option("--force", is_flag=True, help="Also where others changed files since; their bytes are kept on the node.")
@yes_option
@reason_option
@session_options
def rollback(
    session: Session,
    runs: tuple[str, ...],
    limit: str,
    pace: float | None,
    per_rack: Share | None,
    per_zone: Share | None,
    in_flight: int | None,
    force: bool,  # noqa: FBT001 - click's flags
    yes: bool,  # noqa: FBT001
    **emergency: Any,
) -> int:
    """Revert a run: RUN by the journal, or --cluster C --emergency by what the nodes report.

    With --emergency, RUN... selects from the runs on the nodes.

    Example: `rollout rollback --cluster rno --emergency`
    """
    asked = _checked(runs, Emergencies(**emergency))
    limits = replace(
        EMERGENCY_LIMITS,
        pace=pace or EMERGENCY_LIMITS.pace,
        per_rack=per_rack or EMERGENCY_LIMITS.per_rack,
        per_zone=per_zone or EMERGENCY_LIMITS.per_zone,
        in_flight=in_flight or EMERGENCY_LIMITS.in_flight,
    )
    if not asked.from_nodes:
        return _by_journal(session, runs[0], limit, limits, force=force, yes=yes)
    inventory = session.inventory_or_remembered(asked.cluster)
    names = select(limit, inventory) if limit else tuple(inventory.nodes)
    patience = _patience(asked)
    say_passed(session, inventory, None)
    whole = EmergencyOptions(inventory, RunsToRevert(runs, asked.every_run), limits, force=force, at_most=patience)
    session = session.in_emergency()
    return _emergency(
        session, whole, EmergencyTerminal(session, inventory, partial(typed_confirmation, yes=yes)), names
    )


def _emergency(session: Session, asked: EmergencyOptions, terminal: EmergencyTerminal, names: Sequence[str]) -> int:
    """Returns the exit code. Once we hold the nodes, cordons are lifted, except those of runs that still hold nodes."""
    work = EmergencyRollback(asked, terminal)
    try:
        code = work.run(names)
        if work.has_them:
            lift_and_tell(session, asked.inventory, names, spared=work.others())
    except KeyboardInterrupt:
        if not terminal.rounds:
            raise
        say("stopped at once; run the same command again to continue", err=True)
        return 130
    finally:
        terminal.close()
    return code


def _checked(runs: tuple[str, ...], asked: Emergencies) -> Emergencies:
    if asked.from_nodes != bool(asked.cluster) or (not asked.from_nodes and len(runs) != 1):
        raise UsageError(
            "run-or-emergency", "give RUN, or --cluster CLUSTER --emergency (RUN then selects one of its runs)"
        )
    if not asked.from_nodes and (asked.every_run or asked.until_done):
        raise UsageError("only-in-an-emergency", "--every-run and --until-done need --emergency")
    if asked.every_run and runs:
        raise UsageError("run-or-every-run", "give RUN or --every-run, not both")
    if asked.at_most and not asked.until_done:
        raise UsageError("only-until-done", "--at-most needs --until-done")
    return asked


def say_passed(session: Session, inventory: Inventory, plan: Plan | None) -> None:
    """A rollback waits for nothing and nobody: it says so where a run would wait."""
    calendars = (inventory.calendar, *(plan.calendars if plan is not None else ()))
    lines = closed_lines(calendars, SystemZones(), PASSES)
    if rules_for(plan, inventory) or inventory.approvals is not None:
        lines = (*lines, "plans need approvals here; a rollback needs none")
    for line in lines:
        say(line, err=session.output != "text")


def _patience(asked: Emergencies) -> float | None:
    """Seconds to keep retrying: 0 without ``--until-done``, ``None`` without ``--at-most``."""
    if not asked.until_done:
        return 0.0
    try:
        return durations.parse(asked.at_most) if asked.at_most else None
    except durations.DurationError as error:
        raise UsageError("bad-duration", f"--at-most {printable(asked.at_most, 60)!r}: {error}") from None


def _by_journal(session: Session, run: str, limit: str, limits: Limits, *, force: bool, yes: bool) -> int:
    journal = session.past()
    source = replay(journal, known_run(session, journal.listed(), run))
    inventory = session.inventory_or_remembered(source.order.cluster)
    chosen = frozenset(select(limit, inventory) if limit else inventory.nodes)
    with closing(session.nodes()) as nodes:
        return _reverted_since(
            session, journal, source, inventory, nodes, limits, chosen, limited=bool(limit), force=force, yes=yes
        )


def _reverted_since(
    session: Session, journal: Journal, source: RunState, inventory: Inventory, nodes: Nodes, limits: Limits, chosen: frozenset[str],
    *, limited: bool, force: bool, yes: bool,
) -> int:  # fmt: skip
    """Revert what no other run has reverted since; the exit code. ``limited``: ``chosen`` are not all nodes of the inventory."""
    since = since_by_nodes(session, journal, source, inventory, nodes, chosen)
    back = {by: mine for by, names in since.rolled_back.items() if (mine := tuple(sorted(chosen.intersection(names))))}
    order = rollback_order(source, new_run_id(), chosen if limited else None, inventory, limits, since, force=force)
    if session.output == "text":
        for line in not_reverted_lines(back, since.elsewhere, order.left_out):
            say(line)
    if not order.nodes:
        lift_those_of(session, journal, inventory, source, chosen)  # the run may have left some
        return _tell_nothing(session, nothing_to_revert(source.order.run, back, since.elsewhere, order.left_out))
    say_passed(session, inventory, plan_of(journal.header(source.order.run)))
    if freeze := freeze_in(journal, order.cluster):
        say(f"{noted_line(freeze)}; {PASSES}", err=session.output != "text")
    if session.output == "text":
        for line in predicted_lines(time_back(order, node_time(known_revert_times(session, order.cluster)))):
            say(line)
        if source.silences:
            say(
                "the run's silences are not lifted; they expire by themselves: "
                + printable(", ".join(source.silences), 300)
            )
    typed_confirmation(
        order.cluster, f"{counted(len(order.nodes), 'node')} of {order.cluster} will be reverted", yes=yes
    )
    return revert_by_journal(session, journal, source, order, inventory, chosen, since, nodes)


def since_by_nodes(
    session: Session, journal: Journal, source: RunState, inventory: Inventory, nodes: Nodes, chosen: Collection[str]
) -> SinceRun:
    """What later runs did to the nodes of a run, by the journal and by the receipts of those that may have its change."""
    held = (name for name, record in source.nodes.items() if may_hold(record))
    there = tuple(name for name in held if name in chosen and name in inventory.nodes)
    if not there:
        return since_run(journal, source.order.run)
    access = session.access(inventory, there)
    elsewhere = reverted_elsewhere(journal, source.order.cluster, access, nodes, session.traces.keep)
    return since_run(journal, source.order.run, elsewhere)


def _tell_nothing(session: Session, found: NothingToRevertDocument) -> int:
    if session.output == "json":
        click.echo(documents.line(found))
    else:
        say("nothing to revert: no node was touched")
    return found.exit_code


def revert_by_journal(
    session: Session, journal: Journal, source: RunState, order: Order, inventory: Inventory, chosen: Collection[str],
    since: SinceRun = NOTHING_SINCE, nodes: Nodes | None = None,
) -> int:  # fmt: skip
    """Revert ``source`` as ordered, lift its cordons on the ``chosen`` nodes and prove the nodes; the exit code.

    ``since``: nodes that it lists as reverted elsewhere are only released. ``nodes``: open connections (``None``: new ones).
    """
    counter = max(highest_counter(journal, order.cluster), source.counter, source.highest) + 1
    already = frozenset(name for names in since.elsewhere.values() for name in names)
    with session.tools(journal, order.limits.in_flight, nodes=nodes) as tools:
        state = start_revert(order, counter, session.access(inventory, tuple(order.nodes)), tools)
        lift_those_of(session, journal, inventory, source, chosen)
        return (
            proven(session, journal, state, inventory, tools, already)
            if state.ending is Ending.DONE
            else exit_code(state) or 0
        )


def proven(
    session: Session,
    journal: Journal,
    state: RunState,
    inventory: Inventory,
    tools: Tools,
    already: Collection[str] = (),
) -> int:
    """Read every node that a rollback has reached, compare it with what the rollback promises, and print it; the exit code.

    Nodes that left since are not read: only what is in the fleet has an address. ``already``: nodes that had no change of the
    run before the rollback; it does not count them as reverted.
    """
    asked = {name: tx for name, tx in to_be_proven(state).items() if name in inventory.nodes}
    access = session.access(inventory, tuple(asked))
    proofs = prove(access, tools.nodes, asked, left_behind(state), tools.keep, promised_files(journal, asked))
    proofs = tuple(
        replace(proof, proven=Proven.UNCHANGED) if proof.node in already and proof.proven is Proven.PROVEN else proof
        for proof in proofs
    )
    tell_proofs(session, proofs)
    return exit_code(state) or (0 if as_before(proofs) else 4)
