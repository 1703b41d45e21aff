"""``status``: shows the state of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from rollout.adapters.clock import SystemClock
from rollout.app.after_run import afterwards
from rollout.app.following import replay
from rollout.app.freezes import freeze_in
from rollout.app.past_runs import past_run
from rollout.app.ports import PastRuns, RunHeader
from rollout.app.run_documents import PastRunDocument, StatusDocument, past_run_document, status_document
from rollout.cli.options import echo_lines, known_run, session_options
from rollout.cli.registry import Kinds, registered
from rollout.composition.waiting_plans import waiting_plans
from rollout.composition.wiring import Session
from rollout.core.presentation.freeze_text import noted_line
from rollout.core.presentation.past_run import past_run_lines
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import afterwards_lines, summary_lines
from rollout.core.presentation.waiting_plans import waiting_plan_lines
from rollout.core.run.state import RunState
from rollout.core.text import documents
from rollout.core.text.terminal import counted
from rollout.errors import UsageError

MOST_OTHERS = 8
"""Runs before and after this one that are named."""


def _documents() -> Kinds:
    from rollout.features.sequence.words import SequenceDocument  # noqa: PLC0415 - only with --sequence

    return (StatusDocument, PastRunDocument, SequenceDocument)


@registered("Show the state of a run from its journal.", prints=_documents)
@click.command()
@click.argument("run", required=False, default="")
@click.option("--sequence", type=click.Path(path_type=Path), default=None, help="Show clusters in sequence instead.")
@session_options
def status(session: Session, run: str, sequence: Path | None) -> int:
    """Show the state of a run from its journal (without RUN: the newest), and the plans here that wait for approvals.

    Example: `rollout status -o json`
    """
    if sequence is not None:
        if run:
            raise UsageError("run-or-sequence", "name either a run or a sequence")
        from rollout.features.sequence.command import show_sequence  # noqa: PLC0415 - reads files of people, which takes long to import

        return show_sequence(session, sequence)
    journal, now = session.past_runs(), SystemClock().now()
    headers = journal.listed()
    named = known_run(session, headers, run)
    past = past_run(journal, named)
    plans = waiting_plans(Path(), session.files(), journal)
    if session.output == "json":
        found = (
            past_run_document(journal, past) if past else status_document(journal, replay(journal, named), now, plans)
        )
        click.echo(documents.page(found))
        return 0
    lines = past_run_lines(past) if past else _lines(journal, replay(journal, named), now)
    echo_lines(
        (
            *lines,
            *_frozen(journal, journal.header(named).cluster),
            *waiting_plan_lines(plans),
            _chained(journal, named),
            *_others(headers, named),
        )
    )
    return 0


def _lines(journal: PastRuns, state: RunState, now: float) -> Iterator[str]:
    summary, after = summarize(state), afterwards(journal, state, now)
    yield from summary_lines(summary, after)
    yield from afterwards_lines(summary, after)


def _frozen(journal: PastRuns, cluster: str) -> Iterator[str]:
    found = freeze_in(journal, cluster)
    if found is not None:
        yield f"  {cluster} is {noted_line(found)}; `rollout unfreeze {cluster} --reason …` lifts it"


def _chained(journal: PastRuns, run: str) -> str:
    events, head = journal.head(run)
    return f"  journal: {counted(events, 'event')}, head {head}"


def _others(headers: Sequence[RunHeader], run: str) -> Iterator[str]:
    """The runs before and after this one. ``headers``: the newest first."""
    at = next(index for index, header in enumerate(headers) if header.run == run)
    for word, some in (("later", headers[:at][-MOST_OTHERS:]), ("earlier", headers[at + 1 :][:MOST_OTHERS])):
        for header in some:
            yield f"  {word}: {header.run} {header.goal} {header.cluster} by {header.who}"
