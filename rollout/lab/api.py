"""The lab's Kubernetes API: HTTPS on loopback with a bearer token, with answers from the kubelets' current state.

Each connection has its own thread; the loop's thread looks up the answers. Without requests nothing runs.
"""

from __future__ import annotations

import hmac
import json
import queue
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from rollout import known_faults
from rollout.lab import keys, rest
from rollout.lab.listener import Door
from rollout.lab.loop import Loop
from rollout.lab.rest import Reply
from rollout.lab.spec import LAST

DOWN, SLOW, FORBIDDEN = known_faults.API_DOWN.name, "api-slow", "api-forbidden"
KINDS = (DOWN, SLOW, FORBIDDEN)
KUBECONFIG = "kubeconfig"
PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json")
"""For the fields that can be changed here the two are equivalent."""
_ADDRESS = str(LAST)
_PATIENCE = 30.0
_THREADS = 200

Answerer = Callable[[str, str, bytes], Reply]
"""Method, path with query, body → reply; called in the loop's thread."""


class Api:
    """The server. ``kind`` is its fault, ``seconds`` the delay of each answer of a slow one."""

    def __init__(self, loop: Loop, directory: Path, cluster: str, answer: Answerer) -> None:
        """Listen, and write ``directory/kubeconfig``."""
        self._loop, self._answer = loop, answer
        self._token = secrets.token_urlsafe(24)
        self._tls, authority = keys.serving(_ADDRESS, directory)
        self._door = Door(loop, _ADDRESS, 0, self._welcome)
        self._door.open()
        self._busy = threading.Semaphore(_THREADS)
        self.kind, self.seconds = "", 0.0
        url = f"https://{_ADDRESS}:{self._door.port}"
        config = keys.kubeconfig(cluster, url, authority, self._token)
        keys.write_private(directory / KUBECONFIG, config)

    def break_down(self, kind: str, seconds: float) -> None:
        """A fault replaces the previous one."""
        self.mend()
        self.kind, self.seconds = kind, seconds
        if kind == DOWN:
            self._door.shut()

    def mend(self) -> None:
        """End the fault."""
        self.kind = ""
        self._door.open()

    def reply(self, method: str, path: str, body: bytes, authorization: str) -> Reply:
        """The answer to a client; called in its connection's thread."""
        if self.kind == SLOW:
            time.sleep(self.seconds)
        if not hmac.compare_digest(authorization.encode(), f"Bearer {self._token}".encode()):
            return rest.unauthorized()
        if self.kind == FORBIDDEN and path.partition("?")[0] != "/version":
            return rest.forbidden(method, path)
        answers: queue.SimpleQueue[Reply] = queue.SimpleQueue()

        def look() -> None:
            reply = rest.status(500, "InternalError", "the lab could not answer; see lab.log")
            try:
                reply = self._answer(method, path, body)
            finally:
                answers.put(reply)

        self._loop.call(look)
        return answers.get()

    def _welcome(self, client: socket.socket) -> None:
        if not self._busy.acquire(blocking=False):
            client.close()
            return
        threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client, suppress(OSError, ValueError):
                client.settimeout(_PATIENCE)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._tls.wrap_socket(client, server_side=True) as wrapped:
                    _Conversation(wrapped, self)
        finally:
            self._busy.release()


class _Conversation(BaseHTTPRequestHandler):
    """One connection, kept open as long as the client likes."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "rollout-lab", ""

    def __init__(self, client: ssl.SSLSocket, api: Api) -> None:
        self._api = api
        super().__init__(client, client.getpeername(), None)  # type: ignore[arg-type] # it has no server of http.server's

    def handle_one_request(self) -> None:
        if self.connection.fileno() < 0 or self._api.kind == DOWN:
            self.close_connection = True
            return
        super().handle_one_request()

    def _any(self, method: str) -> None:
        length = self.headers.get("Content-Length", "0")
        body = self.rfile.read(min(int(length), 1 << 20)) if length.isdigit() else b""
        if self._api.kind == DOWN:  # the server ended while the client kept its connection
            self.close_connection = True
            return
        kind = self.headers.get("Content-Type", "")
        if method == "PATCH" and kind not in PATCHES:
            reply = rest.unsupported(kind)
        else:
            reply = self._api.reply(method, self.path, body, self.headers.get("Authorization", ""))
        data = (reply.text or json.dumps(reply.document)).encode()
        self.send_response(reply.code)
        self.send_header("Content-Type", "text/plain; version=0.0.4" if reply.text else "application/json")
        self.send_header("Content-Length", str(len(data)))
        wait = reply.document.get("details", {}).get("retryAfterSeconds")
        if wait:
            self.send_header("Retry-After", str(wait))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self._any("GET")

    def do_POST(self) -> None:
        self._any("POST")

    def do_PATCH(self) -> None:
        self._any("PATCH")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: the lab's log is for errors of the lab."""
