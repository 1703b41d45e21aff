"""``freeze`` and ``unfreeze``: no controller changes the nodes of a cluster until the freeze is lifted."""

from __future__ import annotations

import time
from contextlib import closing

import click

from rollout.app.control import ALREADY_PAUSED, ask
from rollout.app.ports import Journal, Note
from rollout.app.reading import read_receipts
from rollout.cli.options import echo_lines, reason_option, session_options, typed_confirmation, yes_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.operators import operator
from rollout.composition.wiring import Session, new_run_id
from rollout.core.model.freeze import NodeFreeze
from rollout.core.model.report import Outcome
from rollout.core.presentation.drift_text import NotAsked
from rollout.core.presentation.freeze_text import frozen_note, missed_note, unfrozen_note
from rollout.core.run.events import RequestWord
from rollout.core.text import documents
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import printable
from rollout.errors import StateError, UsageError
from rollout.features.freeze.asking import mark_fleet, next_token
from rollout.features.freeze.words import FreezeDocument, freeze_lines

cluster_argument = click.argument("cluster")


@registered("Let no controller change a cluster until unfreeze.", prints=(FreezeDocument,))
@click.command()
@cluster_argument
@reason_option
@session_options
def freeze(session: Session, cluster: str) -> int:
    """Let no controller apply anything to the nodes of CLUSTER until `rollout unfreeze`. Nodes in flight finish.

    Rollbacks, guards and `rollout verify` go on. A run of this journal is paused. Exits with 4 if a node did not take it.

    Example: `rollout freeze rno --reason 'incident 4711'`
    """
    return _mark(session, cluster, on=True)


@registered("Lift the freeze of a cluster.", prints=(FreezeDocument,))
@click.command()
@cluster_argument
@yes_option
@reason_option
@session_options
def unfreeze(session: Session, cluster: str, yes: bool) -> int:  # noqa: FBT001 - click's flag
    """Lift the freeze of CLUSTER, whichever controller ordered it. A paused run goes on with `rollout continue`.

    Example: `rollout unfreeze rno --reason 'incident 4711 is over'`
    """
    typed_confirmation(cluster, f"the nodes of {cluster} may be changed again", yes=yes)
    return _mark(session, cluster, on=False)


def _mark(session: Session, cluster: str, *, on: bool) -> int:
    if not session.reason.strip():
        raise UsageError(
            "no-reason",
            f"{'freeze' if on else 'unfreeze'} needs --reason",
            hint="every controller that is refused shows it",
        )
    inventory = session.inventory_or_remembered(cluster)
    journal = session.journal()
    access = session.access(inventory, tuple(inventory.nodes))
    with closing(session.nodes()) as nodes:
        reports = read_receipts(access, nodes, keep=session.traces.keep)
        token = next_token(journal, cluster, reports)
        made = NodeFreeze(token, new_run_id(), operator(), session.reason)
        _note(journal, cluster, frozen_note(made) if on else unfrozen_note(made))
        paused = _pause(journal, cluster, made) if on else ""
        answers = mark_fleet(access, nodes, made, on=on, keep=session.traces.keep)
    done = [name for name, report in answers.items() if report.outcome is Outcome.DONE]
    failed = tuple(
        NotAsked(name, report.reference, printable(report.message, 300))
        for name, report in answers.items()
        if report.outcome is not Outcome.DONE
    )
    if failed:
        _note(journal, cluster, missed_note(made, (each.node for each in failed), on=on))
    found = FreezeDocument(cluster, on, made.name, token, fold(done), paused, failed)
    if session.output == "json":
        click.echo(documents.page(found))
    else:
        echo_lines(freeze_lines(found, len(done)))
    return 4 if failed else 0


def _note(journal: Journal, cluster: str, text: str) -> None:
    journal.note(cluster, Note(time.time(), operator(), text))


def _pause(journal: Journal, cluster: str, made: NodeFreeze) -> str:
    """The run of this journal that is paused now, or ``""``. The nodes refuse a run that goes on."""
    holder = journal.holder(cluster)
    if holder is None or not holder.alive:
        return ""
    try:
        asked = ask(journal, holder.run, RequestWord.PAUSE, made.who, f"frozen: {made.reason}", "", time.sleep)
    except StateError as error:
        if error.reference == ALREADY_PAUSED:
            return holder.run
        say(f"run {holder.run} is not paused: {error}", err=True)
        return ""
    return holder.run if asked.heard else ""
