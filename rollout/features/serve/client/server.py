"""The server: sockets on loopback, uvicorn, the gatekeeper before every page, and an end that no open stream delays."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from http import HTTPStatus
from types import FrameType
from typing import Any
from urllib.parse import quote

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from rollout.app.ports import Journal
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.errors import StateError
from rollout.features.serve.client.gatekeeper import Gatekeeper, Refusal, WebRequest, Welcome
from rollout.features.serve.client.pages import Site, no_plans
from rollout.features.serve.words.shell import POLICY

MOST_STRANGERS = 256
MOST_KNOWN = 200
ACCEPTED_AT_ONCE = 64
"""Connections that the event loop accepts between two looks at what arrived: fewer than there may be strangers."""

STRANGER_SECONDS = 10.0
"""For which a connection may show no secret."""


class Lobby:
    """All connections of a server. For its event loop only."""

    def __init__(self) -> None:
        self.strangers: dict[Visitor, None] = {}
        self.known: set[Visitor] = set()

    def enter(self, connection: Visitor) -> None:
        self.strangers[connection] = None
        if len(self.strangers) > MOST_STRANGERS:
            self.dismiss(next(iter(self.strangers)))

    def let_in(self, connection: Visitor) -> bool:
        """It has shown a secret. ``False``: too many that have are open."""
        if connection not in self.known and len(self.known) >= MOST_KNOWN:
            return False
        self.strangers.pop(connection, None)
        self.known.add(connection)
        return True

    def dismiss(self, connection: Visitor) -> None:
        """End a connection that is still a stranger's."""
        if connection in self.strangers:
            del self.strangers[connection]
            connection.transport.abort()

    def leave(self, connection: Visitor) -> None:
        self.strangers.pop(connection, None)
        self.known.discard(connection)

    def protocol(self) -> type[asyncio.Protocol]:
        """uvicorn's protocol, with connections that belong to this lobby."""

        class OfThisLobby(Visitor):
            lobby = self

        return OfThisLobby


class Visitor(H11Protocol):
    """The state of each of its requests has ``let_in``, for the one that decides about it."""

    lobby: Lobby

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, {**app_state, "let_in": lambda: self.lobby.let_in(self)}, _loop)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self.lobby.enter(self)
        self.loop.call_later(STRANGER_SECONDS, self.lobby.dismiss, self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lobby.leave(self)
        super().connection_lost(exc)


HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the path is a secret
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guarded:
    """An application that answers only what the gatekeeper lets in. The secret in the path never reaches it."""

    def __init__(self, app: ASGIApp, gatekeeper: Gatekeeper) -> None:
        self._app, self._gatekeeper = app, gatekeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        found = self._gatekeeper.decide(_asked(scope))
        answer: ASGIApp
        if isinstance(found, Refusal):
            answer = PlainTextResponse(f"{found.text}\n", found.status)
        elif not scope["state"]["let_in"]():
            answer = PlainTextResponse("too many open connections\n", HTTPStatus.SERVICE_UNAVAILABLE)
        elif isinstance(found, Welcome):
            answer = RedirectResponse(found.path, HTTPStatus.SEE_OTHER)
        else:
            scope = {**scope, "path": found.path, "raw_path": quote(found.path).encode()}
            answer = self._app
        await answer(scope, receive, with_headers)


def _asked(scope: Scope) -> WebRequest:
    headers = Headers(scope=scope)
    decisive = ("host", "origin", "authorization")
    return WebRequest(
        method=scope["method"],
        path=scope["path"],
        query=scope["query_string"].decode("ascii", "replace"),
        host=headers.get("host", ""),
        origin=headers.get("origin", ""),
        site=headers.get("sec-fetch-site", ""),
        authorization=headers.get("authorization", ""),
        more_than_once=any(len(headers.getlist(name)) > 1 for name in decisive),
    )


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
    sockets: list[socket.socket] = []
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
            sockets.append(listening)
        except OSError as error:
            if sockets:
                break
            hint = "name another one with --port, or 0 for any that is free"
            raise StateError("port-in-use", f"cannot listen on port {port}: {error.strerror}", hint=hint) from None
        port = sockets[0].getsockname()[1]
    return sockets
