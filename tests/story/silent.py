"""Nodes that accept connections and never answer.

They count connections, so that tests need not measure waiting times.
"""

from __future__ import annotations

import json
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rollout.lab import launch
from tests.story.conftest import Site


@dataclass
class Silence:
    """Listens in place of some nodes. ``came``: the nodes that got a connection, in this order."""

    came: list[str] = field(default_factory=list)
    most: int = 0
    """Most connections at a time."""
    _open: set[socket.socket] = field(default_factory=set)
    _waits: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def listen(self, name: str, address: str, port: int) -> None:
        self._waits.register(socket.create_server((address, port)), selectors.EVENT_READ, name)

    def serve(self, end: socket.socket) -> None:
        """Waits for a connection until ``end``."""
        self._waits.register(end, selectors.EVENT_READ, "")
        while True:
            for key, _ in self._waits.select():
                found = key.fileobj
                assert isinstance(found, socket.socket)
                if found is end:
                    return
                if found in self._open:
                    self._hear(found)
                else:
                    self._welcome(found, key.data)

    def close(self) -> None:
        for key in list(self._waits.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._waits.close()

    def _welcome(self, listening: socket.socket, name: str) -> None:
        client, _ = listening.accept()
        self._open.add(client)
        self.most = max(self.most, len(self._open))
        self._waits.register(client, selectors.EVENT_READ, name)
        self.came.append(name)

    def _hear(self, client: socket.socket) -> None:
        try:
            gone = not client.recv(4096)
        except OSError:
            gone = True
        if gone:
            self._waits.unregister(client)
            self._open.discard(client)
            client.close()


@contextmanager
def silent(site: Site, *names: str) -> Iterator[Silence]:
    """Listens in place of these nodes. Afterwards they refuse connections, until that fault is cleared."""
    site.fault(",".join(names), "refuse")
    port = json.loads((site.lab / "lab.json").read_text())["port"]
    silence = Silence()
    for node in launch.specification(site.lab).nodes:
        if node.name in names:
            silence.listen(node.name, node.address, port)
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=silence.serve, args=(theirs,), daemon=True)
    thread.start()
    try:
        yield silence
    finally:
        ours.close()
        thread.join()
        silence.close()
