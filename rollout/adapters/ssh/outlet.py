"""What one channel sends, in an order that OpenSSH bears.

paramiko looks whether a channel is open, lets go of its lock, and then sends. Meanwhile another thread sends the
channel's CLOSE. OpenSSH ends the whole connection at the first message for a channel that is closed, and a bastion's
connection carries many nodes. Once the other side has closed too, it gives the channel's number to a new channel, so a
late message must be known by the channel that sends it, not by the number in it.

So each channel has an outlet, in the place where paramiko keeps the channel's transport. A thread leaves its message
there; a thread that finds nobody sending sends what is there. Nobody waits here for another thread: paramiko's own
thread, which closes channels too, must never wait for a sender.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from paramiko.common import MSG_CHANNEL_CLOSE

if TYPE_CHECKING:
    from paramiko.channel import Channel
    from paramiko.message import Message
    from paramiko.transport import Transport


class Outlet:
    """Sends a channel's messages one after the other, and nothing after its CLOSE. Everything else is the transport's."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._waiting: deque[Message] = deque()
        self._sending = False
        self._closed = False

    @classmethod
    def of(cls, channel: Channel, transport: Transport) -> None:
        """Give a channel its outlet, before anybody sends on it."""
        channel.transport = cls(transport)  # type: ignore[assignment]  # it stands for the transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _send_user_message(self, message: Message) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = message.asbytes()[0] == MSG_CHANNEL_CLOSE
            self._waiting.append(message)
            if self._sending:
                return
            self._sending = True
        self._send_all()

    def _send_all(self) -> None:
        try:
            while (message := self._next()) is not None:
                self._transport._send_user_message(message)  # type: ignore[attr-defined]  # noqa: SLF001 - what Channel calls
        except BaseException:
            with self._lock:  # a message is missing: nothing that comes after it may be sent
                self._closed, self._sending = True, False
                self._waiting.clear()
            raise

    def _next(self) -> Message | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._sending = False
            return None
