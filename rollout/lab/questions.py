"""The line between a node's stand-ins and the state table: framed requests in, numbered reply lines out."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

from rollout.lab.answers import Answer
from rollout.lab.loop import Loop

Reply = Callable[[Answer], None]
Ask = Callable[[str, tuple[str, ...], Reply], None]

_HEAD = re.compile(rb"(\d{1,10}) ([a-z-]{1,20}) (\d{1,7}):")
_LIMIT = 1 << 20


class Line:
    """One command's line. It outlives the command as long as any process that came of it is there."""

    def __init__(self, loop: Loop, line: socket.socket, ask: Ask, lines: set[Line]) -> None:
        """It is in ``lines`` as long as it is open."""
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
        """Answer every whole request; false when what came is no request."""
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

    def _reply(self, number: str, answer: Answer) -> None:
        if self._line.fileno() < 0:
            return
        try:
            self._line.sendall(frame(number, answer))
        except OSError:  # nobody reads, or nobody is there: the asker will see the end of the line
            self.close()


def parse_words(data: bytes) -> tuple[str, ...] | None:
    """``3:foo,4:ba r,`` → the words, or ``None`` if it is not that."""
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


def frame(number: str, answer: Answer) -> bytes:
    """An answer as lines the stand-in prints: ``o`` output, ``b`` output without line end, ``e`` errors, ``x`` the status."""
    *whole, rest = answer.bare.split("\n")
    lines = [f"{number} o {line}" for text in (*answer.out, *whole) for line in text.split("\n")]
    lines += [f"{number} b {rest}"] if rest else []
    lines += [f"{number} e {line}" for line in answer.err]
    lines.append(f"{number} x {answer.status}\n")
    return "\n".join(lines).encode("utf-8", "surrogateescape")
