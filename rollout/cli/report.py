"""``rollout report``: what a run did, as text, as JSON, or as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from rollout.app.after_run import afterwards
from rollout.app.live_run import tell_run
from rollout.app.past_runs import past_run
from rollout.app.run_documents import PastRunDocument, past_run_document
from rollout.cli.options import echo_lines, known_run, session_options
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
@session_options
def report(session: Session, run: str, file: Path | None) -> int:
    """Report on a run: events, reason of a halt, failed nodes, next steps (without RUN: the newest).

    Example: `rollout report --html run.html`
    """
    journal = session.past_runs()
    named = known_run(session, journal.listed(), run)
    past = past_run(journal, named)
    if past is not None and file is None:
        in_json = session.output == "json"
        if in_json:
            click.echo(documents.page(past_run_document(journal, past)))
        else:
            echo_lines(past_run_lines(past))
        return 0
    story = tell_run(journal, named)
    after = afterwards(journal, story.state, session.clock.now())
    if file is not None:
        _write(file, with_texts(page(story, after), session.carried))
    if session.output == "json":
        click.echo(documents.page(report_document(story, after)))
    elif file is not None:
        say(f"report of run {story.past.order.run}: {printable(str(file), LONGEST_PATH)}")
    else:
        echo_lines((*report_lines(story, after), *afterwards_lines(summarize(story.state), after)))
    return 0


def _write(file: Path, text: str) -> None:
    write_privately(file, text.encode())
