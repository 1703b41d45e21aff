"""``watch``: follow a run from another terminal, and control it with keys."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Protocol, runtime_checkable

import click

from rollout.adapters.keyboard import TerminalKeys, ended_by_signals, has_keys
from rollout.app.chosen_run import chosen_run_at_work
from rollout.app.control import ask
from rollout.app.following import attendance
from rollout.app.ports import Journal, Observer
from rollout.app.watch import NoControllerDocument, no_controller_document, watch_run
from rollout.cli.control import run_argument
from rollout.cli.options import reason_option, session_options
from rollout.cli.proposals import say
from rollout.cli.registry import Kinds, registered
from rollout.composition.operators import operator
from rollout.composition.wiring import Session
from rollout.core.model.regions import RegionStanding
from rollout.core.presentation.summary import summarize
from rollout.core.presentation.summary_text import attendance_lines, summary_lines
from rollout.core.presentation.watch_keys import Keyboard, pressed
from rollout.core.run.events import RequestWord
from rollout.core.run.state import RunState
from rollout.core.text import documents
from rollout.errors import StateError, UsageError


def _documents() -> Kinds:
    from rollout.core.presentation.event_documents import RUN_DOCUMENTS  # noqa: PLC0415 - only `rollout show schema documents` needs it here
    from rollout.features.late_watch.command import late_documents  # noqa: PLC0415 - only with --late

    return (*RUN_DOCUMENTS, NoControllerDocument, *late_documents())


USUAL_ROUNDS = "5m"


@registered("Follow a run as its own terminal shows it.", prints=_documents, changes_with=("--late",))
@click.command()
@run_argument
@click.option("--late", is_flag=True, help="Measure the gates of a run again after its end.")
@click.option("--once", is_flag=True, help="With --late: measure once and exit, for a timer.")
@click.option("--every", default="", metavar="TIME", help="With --late: the time between two rounds (default: 5m).")
@reason_option
@session_options
def watch(session: Session, run: str, late: bool, once: bool, every: str) -> int:  # noqa: FBT001 - click's flags
    """Follow a run as its own terminal shows it, and exit with its exit code.

    Without RUN: the run in progress, or else the newest. On a terminal, keys pause or abort the run at once, continue it
    after a question, list its nodes or gates, or leave it.

    With --late: measure the gates of a run again after its end, until the time `watchFor` of its playbook is over. As many
    failures in a row as `passes` of the playbook are late harm: a notice is sent, and with `onLateHarm: rollback` the run is
    rolled back.

    Example: `rollout watch`
    """
    if late:
        from rollout.features.late_watch.command import watch_late  # noqa: PLC0415 - what asks gates takes long to import

        return watch_late(session, run, once=once, every=every or USUAL_ROUNDS)
    if once or every or session.reason:
        raise UsageError("only-late", "--once, --every and --reason need --late")
    journal = session.past()
    name = chosen_run_at_work(session, journal, run)
    with ended_by_signals(), session.observers(journal) as observers, _keys(journal, name, observers) as keys:
        watched = watch_run(journal, name, observers, keys, time.sleep, session.clock.now)
    if watched is None:
        say(f"run {name} goes on without this terminal: `rollout watch {name}` shows it again")
        return 0
    if watched.after is not None and session.output == "json":
        click.echo(documents.line(no_controller_document(watched.state, watched.after)))
    elif watched.after is not None:
        summary = summarize(watched.state)
        lines = (*summary_lines(summary, watched.after), *attendance_lines(summary, watched.after))
        say("\n".join(lines), err=True)
    return watched.exit_code


# The keys.


@runtime_checkable
class ShowsKeys(Protocol):
    """A display with room for the keys, and for the regions of the controller."""

    def show_keys(self, keyboard: Keyboard) -> None: ...

    def show_regions(self, regions: tuple[RegionStanding, ...]) -> None: ...


@contextmanager
def _keys(journal: Journal, run: str, observers: Sequence[Observer]) -> Iterator[WatchKeys | None]:
    """``None`` where nobody can press one: standard input is no terminal, or no live display shows them."""
    displays = [each for each in observers if isinstance(each, ShowsKeys)]
    if not displays or not has_keys(sys.stdin):
        yield None
        return
    with TerminalKeys(sys.stdin) as source:
        yield WatchKeys(source, displays[0], journal, run)


class WatchKeys:
    """Does what the keys ask for while the run is followed. ``left``: the operator leaves."""

    def __init__(self, source: TerminalKeys, display: ShowsKeys, journal: Journal, run: str) -> None:
        self._source, self._display, self._journal, self._run = source, display, journal, run
        self._keyboard = Keyboard()
        self._state: RunState | None = None
        self.left = False

    def look(self, state: RunState | None) -> bool:
        """Note the newest state. True: the operator leaves."""
        self._state = state
        self._display.show_keys(self._keyboard)
        if state is not None:
            with suppress(StateError):  # ``follow`` retries an unreachable journal, and reports it
                self._display.show_regions(attendance(self._journal, state.order.cluster, self._run).regions)
        return self.left

    def wait(self, seconds: float) -> None:
        """Handle keys for so long, or until the operator leaves, or the terminal is gone."""
        ends = time.monotonic() + seconds
        while not self.left and (left := ends - time.monotonic()) > 0:
            try:
                keys = self._source.within(left)
            except EOFError:
                self.left = True
                return
            alone = len(set(keys)) == 1
            for key in keys:
                if self._press(key, alone=alone) or self._keyboard.asking is not None:
                    self._source.forget()  # what was typed before the question was shown does not answer it
                    break

    def _press(self, key: str, *, alone: bool) -> bool:
        """Whether it sent a request."""
        if self._state is None:
            return False
        press = pressed(self._keyboard, key, self._state, alone=alone)
        self._keyboard, self.left = press.keyboard, press.leave
        self._display.show_keys(self._keyboard)
        if press.request is not None:
            self._keyboard = replace(self._keyboard, said=self._send(press.request))
            self._display.show_keys(self._keyboard)
        return press.request is not None

    def _send(self, word: RequestWord) -> str:
        try:
            asked = ask(self._journal, self._run, word, operator(), "", "", time.sleep)
        except StateError as error:
            return f"{word.value}: {error}"
        if not asked.heard:
            return f"{word.value}: recorded, but the controller has not handled it yet"
        return f"{word.value}: done{', but since then the run has changed again' if asked.undone else ''}"
