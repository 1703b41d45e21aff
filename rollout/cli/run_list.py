"""``runs``: the runs of a journal."""

from __future__ import annotations

import click

from rollout.app.run_list import listed_runs
from rollout.cli.options import session_options
from rollout.composition.wiring import Session
from rollout.core.presentation.run_list import RunFilter, RunsDocument, RunStanding, run_lines
from rollout.core.text import documents

MOST = 50


@click.command("runs")
@click.option("--cluster", default="", help="Only runs of this cluster.")
@click.option(
    "--who", default="", metavar="NAME", help="Only runs that were begun by an operator with this in the name."
)
@click.option(
    "--in", "states", multiple=True, metavar="STATE", type=click.Choice([each.value for each in RunStanding]),
    help=f"Only runs in this state: {', '.join(RunStanding)}.",
)  # fmt: skip
@click.option("--most", type=click.IntRange(1), default=MOST, show_default=True, help="At most so many runs.")
@session_options
def list_runs(session: Session, cluster: str, who: str, states: tuple[str, ...], most: int) -> None:
    """List runs, the newest first: when each began, its operator, how it ended, and which runs rolled it back.

    Example: `rollout runs --cluster rno --most 5`
    """
    chosen = RunFilter(who, frozenset(map(RunStanding, states)), most)
    found = tuple(chosen.chosen(listed_runs(session.past(), cluster)))
    if session.output == "json":
        click.echo(documents.page(RunsDocument(found)))
    else:
        click.echo("\n".join(run_lines(found)))
