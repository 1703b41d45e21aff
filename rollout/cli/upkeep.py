"""``verify``, ``cluster unlock`` and ``uninstall``: nodes outside of runs."""

from __future__ import annotations

from collections.abc import Iterator

import click

from rollout.app.forget import ForgetDocument, forget_cluster
from rollout.app.owned import noted_in
from rollout.app.unlock import UnlockDocument, unlock_cluster
from rollout.app.verify import DRIFTED, verify_cluster
from rollout.cli.options import echo_lines, limit_option, reason_option, session_options, yes_option
from rollout.cli.project import cluster_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.cli.terminal import Terminal
from rollout.composition.wiring import Session
from rollout.core.presentation.drift_text import DriftDocument, drift_document, drift_lines
from rollout.core.presentation.owned_text import owned_nodes_lines
from rollout.core.text import documents
from rollout.core.text.message_folding import folded, for_all
from rollout.core.text.nodesets import expand, fold
from rollout.core.text.terminal import counted, printable


@registered("Compare nodes with what was last confirmed on them.", prints=(DriftDocument,))
@click.command()
@cluster_option
@limit_option
@session_options
def verify(session: Session, cluster: str, limit: str) -> int:
    """Compare nodes with what was last confirmed on them, and every live node with what the cluster owns. Changes no node.

    Exits with 10 if a node has drifted or lacks an owned setting, and with 4 if nodes could not be compared.

    Example: `rollout verify --cluster rno`
    """
    if noted_in(session.past_runs(), cluster) is None:
        verified, owned = verify_cluster(session, cluster, limit), None
    else:
        from rollout.features.own.command import compared  # noqa: PLC0415 - what makes plans takes 0.15 s to import

        verified, owned = compared(session, cluster, limit)
    if session.output == "json":
        click.echo(documents.page(drift_document(verified.checks, verified.unread, owned)))
    else:
        echo_lines(drift_lines(verified.checks, verified.unread, owns=owned is not None))
        echo_lines(owned_nodes_lines(owned, session.clock.now()) if owned is not None else ())
    from rollout.features.own.asking.old_names import owned_under_old_names  # noqa: PLC0415 - what reads inventories takes 0.1 s to import
    from rollout.features.own.words import old_name_lines  # noqa: PLC0415

    for line in old_name_lines(cluster, owned_under_old_names(session, cluster, verified.told)):
        say(line, err=session.output == "json")
    return (
        DRIFTED
        if owned is not None and owned.lacking
        else verified.exit_code or (4 if owned is not None and owned.is_partial else 0)
    )


@registered(
    "Release a cluster from a run without a controller.",
    within="cluster",
    prints=(UnlockDocument,),
    needs_output=False,
    goes_on_when_repeated=True,
)
@click.command()
@cluster_option
@limit_option
@click.option(
    "--force",
    is_flag=True,
    help="Unlock even if the controller may still be alive elsewhere: the nodes then refuse it.",
)
@yes_option
@reason_option
@session_options
def unlock(session: Session, cluster: str, limit: str, force: bool, yes: bool) -> int:  # noqa: FBT001 - click's flags
    """Release a cluster from a run without a controller: the journal's lease and the claims on its nodes.

    A change that is armed on a node is left to its guard. Every node refuses a controller that comes back.
    Files that a finished run left behind on a node are removed.

    Example: `rollout cluster unlock --cluster rno --reason 'controller is gone'`
    """
    unlocked = unlock_cluster(session, Terminal(session, yes), cluster, limit, force=force)
    if session.output == "json":
        click.echo(documents.page(unlocked))
    else:
        say("\n".join(unlocked_lines(unlocked)))
    return unlocked.exit_code


def unlocked_lines(unlocked: UnlockDocument) -> Iterator[str]:
    """The document for people. A cluster without any claim is unlocked, too: the nodeset of no nodes is ``""``."""
    for why, names in folded(unlocked.not_released).items():
        yield f"{printable(fold(names), 160)}: {for_all(why, names)}"
    free = counted(len(expand(unlocked.released)) if unlocked.released else 0, "node")
    kept, silent = len(unlocked.not_released), unlocked.no_answer
    yield f"unlocked: {free} released, {kept} not released, {len(silent)} did not answer"
    for why, names in folded({node.node: f"{node.message} [{node.reference}]" for node in silent}).items():
        message = printable(for_all(why, names), 300)
        yield f"  no answer from {counted(len(names), 'node')}  {printable(fold(names), 160)}: {message}"


@registered(
    "Remove the files of rollout from nodes; settings stay.",
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
def uninstall(session: Session, cluster: str, limit: str, yes: bool) -> int:  # noqa: FBT001 - click's flag
    """Remove /var/lib/rollout from nodes: receipts, copies, token. Their changes can no longer be reverted.

    Example: `rollout uninstall --cluster rno --limit @rack01`
    """
    forgotten = forget_cluster(session, Terminal(session, yes), cluster, limit)
    if session.output == "json":
        click.echo(documents.page(forgotten))
    else:
        say("\n".join(forgotten_lines(forgotten)))
    return forgotten.exit_code


def forgotten_lines(forgotten: ForgetDocument) -> Iterator[str]:
    """The document for people."""
    reasons = {node.node: f"{node.message} [{node.reference}]" for node in forgotten.failed}
    for reason, names in folded(reasons).items():
        message = printable(for_all(reason, names), 300)
        yield f"not uninstalled: {counted(len(names), 'node')}  {printable(fold(names), 160)}: {message}"
    yield f"uninstalled: {counted(len(expand(forgotten.forgotten)) if forgotten.forgotten else 0, 'node')}"
