"""A tunnel through a bastion, with the interface of a socket."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from paramiko.channel import Channel
from paramiko.message import Message
from paramiko.ssh_exception import SSHException
from paramiko.transport import Transport

from rollout.errors import RemoteError

Blame = Callable[[], RemoteError | None]


class Closer:
    """Sends close messages of a bastion's tunnels: sending may block when the bastion hangs, closing must not."""

    def __init__(self) -> None:
        self._ends: queue.SimpleQueue[tuple[Transport, Message] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="ssh-closer", daemon=True)
        self._thread.start()

    def end(self, channel: Channel) -> None:
        channel.lock.acquire()
        try:
            messages = channel._close_internal()  # type: ignore[attr-defined]  # noqa: SLF001 - what close() does before it sends
        finally:
            channel.lock.release()
        for message in messages:
            if message is not None:
                self.send(channel.get_transport(), message)

    def send(self, transport: Transport, message: Message) -> None:
        """``transport`` is a channel's outlet, or the transport itself without a channel."""
        self._ends.put((transport, message))

    def stop(self, seconds: float) -> None:
        self._ends.put(None)
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while (end := self._ends.get()) is not None:
            transport, message = end
            with suppress(SSHException, OSError, EOFError):
                transport._send_user_message(message)  # type: ignore[attr-defined]  # noqa: SLF001


class Tunnel:
    """The part of the socket interface that paramiko and the watchdog use. Closing never blocks and may be repeated."""

    def __init__(self, channel: Channel, closer: Closer, ended: Callable[[], None], blame: Blame) -> None:
        """``ended`` is called once; ``blame``: why the bastion's connection ended; ``None`` while it lives."""
        self.blame = blame
        self.ahead = b""
        self.said = b""
        self._channel = channel
        self._closer = closer
        self._ended = ended
        self._over = threading.Lock()

    def settimeout(self, seconds: float) -> None:
        self._channel.settimeout(seconds)

    def recv(self, size: int) -> bytes:
        if self.ahead:
            data, self.ahead = self.ahead[:size], self.ahead[size:]
            return data
        return self._channel.recv(size)

    def send(self, data: bytes) -> int:
        return self._channel.send(data)

    def shutdown(self, _how: int) -> None:
        self.close()

    def close(self) -> None:
        if self._over.acquire(blocking=False):
            self._closer.end(self._channel)
            self._ended()
