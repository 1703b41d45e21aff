"""``rollout report``: what a run did, as text, as a document, or as one page to read, print and hand on."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rollout.adapters.private_files import write_privately
from rollout.app.following import attendance, rolled_back_since
from rollout.app.telling import tell_run
from rollout.cli.options import session_options
from rollout.cli.which_run import known_run
from rollout.cli.wiring import Session
from rollout.core.telling.pages.page import page
from rollout.core.telling.pages.text import report_document, report_lines
from rollout.core.telling.summary import summarize
from rollout.core.telling.summary_text import attendance_lines, controller_document, since_document, since_lines


@click.command()
@click.argument("run", required=False, default="")
@click.option(
    "--html",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Write one self-contained page with pictures to this file.",
)
@session_options
def report(session: Session, run: str, file: Path | None) -> int:
    """Tell a run (the newest, without RUN) from its journal: what happened, why it halted, who went wrong, what is next."""
    journal = session.past()
    story = tell_run(journal, known_run(session, journal.runs(), run))
    if file is not None:
        _write(file, page(story))
    summary = summarize(story.state)
    controller = attendance(journal, summary.cluster, summary.run)
    since = rolled_back_since(journal, summary.run)
    if session.output == "json":
        document = {
            **report_document(story),
            "controller": controller_document(summary, controller),
            "rolledBack": since_document(since),
        }
        click.echo(json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False))
    elif file is not None:
        click.echo(f"report of run {story.past.order.run}: {file}")
    else:
        click.echo("\n".join((*report_lines(story), *attendance_lines(summary, controller), *since_lines(since))))
    return 0


def _write(file: Path, text: str) -> None:
    write_privately(file, text.encode())
