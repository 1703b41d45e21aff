"""A real HTTP server that a test controls: it answers, sends false data, hangs, or is down."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Seen:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


FOR_EVER = 1e6
"""More seconds than any test waits: until the server ends."""

NOW = b"{{now}}"
"""Placeholder in a body: the server's time in seconds since 1970 when it answers."""


@dataclass(frozen=True, slots=True)
class Reply:
    """``drip`` sends the body a byte at a time, with so many seconds between.

    ``raw`` is sent in place of HTTP. ``age``: of ``NOW`` in the body, in seconds.
    """

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    raw: bytes = b""
    drip: float = 0.0
    hang: float = 0.0
    age: float = 0.0

    def sent(self) -> bytes:
        return self.body.replace(NOW, b"%.3f" % (time.time() - self.age))


@dataclass(slots=True)
class Web:
    """``replies`` are sent in turn, and the last one repeats. With ``answer`` the request decides instead."""

    url: str
    replies: list[Reply] = field(default_factory=list)
    answer: Callable[[Seen], Reply] | None = None
    seen: list[Seen] = field(default_factory=list)

    def reply(self, seen: Seen) -> Reply:
        self.seen.append(seen)
        if self.answer is not None:
            return self.answer(seen)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def web(*replies: Reply) -> Iterator[Web]:
    """A server on loopback."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.web = Web(f"http://127.0.0.1:{server.server_address[1]}", list(replies))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.web
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


def nobody() -> str:
    """The URL of a port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


class _Server(ThreadingHTTPServer):
    web: Web
    daemon_threads = True

    def __init__(self, *words: object) -> None:
        self.over = threading.Event()
        super().__init__(*words)  # type: ignore[arg-type]

    def handle_error(self, request: object, client_address: object) -> None:
        """No traceback: some tests disconnect on purpose."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.web.reply(Seen(self.command, self.path, headers, self.rfile.read(length)))
        self.server.over.wait(reply.hang)
        if reply.raw:
            self.wfile.write(reply.raw)
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in reply.headers:
            self.send_header(name, value)
        body = reply.sent()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self._write(body, reply.drip)

    def _write(self, body: bytes, drip: float) -> None:
        if not drip:
            self.wfile.write(body)
            return
        for byte in body:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.server.over.wait(drip):
                return

    def do_POST(self) -> None:
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""
