"""The lab's control socket: one JSON object in, one out, a line each. Only the owner can reach it (0600 in a 0700 folder)."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rollout.errors import StateError
from rollout.lab.loop import Loop

NAME = "control.sock"
_LIMIT = 4 << 20

Answerer = Callable[[dict[str, object]], dict[str, object]]


class Control:
    """The server side, in the loop."""

    def __init__(self, loop: Loop, directory: Path, answer: Answerer) -> None:
        self._loop, self._answer = loop, answer
        self._listener = socket.socket(socket.AF_UNIX)
        _at(directory, self._listener.bind)
        (directory / NAME).chmod(0o600)
        self._listener.listen(8)
        self._listener.setblocking(False)  # noqa: FBT003
        loop.watch(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        client.setblocking(False)  # noqa: FBT003
        held = bytearray()
        self._loop.watch(client.fileno(), lambda: self._readable(client, held))

    def _readable(self, client: socket.socket, held: bytearray) -> None:
        with suppress(BlockingIOError):
            data = client.recv(65536)
            held += data
            if data and not held.endswith(b"\n") and len(held) < _LIMIT:
                return
            self._loop.forget(client.fileno())
            with client, suppress(OSError):
                client.setblocking(True)  # noqa: FBT003
                client.settimeout(5.0)
                line = bytes(held)
                try:
                    reply = self._answer(json.loads(line))
                except (ValueError, KeyError, TypeError, OSError) as error:
                    reply = {"error": f"{type(error).__name__}: {error}"}
                client.sendall(json.dumps(reply).encode() + b"\n")


def ask(directory: Path, request: dict[str, object]) -> dict[str, object]:
    """The client side. ``StateError`` when no lab answers there."""
    client = socket.socket(socket.AF_UNIX)
    with client:
        client.settimeout(60.0)
        try:
            _at(directory, client.connect)
            client.sendall(json.dumps(request).encode() + b"\n")
            data = b"".join(iter(lambda: client.recv(65536), b""))
            reply = json.loads(data)
        except (OSError, ValueError):
            raise StateError(
                "lab-not-running", f"no lab answers in {directory}", hint="start one: rollout lab up"
            ) from None
    if not isinstance(reply, dict) or "error" in reply:
        raise StateError("lab-refused", str(reply.get("error", reply)) if isinstance(reply, dict) else "nonsense")
    return reply


def _at(directory: Path, use: Callable[[str], None]) -> None:
    """Address the socket through an open directory: a path may exceed the length limit of a socket address."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        use(f"/proc/self/fd/{descriptor}/{NAME}")
    finally:
        os.close(descriptor)
