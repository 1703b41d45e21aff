"""``serve``: the journal's runs as pages for a browser on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Event, Thread

import click

from rollout.cli.options import record_options
from rollout.cli.proposals import carried_elsewhere, say
from rollout.cli.registry import registered
from rollout.composition.operators import operator
from rollout.composition.wiring import Session
from rollout.errors import UsageError, with_extra
from rollout.features.serve.asking import watch_controllers

PORT = 8765


@registered("Show runs in a browser, live, from the journal alone.")
@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Port to listen on; 0: any free port.",
)
@click.option("--control", is_flag=True, help="Let the page also pause, continue and abort runs, in your name.")
@record_options
def serve(session: Session, port: int, control: bool) -> int:  # noqa: FBT001 - click's flag
    """Show runs in a browser, live, from the journal alone. Only this machine can reach it, with the printed token.

    With addresses for notices it also tells people of a run whose controller has died.

    Example: `rollout serve`
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        message = "`rollout serve` needs the packages of the extra `page`"
        raise UsageError("page-not-installed", message, hint=with_extra("page"))
    from rollout.features.serve.client.server import serve as serve_pages

    session.past()  # so that the first page does not wait for it
    say(
        "Open one of these addresses in a browser on this machine. Each works once, then a new one is printed. Ctrl-C ends it:"
    )
    who = operator() if control else ""
    with _telling(session):
        serve_pages(
            session.past,
            str(session.place),
            port,
            lambda line: say(f"  {line}"),
            who,
            session.waiting_plans,
            carried_elsewhere(),
        )
    return 0


@contextmanager
def _telling(session: Session) -> Iterator[None]:
    """Tells people of controllers that die, if there are addresses."""
    stop = Event()
    with session.notices(session.past()) as senders:
        for sender in senders:
            arguments = (session.past, sender.tell, operator(), time.time, stop.wait)
            Thread(target=watch_controllers, args=arguments, daemon=True).start()
        try:
            yield
        finally:
            stop.set()
