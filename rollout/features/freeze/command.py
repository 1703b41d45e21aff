"""``cluster freeze`` and ``cluster unfreeze``: no controller changes the nodes of a cluster until the freeze is lifted."""

from __future__ import annotations

import time

import click

from rollout.cli.options import echo_lines, reason_option, session_options, yes_option
from rollout.cli.project import cluster_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.cli.terminal import Terminal
from rollout.composition.wiring import Session
from rollout.core.text import documents
from rollout.features.freeze.asking import Marked, freeze_cluster, unfreeze_cluster
from rollout.features.freeze.words import FreezeDocument, freeze_lines


@registered(
    "Freeze a cluster: nobody changes it until it is unfrozen.",
    within="cluster",
    prints=(FreezeDocument,),
    needs_output=False,
    goes_on_when_repeated=True,
)
@click.command()
@cluster_option
@reason_option
@session_options
def freeze(session: Session, cluster: str) -> int:
    """Let no controller apply anything to the nodes of a cluster until `rollout cluster unfreeze`. Nodes in flight finish.

    Asks nothing. Rollbacks, guards and `rollout verify` go on. A run of this journal is paused. Exits with 4 if a node did not take it.

    Example: `rollout cluster freeze --cluster rno --reason 'incident 4711'`
    """
    return _shown(session, freeze_cluster(session, cluster, time.sleep))


@registered(
    "Lift the freeze of a cluster.",
    within="cluster",
    prints=(FreezeDocument,),
    needs_output=False,
    goes_on_when_repeated=True,
)
@click.command()
@cluster_option
@yes_option
@reason_option
@session_options
def unfreeze(session: Session, cluster: str, yes: bool) -> int:  # noqa: FBT001 - click's flag
    """Lift the freeze of a cluster, whichever controller ordered it. A paused run goes on with `rollout continue`.

    Example: `rollout cluster unfreeze --cluster rno --reason 'incident 4711 is over'`
    """
    return _shown(session, unfreeze_cluster(session, Terminal(session, yes), cluster))


def _shown(session: Session, marked: Marked) -> int:
    """The exit code."""
    if marked.not_paused:
        say(marked.not_paused, err=True)
    if session.output == "json":
        click.echo(documents.page(marked.document))
    else:
        echo_lines(freeze_lines(marked.document))
    return marked.document.exit_code
