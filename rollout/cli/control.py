"""``watch``, ``pause``, ``continue`` and ``abort``: a run, from another terminal."""

from __future__ import annotations

import json
import time

import click

from rollout.app.control import RequestStatus, ask
from rollout.app.following import attendance, follow, replay, runs_at_work
from rollout.app.ports import Journal
from rollout.cli.options import known_run, reason_option, session_options
from rollout.composition.wiring import Session, operator
from rollout.core.model.playbook import RevertScope
from rollout.core.presentation.summary import exit_code, summarize
from rollout.core.presentation.summary_text import attendance_lines, status_document, summary_lines
from rollout.core.run.requests import RequestWord
from rollout.core.run.state import Phase, RunState
from rollout.errors import UsageError

run_argument = click.argument("run", required=False, default="")


@click.command()
@run_argument
@session_options
def watch(session: Session, run: str) -> int:
    """See a run (without RUN the one at work, or the newest) go on, as its own terminal does; leaves with its exit code."""
    journal = session.past()
    name = _meant(session, journal, run)
    state = None
    with session.observers() as observers:
        for batch in follow(journal, name, time.sleep):
            for event, before, after in batch:
                state = after
                for observer in observers:
                    observer.on_event(event, before, after)
        if state is not None and state.phase is Phase.ENDED:
            for observer in observers:
                observer.on_end(state)
    if state is None or state.phase is not Phase.ENDED:
        _tell_no_controller(session, journal, state or replay(journal, name))
        return 5
    return exit_code(state) or 0


def _tell_no_controller(session: Session, journal: Journal, state: RunState) -> None:
    """Where the run stands that nobody carries on, when its controller was last heard of, and how it is continued."""
    summary = summarize(state)
    found = attendance(journal, summary.cluster, summary.run)
    if session.output == "json":
        click.echo(json.dumps({"event": "NoController", **status_document(summary, found)}, sort_keys=True))
        return
    click.echo("\n".join((*summary_lines(summary), *attendance_lines(summary, found))), err=True)


@click.command()
@run_argument
@reason_option
@session_options
def pause(session: Session, run: str) -> int:
    """Release nothing more for now; what is in flight ends. `rollout continue` goes on."""
    asked = _ask(session, run, RequestWord.PAUSE)
    return _told(session, asked, "paused", "`rollout continue` goes on, `rollout abort` ends it")


@click.command("continue")
@run_argument
@reason_option
@session_options
def continue_(session: Session, run: str) -> int:
    """Go on after a pause, or promote after a wave that holds."""
    return _told(session, _ask(session, run, RequestWord.CONTINUE), "goes on", "")


@click.command()
@run_argument
@click.option(
    "--revert",
    type=click.Choice([scope.value for scope in RevertScope]),
    default=None,
    help="What goes back: only sick nodes, the wave or the whole run; without it, as the playbook says.",
)
@reason_option
@session_options
def abort(session: Session, run: str, revert: str | None) -> int:
    """End a run as a halt would: in-flight nodes end, what is to go back goes back."""
    return _told(session, _ask(session, run, RequestWord.ABORT, revert or ""), "is halting", "`rollout watch` shows it")


def _meant(session: Session, journal: Journal, run: str) -> str:
    """Without a name the run that is at work: a word must not reach another cluster because its run is newer."""
    at_work = () if run else runs_at_work(journal)
    if len(at_work) > 1:
        raise UsageError("which-run", f"several runs are at work: {', '.join(sorted(at_work))}", hint="say which")
    return known_run(session, journal.runs(), run or "".join(at_work))


def _ask(session: Session, run: str, word: RequestWord, revert: str = "") -> RequestStatus:
    journal = session.past()
    name = _meant(session, journal, run)
    return ask(journal, name, word, operator(), session.reason, revert, time.sleep)


def _told(session: Session, asked: RequestStatus, done: str, then: str) -> int:
    run = asked.state.order.run
    if not asked.heard:
        click.echo(f"run {run}: written down, but its controller has not heard yet; see `rollout status`", err=True)
        return 5
    if session.output == "text":
        click.echo(f"run {run} {done}" + (f": {then}" if then else ""))
    return 0
