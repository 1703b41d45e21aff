"""``runs``: the runs of a journal."""

from __future__ import annotations

from datetime import UTC, date, datetime

import click

from rollout.app.run_list import listed_runs
from rollout.cli.options import echo_lines, record_options
from rollout.cli.project import is_typed, project_option
from rollout.cli.registry import registered
from rollout.composition.wiring import Session
from rollout.core.presentation.run_list import RunFilter, RunsDocument, RunStanding, run_lines
from rollout.core.text import documents, durations
from rollout.core.text.terminal import printable
from rollout.errors import UsageError

MOST = 50


@registered("List runs: change, end, operator, and what rolled them back.", prints=(RunsDocument,))
@click.command("runs")
@project_option("cluster", help="Only runs of this cluster.")
@click.option("--who", default="", metavar="NAME", help="Only runs of operators with this text in their name.")
@click.option(
    "--in", "states", multiple=True, metavar="STATE", type=click.Choice([each.value for each in RunStanding]),
    help=f"Only runs in this state: {', '.join(RunStanding)}. at-work: all with a controller.",
)  # fmt: skip
@click.option(
    "--since", default="", metavar="WHEN", help="Only runs that began since this day (2026-11-20) or within this time (36h)."
)  # fmt: skip
@click.option("--most", type=click.IntRange(1), default=MOST, show_default=True, help="At most this number of runs.")
@record_options
def list_runs(session: Session, cluster: str, who: str, states: tuple[str, ...], since: str, most: int) -> None:
    """List runs, the newest first: when each began, what it changes, on how many nodes, how it ended, and which runs rolled it back.

    Reads no node: what a run of another journal reverted is not shown. `rollout verify` reads the nodes.

    Example: `rollout runs --cluster rno --most 5`
    """
    chosen = RunFilter(who, frozenset(map(RunStanding, states)), most, _since(since, session.clock.now()))
    found = tuple(chosen.chosen(listed_runs(session.past_runs(), cluster)))
    if session.output == "json":
        click.echo(documents.page(RunsDocument(found)))
    else:
        echo_lines(run_lines(found, session.clock.now()))
        if cluster and not is_typed("cluster"):
            echo_lines(
                [
                    f"only runs of {printable(cluster, 60)}, the cluster of this project; `rollout runs --cluster ''` lists all"
                ]
            )


def _since(text: str, now: float) -> float:
    """Seconds since the epoch; a day begins in UTC, as runs are listed. ``UsageError`` ``bad-since``."""
    try:
        return now - durations.parse(text) if text else 0.0
    except durations.DurationError:
        pass
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC).timestamp()
    except ValueError:
        shown = printable(text, 60)
        raise UsageError(
            "bad-since", f"--since {shown!r} is neither a day such as 2026-11-20 nor a time such as 36h"
        ) from None
