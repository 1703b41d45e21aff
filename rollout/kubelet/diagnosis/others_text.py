"""Which lines of a kubelet's log the author of a pod may have written.

Some messages print a text of others as it is, with its line ends. Behind each line end may stand a whole line, with a
header and a time, that no field of the log tells from one of the kubelet's own:

* up to 1.30, an image that cannot be pulled: ``&Container{…} start failed in pod …``, with the container's arguments. It
  begins with the first word and ends with the last ones, wherever lines begin in between;
* up to 1.20, the output of a probe, at most 10 KiB, and events with it or with the answer of a registry.

journald gives each line the time when it was written. So lines that were written a second later are not part of the message.
A file without journald's times is judged by its bytes alone.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

_CONTAINER, _CONTAINER_ENDS = b"&Container{", b" start failed in pod "
_OUTPUT = re.compile(
    rb'probe for "[^"]*" (?:failed|errored)|Event\(v1\.ObjectReference\{'
    rb".{0,2000}?\}\): type: '\w{1,20}' reason: '(?:Unhealthy|ProbeWarning|Failed\w{0,40})'"
)
_MAY_PRINT = re.compile(rb"&Container\{| start failed in pod |probe for \"|Event\(v1\.ObjectReference\{")
_JOURNALS_TIME = re.compile(rb"[^\[{]{0,40}?\b(\d\d):(\d\d):(\d\d)\S* \S+ [\w.@/()-]+?(?:\[\d+\])?: ")
MOST_OF_A_POD = 2 << 20
MOST_OF_AN_OUTPUT = 10 << 10
TOGETHER = 1.0
"""Seconds by journald between two lines of one message: it writes whole seconds."""
_DAY = 86_400
MOST_RANGES = 10_000
"""Ranges of lines that are kept: the newest."""


@dataclass(frozen=True, slots=True)
class _Opening:
    """A message that prints a text of others: its line, the bytes before it, and its time of the day by journald."""

    line: int
    at: int
    second: float | None


@dataclass(slots=True)
class OthersText:
    """Takes the lines of a file in their order. ``holds``: whether a line may be the text of others."""

    _bytes: int = 0
    _containers: deque[_Opening] = field(default_factory=lambda: deque(maxlen=MOST_RANGES))
    _output: _Opening | None = None
    _ranges: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=MOST_RANGES))

    def take(self, number: int, line: bytes) -> None:
        """``number``: of the line, from 1."""
        self._bytes += len(line)
        if self._output is not None:
            self._in_output(number, line, self._output)
        if _MAY_PRINT.search(line) is None:
            return
        here = _Opening(number, self._bytes, _second(line))
        if _CONTAINER_ENDS in line:
            self._container_ends(here)
        if _CONTAINER in line:
            self._containers.append(here)
        if _OUTPUT.search(line):
            self._output = here

    def holds(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self._ranges)

    def _in_output(self, number: int, line: bytes, opening: _Opening) -> None:
        if self._bytes - opening.at > MOST_OF_AN_OUTPUT or not _together(opening.second, _second(line)):
            self._output = None
        else:
            self._add(number, number)

    def _container_ends(self, end: _Opening) -> None:
        """From the line behind the oldest opening that may belong to it, until this one, which may begin with a text of others too."""
        while self._containers and (
            end.at - self._containers[0].at > MOST_OF_A_POD or not _together(self._containers[0].second, end.second)
        ):
            self._containers.popleft()
        if self._containers and self._containers[0].line < end.line:
            self._add(self._containers[0].line + 1, end.line)

    def _add(self, first: int, last: int) -> None:
        """Ranges grow at their ends: those that touch become one."""
        while self._ranges and self._ranges[-1][1] >= first - 1:
            before = self._ranges.pop()
            first, last = min(first, before[0]), max(last, before[1])
        self._ranges.append((first, last))


def _second(line: bytes) -> float | None:
    found = _JOURNALS_TIME.match(line)
    return int(found[1]) * 3600.0 + int(found[2]) * 60 + int(found[3]) if found else None


def _together(earlier: float | None, later: float | None) -> bool:
    return earlier is None or later is None or (later - earlier) % _DAY <= TOGETHER
