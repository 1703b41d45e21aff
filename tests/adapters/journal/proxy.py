"""A proxy to the server that can stop responding, or be cut at the moment of a commit."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum


class Fault(Enum):
    NONE = "bytes go both ways"
    SILENT = "connections stay and are made, and nothing goes through them"
    CUT_BEFORE_COMMIT = "the next COMMIT does not reach the server"
    CUT_AFTER_COMMIT = "the next COMMIT is done by the server, and the answer is lost"


class Proxy:
    """Listens on 127.0.0.1. A cut happens once; then bytes go through again."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.came = 0
        """Connections that were made, including closed ones."""
        self.fault = Fault.NONE
        self.cuts = 0
        """Counted before the connection is cut, so that a test that sees the cut also sees the count."""
        self._open: list[socket.socket] = []
        self._opening = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def heal(self) -> None:
        """Stalled connections are cut: no client gets an answer to an old request."""
        self.fault = Fault.NONE
        self.cut()

    def cut(self) -> None:
        """All open connections."""
        with self._opening:
            taken, self._open = self._open, []
        for end in taken:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._listening.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.came += 1
                try:
                    server = socket.create_connection(("127.0.0.1", self._target))
                except OSError:  # the server is down: behave the same here
                    client.close()
                    continue
                with self._opening:
                    self._open += [client, server]
                threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, asks: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self.fault is Fault.SILENT:
                    continue
                if asks and b"COMMIT" in data and self.fault in (Fault.CUT_BEFORE_COMMIT, Fault.CUT_AFTER_COMMIT):
                    self._cut_at_commit(source, sink, data)
                    return
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _cut_at_commit(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        """Waits for the answer on the server's side, where it is discarded."""
        fault, self.fault = self.fault, Fault.NONE
        self.cuts += 1
        if fault is Fault.CUT_AFTER_COMMIT:
            client.shutdown(socket.SHUT_RDWR)
            server.sendall(data)
            server.shutdown(socket.SHUT_WR)  # the server reads COMMIT, executes it, then sees the closed connection
        else:
            client.shutdown(socket.SHUT_RDWR)
            server.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(port: int) -> Iterator[Proxy]:
    made = Proxy(port)
    try:
        yield made
    finally:
        made.close()
