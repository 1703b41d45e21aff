"""``pause``, ``continue`` and ``abort``: control a run from another terminal."""

from __future__ import annotations

import time
from dataclasses import dataclass

import click

from rollout.app.control import RequestStatus, ask
from rollout.app.following import runs_at_work
from rollout.app.ports import Journal
from rollout.cli.options import known_run, reason_option, session_options
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.operators import operator
from rollout.composition.wiring import Session
from rollout.core.model.playbook import RevertScope
from rollout.core.run.events import RequestWord
from rollout.core.run.state import Phase
from rollout.core.text import documents
from rollout.errors import UsageError

run_argument = click.argument("run", required=False, default="")


@dataclass(frozen=True, slots=True)
class RequestDocument:
    """A request to the controller of a run. ``handled`` false: it is recorded and still waits; ``phase``: since then."""

    run: str
    request: RequestWord
    handled: bool
    phase: Phase


@registered("Start no more nodes; nodes in flight finish.", prints=(RequestDocument,))
@click.command()
@run_argument
@reason_option
@session_options
def pause(session: Session, run: str) -> int:
    """Start no more nodes for now; nodes in flight finish. `rollout continue` continues.

    Example: `rollout pause --reason 'registry is slow'`
    """
    asked = _ask(session, run, RequestWord.PAUSE)
    return _told(session, RequestWord.PAUSE, asked, "paused: `rollout continue` continues it, `rollout abort` ends it")


@registered("Continue after a pause, or after a wave that holds.", prints=(RequestDocument,))
@click.command("continue")
@run_argument
@reason_option
@session_options
def continue_(session: Session, run: str) -> int:
    """Continue after a pause, or promote after a wave that holds.

    Example: `rollout continue`
    """
    return _told(session, RequestWord.CONTINUE, _ask(session, run, RequestWord.CONTINUE), "continues")


@registered("End a run as a halt does.", prints=(RequestDocument,))
@click.command()
@run_argument
@click.option(
    "--revert",
    type=click.Choice([scope.value for scope in RevertScope]),
    default=None,
    help="What to revert: only unhealthy nodes, the wave or the whole run. Default: the playbook's choice.",
)
@reason_option
@session_options
def abort(session: Session, run: str, revert: str | None) -> int:
    """End a run as a halt does: nodes in flight finish, nodes that must be reverted are reverted.

    Example: `rollout abort --reason 'wrong playbook'`
    """
    asked = _ask(session, run, RequestWord.ABORT, revert or "")
    return _told(session, RequestWord.ABORT, asked, "is halting: `rollout watch` shows it")


def named_run(session: Session, journal: Journal, run: str) -> str:
    """Without a name, the run in progress. A newer run of another cluster must not get the request."""
    at_work = () if run else runs_at_work(journal)
    if len(at_work) > 1:
        raise UsageError("which-run", f"several runs are in progress: {', '.join(sorted(at_work))}", hint="name one")
    return known_run(session, journal.listed(), run or "".join(at_work))


def _ask(session: Session, run: str, word: RequestWord, revert: str = "") -> RequestStatus:
    journal = session.past()
    name = named_run(session, journal, run)
    return ask(journal, name, word, operator(), session.reason, revert, time.sleep)


def _told(session: Session, word: RequestWord, asked: RequestStatus, words: str) -> int:
    """``words`` for people: what the run does now."""
    run = asked.state.order.run
    if session.output == "json":
        click.echo(documents.page(RequestDocument(run, word, asked.heard, asked.state.phase)))
        return 0 if asked.heard else 5
    if not asked.heard:
        say(f"run {run}: request recorded, but its controller has not handled it yet; see `rollout status`", err=True)
        return 5
    since = f"; since then it has changed again: `rollout status {run}`" if asked.undone else ""
    say(f"run {run} {words}{since}")
    return 0
