"""``pause``, ``continue`` and ``abort``: control a run from another terminal."""

from __future__ import annotations

import time
from dataclasses import dataclass

import click

from rollout.app.control import RequestStatus, ask_run
from rollout.cli.options import reason_option, record_options, yes_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.cli.terminal import Terminal
from rollout.composition.wiring import Session
from rollout.core.model.playbook import RevertScope
from rollout.core.run.events import RequestWord
from rollout.core.run.state import Phase
from rollout.core.text import documents

run_argument = click.argument("run", required=False, default="")


@dataclass(frozen=True, slots=True)
class RequestDocument:
    """A request to the controller of a run. ``handled`` false: it is recorded and still waits; ``phase``: since then."""

    run: str
    request: RequestWord
    handled: bool
    phase: Phase


@registered("Pause a run: start no more nodes, finish those in flight.", prints=(RequestDocument,))
@click.command()
@run_argument
@reason_option
@record_options
def pause(session: Session, run: str) -> int:
    """Start no more nodes for now; nodes in flight finish. `rollout continue` continues.

    Example: `rollout pause --reason 'registry is slow'`
    """
    asked = ask_run(session, run, RequestWord.PAUSE, time.sleep)
    return _told(session, RequestWord.PAUSE, asked, "paused: `rollout continue` continues it, `rollout abort` ends it")


@registered("Continue after a pause, or after a wave that holds.", prints=(RequestDocument,))
@click.command("continue")
@run_argument
@yes_option
@reason_option
@record_options
def continue_(session: Session, run: str, yes: bool) -> int:  # noqa: FBT001 - click's flag
    """Continue after a pause, or promote after a wave that holds.

    Example: `rollout continue`
    """
    asked = ask_run(session, run, RequestWord.CONTINUE, time.sleep, operator=Terminal(session, yes))
    return _told(session, RequestWord.CONTINUE, asked, "continues")


@registered("End a run at once, and revert as after a halt.", prints=(RequestDocument,))
@click.command()
@run_argument
@click.option(
    "--revert",
    type=click.Choice([scope.value for scope in RevertScope]),
    default=None,
    help="What to revert: only unhealthy nodes, the wave or the whole run. Default: the playbook's choice.",
)
@reason_option
@record_options
def abort(session: Session, run: str, revert: str | None) -> int:
    """End a run as a halt does: nodes in flight finish, nodes that must be reverted are reverted.

    Example: `rollout abort --reason 'wrong playbook'`
    """
    asked = ask_run(session, run, RequestWord.ABORT, time.sleep, revert or "")
    return _told(session, RequestWord.ABORT, asked, "is halting: `rollout watch` shows it")


def _told(session: Session, word: RequestWord, asked: RequestStatus, words: str) -> int:
    """``words`` for people: what the run does now."""
    run = asked.state.order.run
    if session.output == "json":
        click.echo(documents.page(RequestDocument(run, word, asked.heard, asked.state.phase)))
        return asked.exit_code
    if not asked.heard:
        say(f"run {run}: request recorded, but its controller has not handled it yet; see `rollout status`", err=True)
        return asked.exit_code
    since = f"; since then it has changed again: `rollout status {run}`" if asked.undone else ""
    say(f"run {run} {words}{since}")
    return asked.exit_code
