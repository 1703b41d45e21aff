"""``status``: shows the state of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from rollout.adapters.clock import SystemClock
from rollout.app.following import afterwards, replay
from rollout.app.past_runs import past_run
from rollout.app.ports import Journal, RunHeader
from rollout.cli.options import known_run, session_options
from rollout.composition.wiring import Session
from rollout.core.presentation.past_run import PastRun, past_run_document, past_run_lines
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import (
    afterwards_document,
    afterwards_lines,
    summary_document,
    summary_lines,
)
from rollout.core.text.terminal import counted

MOST_OTHERS = 8
"""Runs before and after this one that are named."""

MOST_NOTES = 100
"""Newest notes on the cluster that JSON has: commands of operators, unlocks."""


@click.command()
@click.argument("run", required=False, default="")
@session_options
def status(session: Session, run: str) -> int:
    """Show the state of a run from its journal (without RUN: the newest)."""
    journal = session.past()
    headers = journal.runs()
    named = known_run(session, headers, run)
    past = past_run(journal, named)
    if past is not None:
        cluster = next(header.cluster for header in headers if header.run == named)
        _show_past(session, past, _recorded(journal, cluster, journal.head(named)), _others(headers, named))
        return 0
    state = replay(journal, named)
    summary, after = summarize(state), afterwards(journal, state, SystemClock().now())
    events, head = journal.head(summary.run)
    if session.output == "json":
        more = {**afterwards_document(summary, after), **_recorded(journal, summary.cluster, (events, head))}
        click.echo(json.dumps({**summary_document(summary), **more}, sort_keys=True))
    else:
        lines = (*summary_lines(summary), *afterwards_lines(summary, after))
        click.echo("\n".join((*lines, _chained(events, head), *_others(headers, summary.run))))
    return 0


def _show_past(session: Session, past: PastRun, recorded: Mapping[str, Any], others: Iterator[str]) -> None:
    if session.output == "json":
        click.echo(json.dumps({**past_run_document(past), **recorded}, sort_keys=True))
    else:
        click.echo("\n".join((*past_run_lines(past), _chained(**recorded["journal"]), *others)))


def _recorded(journal: Journal, cluster: str, head: tuple[int, str]) -> dict[str, Any]:
    """The chain of a run, and the newest notes on its cluster, for JSON."""
    notes = [asdict(note) for note in journal.notes(cluster)[-MOST_NOTES:]]
    return {"journal": {"events": head[0], "head": head[1]}, "notes": notes}


def _chained(events: int, head: str) -> str:
    return f"  journal: {counted(events, 'event')}, head {head}"


def _others(headers: Sequence[RunHeader], run: str) -> Iterator[str]:
    """The runs before and after this one. ``headers``: the newest first."""
    at = next(index for index, header in enumerate(headers) if header.run == run)
    for word, some in (("later", headers[:at][-MOST_OTHERS:]), ("earlier", headers[at + 1 :][:MOST_OTHERS])):
        for header in some:
            yield f"  {word}: {header.run} {header.goal} {header.cluster} by {header.who}"
