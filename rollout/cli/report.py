"""``rollout report``: what a run did, as text, as JSON, or as one HTML page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rollout.adapters.clock import SystemClock
from rollout.adapters.private_files import write_privately
from rollout.app.following import afterwards
from rollout.app.past_runs import past_run, tell_run
from rollout.cli.options import known_run, session_options
from rollout.composition.wiring import Session
from rollout.core.presentation.pages.page import page
from rollout.core.presentation.pages.text import report_document, report_lines
from rollout.core.presentation.past_run import past_run_document, past_run_lines
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import afterwards_document, afterwards_lines


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
    """Report on a run: events, reason of a halt, failed nodes, next steps (without RUN: the newest)."""
    journal = session.past()
    named = known_run(session, journal.runs(), run)
    past = past_run(journal, named)
    if past is not None and file is None:
        click.echo(_document(past_run_document(past)) if session.output == "json" else "\n".join(past_run_lines(past)))
        return 0
    story = tell_run(journal, named)
    after = afterwards(journal, story.state, SystemClock().now())
    if file is not None:
        _write(file, page(story, after))
    summary = summarize(story.state)
    if session.output == "json":
        click.echo(_document({**report_document(story), **afterwards_document(summary, after)}))
    elif file is not None:
        click.echo(f"report of run {story.past.order.run}: {file}")
    else:
        click.echo("\n".join((*report_lines(story), *afterwards_lines(summary, after))))
    return 0


def _document(values: Mapping[str, Any]) -> str:
    return json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False)


def _write(file: Path, text: str) -> None:
    write_privately(file, text.encode())
