"""``rollout report``: what a run did, as text, as JSON, or as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from rollout.app.report import PastRunReport, report_run
from rollout.app.run_documents import PastRunDocument, past_run_document
from rollout.cli.options import echo_lines, record_options
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.files import write_privately
from rollout.composition.wiring import Session
from rollout.core.presentation.pages.document import ReportDocument, report_document, report_lines
from rollout.core.presentation.pages.markup import with_texts
from rollout.core.presentation.pages.page import page
from rollout.core.presentation.past_run import past_run_lines
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import afterwards_lines
from rollout.core.text import documents
from rollout.core.text.terminal import LONGEST_PATH, printable


@registered("Report on a run, as text, JSON or HTML.", prints=(PastRunDocument, ReportDocument))
@click.command()
@click.argument("run", required=False, default="")
@click.option(
    "--html",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Write one self-contained page with pictures to this file.",
)
@record_options
def report(session: Session, run: str, file: Path | None) -> int:
    """Report on a run: events, reason of a halt, failed nodes, next steps (without RUN: the newest).

    Example: `rollout report --html run.html`
    """
    reported = report_run(session, run, needs_story=file is not None)
    if isinstance(reported, PastRunReport):
        if session.output == "json":
            click.echo(documents.page(past_run_document(reported.past, reported.recorded)))
        else:
            echo_lines(past_run_lines(reported.past))
        return 0
    story, after = reported.story, reported.after
    if file is not None:
        write_privately(file, with_texts(page(story, after), session.carried).encode())
    if session.output == "json":
        click.echo(documents.page(report_document(story, after)))
    elif file is not None:
        say(f"report of run {story.past.order.run}: {printable(str(file), LONGEST_PATH)}")
    else:
        echo_lines((*report_lines(story, after), *afterwards_lines(summarize(story.state), after)))
    return 0
