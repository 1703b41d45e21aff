"""``serve``: the journal's runs as pages for a browser on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Lock, Thread

import click

from rollout.adapters.no_journal import NoJournal
from rollout.app.ports import Journal
from rollout.cli.options import session_options
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.operators import operator
from rollout.composition.waiting_plans import waiting_plans
from rollout.composition.wiring import Session
from rollout.errors import UsageError
from rollout.features.serve.asking import watch_controllers

PORT = 8765


@registered("Show runs in a browser, live, from the journal alone.")
@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="The port; 0: any that is free."
)
@click.option("--control", is_flag=True, help="The page may also pause, continue and abort runs, in your name.")
@session_options
def serve(session: Session, port: int, control: bool) -> int:  # noqa: FBT001 - click's flag
    """Show runs in a browser, live, from the journal alone. Only this machine can reach it, with the printed token.

    With addresses for notices it also tells people of a run whose controller has died.

    Example: `rollout serve`
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        hint = "pip install 'kubelet-rollout[page]'"
        raise UsageError("page-not-installed", "`rollout serve` needs the packages of the extra `page`", hint=hint)
    from rollout.web.server import serve as serve_pages

    journal = opening(session)
    journal()  # so that the first page does not wait for it
    say(
        "Open one of these addresses in a browser on this machine. Each works once, then a new one is printed. Ctrl-C ends it:"
    )
    who = operator() if control else ""
    with _telling(session, journal):
        plans = partial(waiting_plans, Path(), session.files())
        serve_pages(journal, str(session.place), port, lambda line: say(f"  {line}"), who, plans, session.carried)
    return 0


@contextmanager
def _telling(session: Session, journal: Callable[[], Journal]) -> Iterator[None]:
    """Tells people of controllers that die, if there are addresses."""
    stop = Event()
    with session.notices(journal()) as senders:
        for sender in senders:
            arguments = (journal, sender.tell, operator(), time.time, stop.wait)
            Thread(target=watch_controllers, args=arguments, daemon=True).start()
        try:
            yield
        finally:
            stop.set()


def opening(session: Session) -> Callable[[], Journal]:
    """Opens the journal once it is there: the first run may begin later."""
    kept: list[Journal] = []
    one_at_a_time = Lock()

    def journal() -> Journal:
        with one_at_a_time:
            if not kept:
                found = session.past()
                if isinstance(found, NoJournal):
                    return found
                kept.append(found)
        return kept[0]

    return journal
