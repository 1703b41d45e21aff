"""``show metrics``: the newest run of each cluster for Prometheus, printed or as a file of node_exporter's textfile collector."""

from __future__ import annotations

from pathlib import Path

import click

from rollout.app.live_run import LiveRuns
from rollout.app.metrics import measured_runs
from rollout.cli.options import record_options
from rollout.cli.registry import registered
from rollout.composition.files import write_for_all
from rollout.composition.wiring import Session
from rollout.core.presentation.metrics import metrics_text


@registered("Print metrics of runs for Prometheus.", within="show")
@click.command()
@click.option(
    "--textfile",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Write the metrics to this file in one step; node_exporter needs a name that ends in .prom.",
)
@record_options
def metrics(session: Session, file: Path | None) -> int:
    """Print metrics of the newest run of each cluster, from the journal alone.

    Example: `rollout show metrics --state .rollout`
    """
    past = session.past_runs()
    text = metrics_text(tuple(measured_runs(LiveRuns(lambda: past, session.clock.now))))
    if file is None:
        click.echo(text, nl=False)
    else:
        write_for_all(file, text)
    return 0
