"""A node's listening socket, and the faults of the network: refusing, and taking connections without a word."""

from __future__ import annotations

import socket
from collections.abc import Callable

from rollout.lab.loop import Loop

BACKLOG = 64
MOST = 256
"""Connections held without a word while the fault lasts; more wait in the backlog."""


class Door:
    """Open, shut (connections are refused) or dumb (connected, but no banner ever comes)."""

    def __init__(self, loop: Loop, address: str, port: int, welcome: Callable[[socket.socket], None]) -> None:
        self._loop, self._where, self._welcome = loop, (address, port), welcome
        self._listener: socket.socket | None = None
        self._held: list[socket.socket] = []
        self.dumb = False

    @property
    def port(self) -> int:
        """Where it listens; of port 0 the one that was free, which stays the same from the first ``open`` on."""
        return self._where[1]

    def open(self) -> None:
        """Listen; ``OSError`` if the address and port are taken."""
        if self._listener is not None:
            return
        listener = socket.socket()
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(self._where)
            listener.listen(BACKLOG)
            self._where = listener.getsockname()
        except OSError:
            listener.close()
            raise
        listener.setblocking(False)  # noqa: FBT003
        self._listener = listener
        self._loop.watch(listener.fileno(), self._accept)

    def shut(self) -> None:
        """Refuse from now on; connections that are there stay."""
        if self._listener is not None:
            self._loop.forget(self._listener.fileno())
            self._listener.close()
            self._listener = None

    def speak(self) -> None:
        """No longer dumb; who was kept waiting is hung up on."""
        self.dumb = False
        for client in self._held:
            client.close()
        self._held.clear()

    def _accept(self) -> None:
        if self._listener is None:
            return
        try:
            client, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        client.setblocking(True)  # noqa: FBT003
        if not self.dumb:
            self._welcome(client)
        elif len(self._held) < MOST:
            self._held.append(client)
        else:
            client.close()
