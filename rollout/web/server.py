"""The server: sockets on loopback, uvicorn, and an end that no open stream delays."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from types import FrameType

import uvicorn

from rollout.app.ports import Journal
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.errors import StateError
from rollout.web.gatekeeper import Gatekeeper
from rollout.web.guarded import Guarded
from rollout.web.lobby import ACCEPTED_AT_ONCE, Lobby
from rollout.web.pages import Site, no_plans

LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
GRACE = 2
"""Seconds that requests have to end when the server stops."""

STALLED = 10.0
"""Seconds for which a browser may leave what was sent to it unread; then the kernel ends the connection."""

LONGEST_HEAD = 16 * 1024


class _Server(uvicorn.Server):
    """Ends at SIGINT and SIGTERM, and returns."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        self.force_exit = self.should_exit
        self.should_exit = True


def serve(
    journal: Callable[[], Journal],
    place: str,
    port: int,
    say: Callable[[str], None],
    who: str = "",
    plans: Callable[[Journal], Sequence[WaitingPlan]] = no_plans,
    carried: Callable[[str], str] = str,
) -> None:
    """Answer until SIGINT or SIGTERM. ``port`` 0: any that is free. ``StateError`` ``port-in-use``.

    ``who``: the operator whose requests to runs the pages may record; ``""``: they only show.
    ``plans``: those that wait for people. ``carried`` completes proposed commands.
    """
    sockets = loopback(port)
    port = sockets[0].getsockname()[1]
    hosts = ["127.0.0.1", *(["[::1]"] if len(sockets) > 1 else [])]

    def say_addresses(token: str) -> None:
        for host in hosts:
            say(f"http://{host}:{port}/?token={token}")

    gatekeeper = Gatekeeper(again=say_addresses)
    server = _Server(_config())
    pages = Site(journal, place, lambda: server.should_exit, who, plans, carried)
    server.config.app = Guarded(pages.application(), gatekeeper)
    say_addresses(gatekeeper.token)
    say(f"for scripts that only read: Authorization: Bearer {gatekeeper.reader}")
    server.run(sockets=sockets)


def _config() -> uvicorn.Config:
    logging.getLogger("uvicorn.error").addFilter(_is_no_cut_stream)
    return uvicorn.Config(
        app="", log_config=None, log_level="error", access_log=False, lifespan="off", ws="none", http=Lobby().protocol(),
        loop="asyncio", proxy_headers=False, server_header=False, backlog=ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=GRACE, h11_max_incomplete_event_size=LONGEST_HEAD,
    )  # fmt: skip


def _is_no_cut_stream(record: logging.LogRecord) -> bool:
    """uvicorn reports it as an error when its end cuts a stream that nobody reads."""
    return not record.getMessage().startswith("Cancel ")


def loopback(port: int) -> list[socket.socket]:
    """A socket for IPv4, and one for IPv6 where there is any, on the same port."""
    found: list[socket.socket] = []
    for family, address in LOOPBACK:
        try:
            listening = socket.socket(family, socket.SOCK_STREAM)
            try:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                # its connections inherit it
                listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(STALLED * 1000))
                if family is socket.AF_INET6:
                    listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listening.bind((address, port))
                listening.listen(ACCEPTED_AT_ONCE)  # from now on a browser may open the printed address
            except OSError:
                listening.close()
                raise
            found.append(listening)
        except OSError as error:
            if found:
                break
            hint = "name another one with --port, or 0 for any that is free"
            raise StateError("port-in-use", f"cannot listen on port {port}: {error.strerror}", hint=hint) from None
        port = found[0].getsockname()[1]
    return found
