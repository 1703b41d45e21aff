"""A TCP server that misbehaves before, or instead of, SSH."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from paramiko.channel import Channel

Script = Callable[[socket.socket], None]


class Scripted:
    """Runs one script for each connection and counts them."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.count = 0
        self._server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._server.getsockname()[1])
        self._threads: list[threading.Thread] = []

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.count += 1
            thread = threading.Thread(target=self._one, args=(connection,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _one(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self.script(connection)

    def stop(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join(60)


@contextmanager
def scripted(script: Script) -> Iterator[Scripted]:
    server = Scripted(script)
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(60)


def hang(connection: socket.socket) -> None:
    """Sends nothing until the other side disconnects."""
    while connection.recv(4096):
        pass


def garbage(connection: socket.socket) -> None:
    """Sends endless data without a line end."""
    while True:
        connection.sendall(b"\x1b[31mHTTP/1.1 400 \x00" * 1000)


def drop(connection: socket.socket) -> None:
    """Like sshd past MaxStartups."""
    connection.sendall(b"Exceeded MaxStartups\r\n")


def drop_after_banner(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    connection.recv(10)


def hang_after_banner(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
    hang(connection)


def giant_packet(connection: socket.socket) -> None:
    """Announces a packet of almost 4 GiB."""
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" + b"\xff\xff\xff\xf8" + b"\x00" * 100_000)
    hang(connection)


def no_ssh_2(connection: socket.socket) -> None:
    connection.sendall(b"SSH-1.5-ancient\r\n")
    hang(connection)


def dropping_first(times: int, port: int) -> Script:
    """Drops the first connections, then forwards everything to a port."""
    seen = iter(range(1_000_000))

    def script(connection: socket.socket) -> None:
        if next(seen) < times:
            return
        with socket.create_connection(("127.0.0.1", port)) as behind:
            back = threading.Thread(target=_copy, args=(behind, connection), daemon=True)
            back.start()
            _copy(connection, behind)
            back.join(60)

    return script


def joined(channel: Channel, port: int) -> tuple[threading.Thread, threading.Thread]:
    """Two threads that carry a tunnel to a port and back."""
    behind = socket.create_connection(("127.0.0.1", port))

    def back() -> None:
        _copy(behind, channel)
        behind.close()

    return (
        threading.Thread(target=_copy, args=(channel, behind), daemon=True),
        threading.Thread(target=back, daemon=True),
    )


def _copy(source: socket.socket | Channel, sink: socket.socket | Channel) -> None:
    with suppress(OSError, EOFError):
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError, EOFError):
        sink.shutdown(socket.SHUT_WR)
