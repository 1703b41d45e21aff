"""One exec on a node: the SSH channel on one side, a command's pipes on the other; runs in the loop's thread only."""

from __future__ import annotations

import os
import re
import select
import socket
from collections.abc import Callable
from contextlib import suppress

import paramiko

from rollout.lab import children
from rollout.lab.answers import ToolOutput
from rollout.lab.children import Child
from rollout.lab.loop import Loop

# The line between a node's stand-ins and the state table: framed requests in, numbered reply lines out.


Reply = Callable[[ToolOutput], None]
Ask = Callable[[str, tuple[str, ...], Reply], None]

_HEAD = re.compile(rb"(\d{1,10}) ([a-z-]{1,20}) (\d{1,7}):")
_LIMIT = 1 << 20


class StateLine:
    """One command's line. It stays open until the last process of the command has ended."""

    def __init__(self, loop: Loop, line: socket.socket, ask: Ask, lines: set[StateLine]) -> None:
        """It is in ``lines`` while it is open."""
        self._loop, self._line, self._ask, self._lines, self._held = loop, line, ask, lines, b""
        lines.add(self)
        loop.watch(line.fileno(), self._readable)

    def close(self) -> None:
        """Hang up."""
        if self._line.fileno() >= 0:
            self._loop.forget(self._line.fileno())
            self._line.close()
            self._lines.discard(self)

    def _readable(self) -> None:
        try:
            data = self._line.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._held += data
        if not data or len(self._held) > _LIMIT or not self._take():
            self.close()

    def _take(self) -> bool:
        """Answer every complete request; false for an invalid one."""
        while self._held:
            head = _HEAD.match(self._held)
            if head is None:
                return b":" not in self._held[:64] and len(self._held) < 64
            end = head.end() + int(head[3])
            if len(self._held) <= end:
                return True
            words, self._held = parse_words(self._held[head.end() : end]), self._held[end + 1 :]
            if words is None:
                return False
            number = head[1].decode()
            self._ask(head[2].decode(), words, lambda answer, number=number: self._reply(number, answer))  # type: ignore[misc]
        return True

    def _reply(self, number: str, answer: ToolOutput) -> None:
        if self._line.fileno() < 0:
            return
        try:
            self._line.sendall(frame(number, answer))
        except OSError:  # the client does not read or has ended: it sees the end of the line
            self.close()


def parse_words(data: bytes) -> tuple[str, ...] | None:
    """``3:foo,4:ba r,`` → the words, or ``None`` if invalid."""
    words, at = [], 0
    while at < len(data):
        colon = data.find(b":", at)
        if colon < 0 or not data[at:colon].isdigit():
            return None
        end = colon + 1 + int(data[at:colon])
        if data[end : end + 1] != b",":
            return None
        words.append(data[colon + 1 : end].decode("utf-8", "surrogateescape"))
        at = end + 1
    return tuple(words)


def frame(number: str, answer: ToolOutput) -> bytes:
    """An answer as lines the stand-in prints: ``o`` output, ``b`` output without line end, ``e`` errors, ``x`` the status."""
    *whole, rest = answer.bare.split("\n")
    lines = [f"{number} o {line}" for text in (*answer.out, *whole) for line in text.split("\n")]
    lines += [f"{number} b {rest}"] if rest else []
    lines += [f"{number} e {line}" for line in answer.err]
    lines.append(f"{number} x {answer.status}\n")
    return "\n".join(lines).encode("utf-8", "surrogateescape")


_CHUNK = 32768
_AGENT = re.compile(r"\brollout'? '?[0-9a-f]{64}\b")
_HEADER = re.compile(rb"[a-z0-9]+ ([0-9]{1,9})(?: ([a-z]*)[^\n]*)?\n")
_OVER = re.compile(rb"(?:^|\n)over [0-9a-f]+ ([0-9]{1,3})\n")


def is_conversation(line: str) -> bool:
    """Whether a command line starts a conversation with the agent."""
    return bool(_AGENT.search(line))


class Verbs:
    """Follows the bytes of a conversation with the agent: which verb begins, and how it ends.

    ``begin`` gets each verb before the command reads it; ``end`` gets it with its status.
    """

    def __init__(self, line: str, begin: Callable[[str], None], end: Callable[[str, int], None]) -> None:
        """``line`` is the command line of the exec; of any other command nothing is followed."""
        self._begin, self._end = begin, end
        self.follows = is_conversation(line)
        self._head, self._skip, self._tail = b"", 0, b""
        self._running: list[str] = []

    def sent(self, data: bytes) -> None:
        """What the client sent: the program and the payloads are skipped, a frame's first line names its verb."""
        while data and self.follows:
            skipped = min(self._skip, len(data))
            self._skip, data = self._skip - skipped, data[skipped:]
            line, newline, rest = data.partition(b"\n")
            self._head, data = self._head + line + newline, rest
            if newline:
                self._take(_HEADER.fullmatch(self._head))
                self._head = b""

    def _take(self, found: re.Match[bytes] | None) -> None:
        if found is None:
            self.follows = False
            return
        self._skip = int(found[1])
        if found[2] is not None:  # the program's line has no such word
            verb = found[2].decode()
            self._running.append(verb)
            self._begin(verb)

    def answered(self, data: bytes) -> None:
        """What the command printed."""
        self._tail += data
        while self._running and (over := _OVER.search(self._tail)):
            self._tail = self._tail[over.end() - 1 :]
            self._end(self._running.pop(0), int(over[1]))
        self._tail = self._tail[-_LONGEST_OVER:]


_LONGEST_OVER = 100


class LabSession:
    """Moves bytes and reports the end. A lost connection closes the pipes; the command continues, as with a real sshd."""

    def __init__(
        self,
        loop: Loop,
        channel: paramiko.Channel,
        child: Child,
        verbs: Verbs,
        forget: Callable[[], object],
        *,
        prepared: bool = False,
    ) -> None:
        """``prepared`` for faults that begin while it runs."""
        self._loop, self._channel, self._child, self._verbs, self._forget = loop, channel, child, verbs, forget
        self._prepared = prepared
        self._input = b""
        self._output: dict[int, bytes] = {child.stdout: b"", child.stderr: b""}
        self._reading: set[int] = set()
        self._stdin_open, self._stdin_watched, self._gone = True, False, False
        self._status: int | None = None
        channel.settimeout(0.0)
        children.on_end(loop, child.pid, self._ended)
        for descriptor in self._output:
            self._read_from(descriptor)

    @property
    def pid(self) -> int:
        return self._child.pid

    def end_conversation(self) -> None:
        """A conversation with the agent ends after the verb that it serves now, unless it is prepared for new faults.

        Other commands go on.
        """
        if self._verbs.follows and not self._prepared:
            self._close_stdin()

    def touch(self) -> None:
        """An event on the connection: input, its end, space for output, or the channel's end."""
        if self._channel.closed:
            self.hang_up()
            return
        self._feed()
        for descriptor in list(self._output):
            self._flush(descriptor)

    def hang_up(self) -> None:
        """The connection is lost: close our ends."""
        self._gone = True
        self._close_stdin()
        for descriptor in list(self._output):
            self._close_output(descriptor)

    def _feed(self) -> None:
        ended = self._channel.eof_received  # read before the last check: later data causes its own event
        while self._stdin_open:
            if not self._input and self._channel.recv_ready():
                self._input = self._channel.recv(_CHUNK)
                self._verbs.sent(self._input)
            if not self._input or not self._stdin_open:
                break
            try:
                self._input = self._input[os.write(self._child.stdin, self._input) :]
            except BlockingIOError:
                self._watch_stdin(on=True)
                return
            except OSError:  # it reads no more
                self._close_stdin()
        self._watch_stdin(on=False)
        while not self._stdin_open and self._channel.recv_ready():  # not needed; the client may continue
            self._channel.recv(_CHUNK)
        if ended:
            self._close_stdin()

    def _watch_stdin(self, *, on: bool) -> None:
        if on and not self._stdin_watched:
            self._loop.watch(self._child.stdin, self._feed, writing=True)
        elif not on and self._stdin_watched:
            self._loop.forget(self._child.stdin)
        self._stdin_watched = on and self._stdin_open

    def _close_stdin(self) -> None:
        if self._stdin_open:
            self._watch_stdin(on=False)
            self._stdin_open = False
            os.close(self._child.stdin)

    def _read_from(self, descriptor: int) -> None:
        if descriptor not in self._reading:
            self._reading.add(descriptor)
            self._loop.watch(descriptor, lambda: self._readable(descriptor))

    def _readable(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._close_output(descriptor)
            return
        self._output[descriptor] += data
        if descriptor == self._child.stdout:
            self._verbs.answered(data)
        self._flush(descriptor)

    def _flush(self, descriptor: int) -> None:
        """Send buffered output; while the client accepts no more, stop reading from the command too."""
        held = self._output.get(descriptor, b"")
        send = self._channel.send if descriptor == self._child.stdout else self._channel.send_stderr
        while held:
            try:
                count = send(held[:_CHUNK]) if self._writable() else 0
            except TimeoutError:
                count = 0
            except (OSError, paramiko.SSHException):
                self.hang_up()
                return
            if count == 0:
                break
            held = held[count:]
        if descriptor not in self._output:
            return
        self._output[descriptor] = held
        if held:
            self._pause(descriptor)
            self._loop.at(self._loop.now() + 0.05, lambda: self._flush(descriptor))
        else:
            self._read_from(descriptor)

    def _writable(self) -> bool:
        """Whether the connection's socket accepts bytes: a hanging client must not block the loop."""
        transport = self._channel.get_transport()
        poll = select.poll()
        try:
            poll.register(transport.sock.fileno(), select.POLLOUT)
        except (OSError, ValueError):
            return True  # closed: the send will fail
        return bool(poll.poll(0))

    def _pause(self, descriptor: int) -> None:
        if descriptor in self._reading:
            self._reading.discard(descriptor)
            self._loop.forget(descriptor)

    def _close_output(self, descriptor: int) -> None:
        if self._output.pop(descriptor, None) is not None:
            self._pause(descriptor)
            os.close(descriptor)
        self._finish()

    def _ended(self, status: int) -> None:
        self._status = status
        self._close_stdin()
        self._finish()

    def _finish(self) -> None:
        """The command ended and all output is sent: send the status and close the channel."""
        if self._status is None or self._output:
            return
        self._forget()
        if self._gone:
            return
        self._gone = True
        with suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.send_exit_status(self._status)
            self._channel.close()
