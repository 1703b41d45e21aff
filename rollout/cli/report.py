"""``rollout report``: what a run did, as text, as a document, or as one page to read, print and hand on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rollout.adapters.private_files import write_privately
from rollout.app.following import attendance, rolled_back_since
from rollout.app.past_runs import past_run
from rollout.app.telling import tell_run
from rollout.cli.options import session_options
from rollout.cli.which_run import known_run
from rollout.cli.wiring import Session
from rollout.core.telling.pages.page import page
from rollout.core.telling.pages.text import report_document, report_lines
from rollout.core.telling.past_run import past_run_document, past_run_lines
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
    named = known_run(session, journal.runs(), run)
    past = past_run(journal, named)
    if past is not None and file is None:
        click.echo(_document(past_run_document(past)) if session.output == "json" else "\n".join(past_run_lines(past)))
        return 0
    story = tell_run(journal, named)
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
        click.echo(_document(document))
    elif file is not None:
        click.echo(f"report of run {story.past.order.run}: {file}")
    else:
        click.echo("\n".join((*report_lines(story), *attendance_lines(summary, controller), *since_lines(since))))
    return 0


def _document(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False)


def _write(file: Path, text: str) -> None:
    write_privately(file, text.encode())
