"""Which lines of a kubelet's log the author of a pod may have written.

Some messages print a text of others as it is, with its line ends. Behind each line end may stand a whole line, with a
header and a time, that no field of the log tells from one of the kubelet's own:

* up to 1.30, an image that cannot be pulled: ``&Container{…} start failed in pod …``, with the container's arguments;
* up to 1.20, the output of a probe, at most 10 KiB, and events with it or with the answer of a registry;
* either of them, where journalctl prints ``[… blob data]`` instead of a first line with a control character, or in JSON
  ``null`` instead of one of more than 4 KiB.

The end of such a message proves nothing: its author may write another one ahead of it, and journald may drop it. So every line
behind the first one counts as his, until the message cannot be longer, or until journald's times show that it is over: journald
gives each line the time when it came. A file without these times is judged by its bytes alone.
Where the newest line of a file is the first, the lines ahead of the message's first one count.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass, field

_MAY_OPEN = re.compile(
    rb"&Container\{|probe for \\?\"|Event\(v1\.ObjectReference\{|blob data\]|\"MESSAGE\"\s*:\s*(?:\[|null)"
)
_CONTAINER = re.compile(rb"""(?!\s|\\t)[^"]*?&Container\{""")
"""As it is, behind words: later kubelets print it in quotes, or behind a tab on each of its lines."""
_BLOB = re.compile(rb"\[[\d.]+[BKMG]* blob data\]")
_UNKNOWN = b"[5K blob data]"
_OUTPUT = re.compile(
    rb'probe for \\?"[^"]*" (?:failed|errored)|Event\(v1\.ObjectReference\{'
    rb".{0,2000}?\}\): type: '\w{1,20}' reason: '(?:Unhealthy|ProbeWarning|Failed\w{0,40})'"
)
_PREFIX = re.compile(rb"(?![\s{])[^\[{]{0,40}?\b(\d\d):(\d\d):(\d\d)\S* \S+ ([\w.@/()+-]+?(?:\[\d+\])?): ")
_MESSAGE = re.compile(rb'"MESSAGE"\s*:\s*(?:"((?:[^"\\]|\\.)*+)|(\[[\d,\s]*+)|(null))')
_MICROSECONDS = re.compile(rb'"__REALTIME_TIMESTAMP"\s*:\s*"(\d{7,20})"')
_PROCESS = re.compile(rb'"_PID"\s*:\s*"(\d+)"')
MOST_OF_A_POD = 24 << 20
"""Bytes of one container: etcd takes 1.5 MiB, and the kubelet prints up to 12 times as much of an entry of ``envFrom``."""
MOST_OF_AN_OUTPUT = 10 << 10
TOGETHER = 1.0
"""Seconds by journald between two lines of one message: it may write whole seconds."""
_DAY = 86_400
MOST_RANGES = 10_000
"""Ranges of lines that are told apart. Older ones become one, with the lines between them."""
MOST_LINES, MOST_SECONDS = 20_000, 20
"""How far ahead of its first line a message may reach where the newest line is the first."""
MOST_WRITERS = 64
"""Processes that are told apart by journald's times."""


@dataclass(frozen=True, slots=True)
class _Line:
    """``text``: without what journald writes around it. ``writer`` and ``second`` of the day: by journald; ``None`` without."""

    text: bytes
    writer: bytes | None = None
    second: float = 0.0


@dataclass(slots=True)
class _Message:
    """A message that prints a text of others. ``left``: the bytes that it may still have. ``second``: of its last line."""

    left: int
    second: float


@dataclass(slots=True)
class OthersText:
    """Takes the lines of a file in their order. ``holds``: whether a line may be the text of others."""

    _left: int = 0
    """Bytes that a message without a time may still have."""
    _messages: dict[bytes, _Message] = field(default_factory=dict)
    """Those with a time, by their writers."""
    _timed: dict[tuple[bytes, int], int] = field(default_factory=dict)
    """The lines that open a message, by writer and second: their numbers."""
    _untimed: list[int] = field(default_factory=list)
    _many: bool = False
    _firsts: list[int] = field(default_factory=list)
    _lasts: list[int] = field(default_factory=list)

    def take(self, number: int, line: bytes) -> bool:
        """Whether it may be the text of others. ``number``: of the line, from 1."""
        may_open = _MAY_OPEN.search(line) is not None
        if not (may_open or self._messages or self._left):
            return False
        here = _parted(line)
        inside = self._inside(here)
        if inside:
            self.add(number)
        if may_open and (most := _may_print(here.text)):
            self._opens(number, here)
            if here.writer is None or (here.writer not in self._messages and len(self._messages) >= MOST_WRITERS):
                self._left = max(self._left, most)
            else:
                message = self._messages.setdefault(here.writer, _Message(most, here.second))
                message.left = max(message.left, most)
        return inside

    def holds(self, number: int) -> bool:
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]

    def may_be_ahead_of(self, number: int, line: bytes) -> bool:
        """In a file with the newest line first the text of others stands ahead of the line that opens its message."""
        here = _parted(line)
        after = bisect_right(self._untimed, number)
        if self._many or (after < len(self._untimed) and self._untimed[after] - number <= MOST_LINES):
            return True
        if here.writer is None:
            return bool(self._timed)
        last = int(here.second)
        seconds = (each % _DAY for each in range(last - MOST_SECONDS, last + 1))
        return any(self._timed.get((here.writer, second), 0) > number for second in seconds)

    def _opens(self, number: int, here: _Line) -> None:
        if len(self._timed) + len(self._untimed) >= MOST_RANGES:
            self._many = True
        elif here.writer is None:
            self._untimed.append(number)
        else:
            self._timed[here.writer, int(here.second)] = number

    def _inside(self, here: _Line) -> bool:
        """A line with a time belongs to no message of another writer; one without a time may belong to any."""
        inside = self._left > 0
        self._left = max(0, self._left - len(here.text))
        for writer in (
            list(self._messages) if here.writer is None else [here.writer] if here.writer in self._messages else []
        ):
            message = self._messages[writer]
            if message.left <= 0 or (here.writer and (here.second - message.second) % _DAY > TOGETHER):
                del self._messages[writer]
                continue
            inside = True
            message.left -= len(here.text)
            message.second = here.second if here.writer else message.second
        return inside

    def add(self, number: int) -> None:
        """A line of others; in the order of their numbers."""
        if self._lasts and number <= self._lasts[-1]:
            return
        if self._lasts and self._lasts[-1] == number - 1:
            self._lasts[-1] = number
            return
        self._firsts.append(number)
        self._lasts.append(number)
        if len(self._firsts) > 2 * MOST_RANGES:  # the older half becomes one range: its lines stay those of others
            del self._firsts[1:MOST_RANGES]
            del self._lasts[: MOST_RANGES - 1]


def _may_print(text: bytes) -> int:
    """The most bytes that the author of a pod may have written behind this line; 0: none."""
    if _CONTAINER.match(text) or _BLOB.match(text):
        return MOST_OF_A_POD
    return MOST_OF_AN_OUTPUT if _OUTPUT.search(text) else 0


def _parted(line: bytes) -> _Line:
    if match := _PREFIX.match(line):
        return _Line(line[match.end() :], match[4], int(match[1]) * 3600.0 + int(match[2]) * 60 + int(match[3]))
    if not line.startswith(b"{") or (message := _MESSAGE.search(line)) is None:
        return _Line(line)
    text = message[1] or b""
    if message[2]:
        with suppress(ValueError):
            text = bytes(map(int, re.findall(rb"\d{1,4}", message[2])))
    elif message[3]:
        text = _UNKNOWN
    at, process = _MICROSECONDS.search(line), _PROCESS.search(line)
    if at is None:
        return _Line(text)
    return _Line(text, process[1] if process else b"", int(at[1]) / 1e6 % _DAY)
