"""The streams of an open channel: input out, capped output in, without blocking."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from paramiko.buffered_pipe import BufferedPipe
from paramiko.channel import Channel
from paramiko.ssh_exception import SSHException

from rollout.adapters.ssh.limits import KIB, Deadline, SshLimits

CHUNK = 64 * KIB
MARK = 128
"""The longest mark, in bytes."""


class _Wake(threading.Event):
    """Set by paramiko when output or the end arrives. Its pipes clear it too early; only the reader may clear it."""

    def clear(self) -> None:
        pass

    def rearm(self) -> None:
        super().clear()


class _Output(BufferedPipe):  # type: ignore[type-arg]  # the stubs make it generic, and it is not
    """Output that wakes its reader at ``mark``, after each ``CHUNK`` bytes and at its end; at any byte while there is no mark.

    An agent prints a line at a time. To wake a thread for each line costs more than to read them all at the end.
    """

    def __init__(self, wake: threading.Event) -> None:
        super().__init__()
        self.mark = b""
        self._wake = wake
        self._tail = b""
        self._unseen = 0

    def feed(self, data: bytes) -> None:
        super().feed(data)
        seen = self._tail + data
        # a mark may come in two parts, the first of them before it is waited for
        self._tail = seen[1 - len(self.mark) :] if self.mark else seen[-MARK:]
        self._unseen += len(data)
        if self.mark in seen or self._unseen > CHUNK:
            self._unseen = 0
            self._wake.set()

    def close(self) -> None:
        super().close()
        self._wake.set()


@dataclass(slots=True)
class Capped:
    """Output up to a limit; bytes past it are only counted. ``data``: what is kept, for a reader that makes no copy."""

    limit: int
    data: bytearray = field(default_factory=bytearray)
    lost: int = 0

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def all(self) -> bytes:
        return bytes(self.data)

    def add(self, data: bytes) -> None:
        kept = data[: self.limit - self.size]
        self.data += kept
        self.lost += len(data) - len(kept)


class Pipes:
    """``out`` and ``err`` hold what arrived since ``anew``. ``refused``: the other side takes no more input."""

    def __init__(self, channel: Channel, limits: SshLimits) -> None:
        self._channel = channel
        self._limits = limits
        self._wake = _Wake()
        self._input = memoryview(b"")
        self.refused = False
        self.anew()
        channel.in_buffer = self._output = _Output(self._wake)
        channel.in_stderr_buffer.set_event(self._wake)

    def anew(self) -> None:
        self.out = Capped(self._limits.stdout)
        self.err = Capped(self._limits.stderr)

    def anew_after(self, end: int) -> None:
        """As ``anew``, but keep what has arrived behind this many bytes of the output."""
        before = self.out
        self.anew()
        self.out.add(bytes(before.data[end:]))

    def wait_for(self, mark: bytes) -> None:
        """Output wakes ``wait`` at this mark, and no longer at any byte."""
        self._output.mark = mark

    def put(self, data: bytes) -> None:
        """Send these bytes after those that wait."""
        self._input = memoryview(bytes(self._input) + data)

    @property
    def waiting(self) -> bool:
        """Whether input waits to be sent."""
        return bool(self._input) and not self.refused

    @property
    def flooded(self) -> bool:
        return self.out.lost + self.err.lost > self._limits.flood

    def wait(self, seconds: float) -> bool:
        """Until output or the end arrives; whether it did."""
        return self._wake.wait(seconds)

    def drain(self, deadline: Deadline) -> bool:
        """Take the output that has arrived; whether there was any."""
        self._wake.rearm()
        moved = False
        for ready, receive, sink in (
            (self._channel.recv_ready, self._channel.recv, self.out),
            (self._channel.recv_stderr_ready, self._channel.recv_stderr, self.err),
        ):
            while ready() and not self.flooded and deadline.left():
                sink.add(receive(CHUNK))
                moved = True
        return moved

    def feed(self, deadline: Deadline) -> None:
        """Send as much input as the other side accepts now. A command may end without reading its input."""
        try:
            while self.waiting and self._channel.send_ready() and deadline.left():
                sent = self._channel.send(self._input[:CHUNK].tobytes())
                if not sent:
                    break
                self._input = self._input[sent:] or memoryview(
                    b""
                )  # an empty part would keep the whole input in memory
        except (OSError, EOFError, SSHException):
            self.refused = True

    def shut(self) -> None:
        """No input follows."""
        try:
            self._channel.shutdown_write()
        except (OSError, EOFError, SSHException):
            self.refused = True
