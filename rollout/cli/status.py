"""``status``: where a run stands."""

from __future__ import annotations

import json

import click

from rollout.app.following import attendance, replay
from rollout.cli.options import session_options
from rollout.cli.which_run import known_run
from rollout.cli.wiring import Session
from rollout.core.telling.summary import summarize
from rollout.core.telling.summary_text import attendance_lines, status_document, summary_lines
from rollout.core.text.terminal import counted


@click.command()
@click.argument("run", required=False, default="")
@session_options
def status(session: Session, run: str) -> int:
    """Where a run stands (the newest, without RUN), from its journal."""
    journal = session.past()
    headers = journal.runs()
    summary = summarize(replay(journal, known_run(session, headers, run)))
    controller = attendance(journal, summary.cluster, summary.run)
    events, head = journal.head(summary.run)
    if session.output == "json":
        chained = {"events": events, "head": head}
        click.echo(json.dumps({**status_document(summary, controller), "journal": chained}, sort_keys=True))
    else:
        click.echo("\n".join((*summary_lines(summary), *attendance_lines(summary, controller))))
        click.echo(f"  journal: {counted(events, 'event')}, head {head}")
        older = [header for header in headers if header.run != summary.run][:8]
        click.echo(
            "\n".join(f"  earlier: {header.run} {header.goal} {header.cluster} by {header.who}" for header in older)
        )
    return 0
