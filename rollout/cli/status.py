"""``status``: shows the state of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from rollout.app.run_documents import PastRunDocument
from rollout.app.status import RunStatus, StatusDocument, headline, run_status, status_document
from rollout.cli.options import echo_lines, record_options
from rollout.cli.registry import Kinds, registered
from rollout.composition.wiring import Session
from rollout.core.presentation.freeze_text import noted_line
from rollout.core.presentation.headline import headline_lines
from rollout.core.presentation.owned_text import owned_lines
from rollout.core.presentation.past_run import PastRun, past_run_lines
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import afterwards_lines, since_lines, summary_lines
from rollout.core.presentation.waiting_plans import waiting_plan_lines
from rollout.core.run.state import Goal
from rollout.core.text import documents
from rollout.core.text.terminal import counted
from rollout.errors import UsageError


def _documents() -> Kinds:
    from rollout.features.sequence.words import SequenceDocument  # noqa: PLC0415 - only with --sequence

    return (StatusDocument, PastRunDocument, SequenceDocument)


@registered("Show the state of a run from its journal.", prints=_documents)
@click.command()
@click.argument("run", required=False, default="")
@click.option("--sequence", type=click.Path(path_type=Path), default=None, help="Show clusters in sequence instead.")
@record_options
def status(session: Session, run: str, sequence: Path | None) -> int:
    """Show the state of a run from its journal (without RUN: the newest), and the plans here that wait for approvals.

    Reads no node: what a run of another journal reverted is not shown. `rollout verify` reads the nodes.

    Example: `rollout status -o json`
    """
    if sequence is not None:
        if run:
            raise UsageError("run-or-sequence", "name either a run or a sequence")
        from rollout.features.sequence.command import show_sequence  # noqa: PLC0415 - reads files of people, which takes long to import

        return show_sequence(session, sequence)
    run_as_recorded = run_status(session, run)
    if session.output == "json":
        click.echo(documents.page(status_document(run_as_recorded)))
    else:
        echo_lines(status_lines(run_as_recorded))
    return 0


def status_lines(status: RunStatus) -> Iterator[str]:
    """For people."""
    if isinstance(status.run, PastRun):
        yield from past_run_lines(status.run)
    else:
        summary = summarize(status.run.state)
        first = (*headline_lines(headline(status, status.run)), *since_lines(status.run.after.rolled_back))
        yield from summary_lines(summary, status.run.after, first)
        yield from afterwards_lines(summary, status.run.after)
    cluster, journal = status.header.cluster, status.recorded.journal
    if status.frozen is not None:
        yield f"  {cluster} is {noted_line(status.frozen)}; `rollout cluster unfreeze --cluster {cluster} --reason …` lifts it"
    yield from owned_lines(cluster, status.owned)
    yield from waiting_plan_lines(status.plans)
    yield f"  journal: {counted(journal.events, 'event')}, head {journal.head}"
    for word, headers in (("later", status.later), ("earlier", status.earlier)):
        for header in headers:
            what = "rollback" if header.goal == Goal.REVERT else "run"
            yield f"  {word}: {what} {header.run} on {header.cluster} by {header.who}"
