"""``verify``, ``unlock`` and ``forget``: nodes outside of runs."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence

import click

from rollout.app.maintenance import (
    Freed,
    forget_fleet,
    holders,
    last_confirmed,
    littered,
    set_free,
    under_way,
    verify_fleet,
)
from rollout.app.node_histories import files_of_plans
from rollout.app.node_worker import NodeAccess
from rollout.app.ports import Journal, Note
from rollout.app.reading import only, read_receipts
from rollout.app.runs import check_nothing_unfinished, highest_counter
from rollout.cli.options import echo_lines, limit_option, reason_option, session_options, typed_confirmation, yes_option
from rollout.cli.project import cluster_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.operators import operator
from rollout.composition.wiring import Session, new_run_id
from rollout.core.model.frozen import dataclass
from rollout.core.model.report import Outcome, Report
from rollout.core.plans.receipt_history import highest_token
from rollout.core.presentation.drift_text import DriftDocument, NotAsked, drift_document, drift_lines, has_drift
from rollout.core.text import documents
from rollout.core.text.message_folding import folded, for_all
from rollout.core.text.nodesets import expand, fold, select
from rollout.core.text.terminal import counted, printable
from rollout.errors import StateError, UsageError

DRIFTED = 10


@registered("Compare nodes with what was last confirmed on them.", prints=(DriftDocument,))
@click.command()
@cluster_option
@limit_option
@session_options
def verify(session: Session, cluster: str, limit: str) -> int:
    """Compare nodes with what was last confirmed on them; exit with 10 on drift. Changes nothing.

    Example: `rollout verify --cluster rno`
    """
    access = _access(session, cluster, limit)
    journal = session.past()
    known = last_confirmed(journal, cluster)
    nodes = session.nodes()
    try:
        found, unread = verify_fleet(access, nodes, known, session.traces.keep, files_of_plans(journal))
    finally:
        nodes.close()
    if session.output == "json":
        click.echo(documents.page(drift_document(found, unread)))
    else:
        echo_lines(drift_lines(found, unread))
    return DRIFTED if has_drift(found) else 4 if unread else 0


@dataclass(frozen=True, slots=True)
class UnlockDocument:
    """``released``: the nodeset; ``not_released``: node → why its claim remains; ``no_answer``: nodes that gave no answer."""

    cluster: str
    released: str
    not_released: Mapping[str, str]
    no_answer: tuple[NotAsked, ...]


@registered(
    "Release a cluster from a run without a controller.",
    prints=(UnlockDocument,),
    needs_output=False,
    goes_on_when_repeated=True,
)
@click.command()
@cluster_option
@limit_option
@click.option(
    "--force", is_flag=True, help="Also if the controller may still be alive elsewhere: the nodes then refuse it."
)
@yes_option
@reason_option
@session_options
def unlock(session: Session, cluster: str, limit: str, force: bool, yes: bool) -> int:  # noqa: FBT001 - click's flags
    """Release a cluster from a run without a controller: the journal's lease and the claims on its nodes.

    A change that is armed on a node is left to its guard. Every node refuses a controller that comes back.
    Files that a finished run left behind on a node are removed.

    Example: `rollout unlock --cluster rno --reason 'controller is gone'`
    """
    if not session.reason:
        raise UsageError(
            "no-reason", "unlock needs --reason", hint="the journal records it with your name and the time"
        )
    journal = session.journal()
    _check_holder(journal, cluster, force=force)
    access = _access(session, cluster, limit)
    nodes = session.nodes()
    try:
        reports = read_receipts(access, nodes, keep=session.traces.keep, strays=True)
        held, dirty = holders(reports), littered(reports)
        both = {**dirty, **held}
        for line in what_is_held(journal, cluster, reports, held, dirty):
            say(line, err=session.output == "json")
        typed_confirmation(cluster, f"{cluster} will be unlocked, {counted(len(both), 'node')} released", yes=yes)
        _check_holder(journal, cluster, force=force)  # a run may have started before the confirmation
        journal.unlock(cluster, Note(time.time(), operator(), f"unlocked: {session.reason}"))
        counter = max(highest_token(reports), highest_counter(journal, cluster)) + 1
        known = {header.run for header in journal.runs(cluster)}
        freed = set_free(only(access, tuple(both)), nodes, both, known, new_run_id(), counter, session.traces.keep)
    finally:
        nodes.close()
    found = UnlockDocument(cluster, *released(freed), _not_done(reports))
    if session.output == "json":
        click.echo(documents.page(found))
    else:
        say("\n".join(unlocked_lines(found)))
    return 4 if found.no_answer or found.not_released else 0


def released(freed: Sequence[Freed]) -> tuple[str, Mapping[str, str]]:
    """The nodeset without a claim now; node → why its claim remains."""
    still = {entry.node: printable(entry.still, 300) for entry in freed if entry.still}
    return fold(entry.node for entry in freed if not entry.still), still


def _not_done(reports: Mapping[str, Report]) -> tuple[NotAsked, ...]:
    return tuple(
        NotAsked(name, report.reference, printable(report.message, 300))
        for name, report in reports.items()
        if report.outcome is not Outcome.DONE
    )


def unlocked_lines(found: UnlockDocument) -> Iterator[str]:
    """The document for people. A cluster without any claim is unlocked, too: the nodeset of no nodes is ``""``."""
    for why, names in folded(found.not_released).items():
        yield f"{printable(fold(names), 160)}: {for_all(why, names)}"
    free = counted(len(expand(found.released)) if found.released else 0, "node")
    yield f"unlocked: {free} released, {len(found.not_released)} not released, {len(found.no_answer)} did not answer"
    for why, names in folded({each.node: f"{each.message} [{each.reference}]" for each in found.no_answer}).items():
        said = printable(for_all(why, names), 300)
        yield f"  no answer from {counted(len(names), 'node')}  {printable(fold(names), 160)}: {said}"


def _check_holder(journal: Journal, cluster: str, *, force: bool) -> None:
    holder = journal.holder(cluster)
    if holder is None or not holder.alive:
        return
    if holder.here:
        hint = f"`rollout abort {holder.run}`, or stop that process"
        raise StateError("locked", f"run {holder.run} is in progress on this machine", hint=hint)
    if not force:
        text = f"run {holder.run} on {holder.host} sent its last heartbeat {holder.silent:.0f} s ago"
        raise StateError("locked", text, hint="wait 30 s, or use --force if that machine is known to be gone")


def what_is_held(
    journal: Journal, cluster: str, reports: Mapping[str, Report], held: Mapping[str, str], dirty: Collection[str]
) -> Sequence[str]:
    """What an unlock ends, told before the confirmation. ``held``: node → the run with its claim. ``dirty``: nodes with leftovers."""
    holder = journal.holder(cluster)
    lines = [f"lease: run {holder.run} on {holder.host}, last heartbeat {holder.silent:.0f} s ago"] if holder else []
    for run in sorted(set(held.values())):
        names = [name for name, by in held.items() if by == run]
        lines.append(f"run {run} has claimed {counted(len(names), 'node')}: {printable(fold(names), 160)}")
    armed = under_way(reports)
    if armed:
        lines.append(f"armed or being reverted, left to their guards: {printable(fold(armed), 160)}")
    lines = lines or ["no lease and no claim"]
    left = folded({name: "; ".join(report.leftovers) for name, report in reports.items() if name in dirty})
    for files, names in left.items():
        said = printable(for_all(files, names), 300)
        lines.append(f"left behind on {printable(fold(names), 160)}, to be removed: {said}")
    return lines


@dataclass(frozen=True, slots=True)
class ForgetDocument:
    """``forgotten``: the nodeset without receipts, copies and token; ``failed``: the other nodes."""

    cluster: str
    forgotten: str
    failed: tuple[NotAsked, ...]


@registered(
    "Remove receipts, copies and token from nodes.",
    prints=(ForgetDocument,),
    needs_output=False,
    goes_on_when_repeated=True,
)
@click.command()
@cluster_option
@limit_option
@yes_option
@reason_option
@session_options
def forget(session: Session, cluster: str, limit: str, yes: bool) -> int:  # noqa: FBT001 - click's flag
    """Remove /var/lib/rollout from nodes: receipts, copies, token. Their changes can no longer be reverted.

    Example: `rollout forget --cluster rno --limit @rack01`
    """
    check_nothing_unfinished(session.past(), cluster)
    access = _access(session, cluster, limit)
    what = f"{counted(len(access.targets), 'node')} of {cluster} will lose what a rollback needs"
    typed_confirmation(cluster, what, yes=yes)
    nodes = session.nodes()
    try:
        reports = read_receipts(access, nodes, keep=session.traces.keep)
        answers = forget_fleet(access, nodes, new_run_id(), highest_token(reports) + 1, session.traces.keep)
    finally:
        nodes.close()
    done = [name for name, report in answers.items() if report.outcome is Outcome.DONE]
    session.journal().note(cluster, Note(time.time(), operator(), f"forgotten on {fold(done)}: {session.reason}"))
    failed = _not_done(answers)
    if session.output == "json":
        click.echo(documents.page(ForgetDocument(cluster, fold(done), failed)))
        return 4 if failed else 0
    for reason, names in folded({each.node: f"{each.message} [{each.reference}]" for each in failed}).items():
        said = printable(for_all(reason, names), 300)
        say(f"not forgotten: {counted(len(names), 'node')}  {printable(fold(names), 160)}: {said}")
    say(f"forgotten: {counted(len(done), 'node')}")
    return 4 if failed else 0


def _access(session: Session, cluster: str, limit: str) -> NodeAccess:
    inventory = session.inventory_or_remembered(cluster)
    return session.access(inventory, select(limit, inventory) if limit else tuple(inventory.nodes))
