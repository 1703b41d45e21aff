"""Connections of strangers: bounded in number and time, apart from those that have shown a secret.

Anybody on this machine can connect, and send half a request or none. Such a connection is ended when there are too many,
the oldest first, or when its time is over. It never takes the place of a browser that was let in.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

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
