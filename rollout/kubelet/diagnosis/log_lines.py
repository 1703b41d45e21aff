"""Lines of logs as facts, in one pass: klog in words, with keys and as JSON; journald short and JSON; logrus.

A line passes three steps. Its *prefix* (journald, klog, logrus) gives node, program and time. Its *message* begins as one
of ``BEGINNINGS`` or the line is passed over. Only then keys and values are taken apart: of a healthy log that is rare,
and 1 GB has about four million lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.kubelet.diagnosis.facts import LONGEST_TEXT, Fact, Kind, SourceLine
from rollout.kubelet.diagnosis.messages import BEGINNINGS, found_in

SHOWN = 3
"""Unreadable lines of a file that are shown; all are counted."""

_KLOG = re.compile(r"([IWEF])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})\s+\d+ [\w./-]+:\d+\] ?")
_JOURNAL = re.compile(
    r"(?:(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d(?:\.\d+)?)|(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*))"
    r" (?P<node>\S+) (?P<program>[\w.@/()-]+?)(?:\[\d+\])?: "
)
_LOGRUS = re.compile(r'time="(?P<time>[^"]+)" level=(?P<level>\w+) msg=(?P<msg>"(?:[^"\\]|\\.)*"|\S+)(?P<rest>.*)')
_KEYED = re.compile(r'"((?:[^"\\]|\\.)*)"(?= \w|$| ?$)(.*)', re.DOTALL)
_PAIR = re.compile(r' ([\w./-]+)=("(?:[^"\\]|\\.)*"|\{[^}]*\}|\[[^\]]*\]|\S*)')
_WANTED = (*BEGINNINGS, *(f'"{each}' for each in BEGINNINGS))
_JSON_MESSAGE = re.compile(r'"(?:msg|MESSAGE)" ?: ?"')
_PLEG_START = '"Type":"ContainerStarted"'
"""A frequent line that begins like one that matters."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OF_A_DUMP = (
    "\t",
    "goroutine ",
    "created by ",
    "k8s.io/",
    "main.",
    "runtime.",
    "panic(",
    "-- ",
    "Error: ",
    "Flag --",
    "Events:",
)
"""Lines between those of a log: of a stack, of a kubelet's flags, of journald itself."""


@dataclass(frozen=True, slots=True)
class UnreadLines:
    """Lines of a file that are of no known form: how many, and the first of them."""

    lines: int = 0
    examples: tuple[SourceLine, ...] = ()

    def and_(self, where: SourceLine) -> UnreadLines:
        return UnreadLines(self.lines + 1, (*self.examples, where)[:SHOWN])


@dataclass(slots=True)
class Calendar:
    """Dates without a year. ``latest``: the file's newest possible time; a month that falls by half a year is a new year."""

    latest: datetime
    year: int = 0
    month: int = 0
    _day: tuple[int, int] = (0, 0)
    _midnight: float = 0.0

    def at(self, month: int, day: int, seconds: float) -> float | None:
        """Seconds since 1970, with the date read as UTC; ``None`` for a date that does not exist."""
        if (month, day) != self._day:
            with suppress(ValueError):
                self._turn(month, day)
        return self._midnight + seconds if self._day == (month, day) else None

    def _turn(self, month: int, day: int) -> None:
        if not self.year:
            self.year = self.latest.year
            if self._moment(month, day) > self.latest + timedelta(days=1):
                self.year -= 1
        elif self.month - month > 6:
            self.year += 1
        elif month - self.month > 6:
            self.year -= 1
        self._midnight = self._moment(month, day).timestamp()
        self.month, self._day = month, (month, day)

    def _moment(self, month: int, day: int) -> datetime:
        if (month, day) == (2, 29):
            self.year -= next(back for back in range(9) if _leap(self.year - back))
        return datetime(self.year, month, day, tzinfo=UTC)


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@dataclass(slots=True)
class _Head:
    """What the prefixes of a line give."""

    node: str = ""
    program: str = ""
    at: float | None = None
    known: bool = False
    fatal: bool = False


@dataclass(slots=True)
class LogReader:
    """Reads the lines of one file in their order. ``latest``: a time after its last line, for dates without a year."""

    file: str
    latest: datetime
    unread: UnreadLines = field(default_factory=UnreadLines)
    read: int = 0
    _calendar: Calendar = field(init=False)

    def __post_init__(self) -> None:
        self._calendar = Calendar(self.latest)

    def facts(self, lines: Iterable[tuple[int, str]]) -> Iterator[Fact]:
        """``lines``: number and text, without its line end."""
        for number, line in lines:
            yield from self.line(number, line)

    def line(self, number: int, line: str) -> Iterator[Fact]:
        klog = _KLOG.match(line)
        if klog is not None:  # by far the most frequent
            yield from self._of_kubelet(_Head(), number, line, klog, line)
        else:
            yield from self._other(number, line)

    def _of_kubelet(self, head: _Head, number: int, rest: str, klog: re.Match[str], line: str) -> Iterator[Fact]:
        """Takes a line apart if its message begins as one that matters; of all others only the date counts."""
        self.read += 1
        if rest.find("] ", klog.end()) >= 0 and (second := _KLOG.search(rest, klog.end())):  # two writers in one line
            yield from self._of_kubelet(_Head(head.node, head.program), number, rest, second, line)
            rest = rest[: second.start()]
        if (rest.startswith(_WANTED, klog.end()) and _PLEG_START not in rest) or klog[1] == "F":
            yield from self._klog(head, number, rest, klog, line)
        else:
            self._calendar.at(int(klog[2]), int(klog[3]), 0.0)

    def _other(self, number: int, line: str) -> Iterator[Fact]:
        if line.startswith("{"):
            yield from self._json(number, line)
            return
        head, rest = _Head(), line
        if journal := _JOURNAL.match(line):
            head = self._journal(journal)
            rest = line[journal.end() :]
        yield from self._rest(head, number, rest, line)

    def _journal(self, found: re.Match[str]) -> _Head:
        head = _Head(found["node"], found["program"], known=True)
        if found["iso"]:
            head.at = moment(found["iso"])
        elif found["month"] in _MONTHS:
            hours, minutes, seconds = found["time"].split(":")
            time = int(hours) * 3600 + int(minutes) * 60 + float(seconds)
            head.at = self._calendar.at(_MONTHS.index(found["month"]) + 1, int(found["day"]), time)
        return head

    def _rest(self, head: _Head, number: int, rest: str, line: str) -> Iterator[Fact]:
        """A message behind the prefix of a journal, or a line without one."""
        if klog := _KLOG.search(rest):  # behind the rest of a cut line, it is whole
            yield from self._of_kubelet(head, number, rest, klog, line)
        elif logrus := _LOGRUS.match(rest):
            self.read += 1
            if logrus["msg"].startswith(_WANTED):
                yield from self._logrus(head, number, logrus, line)
        elif rest.startswith("{") and head.known:
            yield from self._json(number, rest, head)
        elif head.known or rest.startswith((*BEGINNINGS, *_OF_A_DUMP)) or not rest.strip():
            self.read += 1
            yield from self._found(head, number, rest, None, line)
        else:
            self.unread = self.unread.and_(SourceLine(self.file, number, printable(line, 120)))

    def _klog(self, head: _Head, number: int, rest: str, klog: re.Match[str], line: str) -> Iterator[Fact]:
        seconds = int(klog[4]) * 3600 + int(klog[5]) * 60 + int(klog[6]) + int(klog[7]) / 1e6
        head.at = self._calendar.at(int(klog[2]), int(klog[3]), seconds)
        head.fatal = klog[1] == "F"
        message = rest[klog.end() :]
        keyed = _KEYED.match(message)
        if keyed is not None:
            yield from self._found(head, number, unquoted(f'"{keyed[1]}"'), keys_of(keyed[2]), line)
        else:
            yield from self._found(head, number, message, None, line)

    def _logrus(self, head: _Head, number: int, found: re.Match[str], line: str) -> Iterator[Fact]:
        head.at = moment(found["time"]) or head.at
        keys = keys_of(found["rest"])
        for fact in self._found(head, number, unquoted(found["msg"]), None, line):
            error = keys.get("error", "")
            yield fact if not error or fact["error"] != "failed" else _with(fact, {"error": error})

    def _json(self, number: int, line: str, outer: _Head | None = None) -> Iterator[Fact]:
        message = _JSON_MESSAGE.search(line)
        if message and "MESSAGE" not in message[0] and not line.startswith(BEGINNINGS, message.end()):
            self.read += 1
            return
        try:
            document = json_text.parse(line)
        except ValueError:
            document = None
        if not isinstance(document, dict) or not message:
            self.unread = self.unread.and_(SourceLine(self.file, number, printable(line, 120)))
            return
        if "MESSAGE" in document:
            yield from self._journal_json(number, document)
            return
        self.read += 1
        head = outer or _Head()
        head.at = _json_time(document.get("ts")) or head.at
        keys = {key: _text(value) for key, value in document.items() if key not in ("ts", "caller", "msg", "v")}
        message_text = _text(document.get("msg"))
        worded = " " not in "".join(keys) and (set(keys) - {"err", "logger"}) == set()
        for fact in self._found(head, number, message_text, keys, line):
            yield fact
            worded = False
        if worded:
            yield from self._found(head, number, message_text, None, line)

    def _journal_json(self, number: int, document: Mapping[str, object]) -> Iterator[Fact]:
        micro = _text(document.get("__REALTIME_TIMESTAMP"))
        head = _Head(
            _text(document.get("_HOSTNAME")),
            _text(document.get("SYSLOG_IDENTIFIER")),
            int(micro) / 1e6 if micro.isdecimal() else None,
            known=True,
        )
        message = _text(document.get("MESSAGE"))
        yield from self._rest(head, number, message, message)

    def _found(
        self, head: _Head, number: int, message: str, keys: Mapping[str, str] | None, line: str
    ) -> Iterator[Fact]:
        where = SourceLine(self.file, number, line[:LONGEST_TEXT])
        for found in found_in(message, keys):
            node = head.node or found.fields.get("node", "")
            yield Fact(found.kind, head.at, node, self.file, where, found.fields)
        if head.fatal:
            yield Fact(Kind.FATAL, head.at, head.node, self.file, where, {"error": printable(message, 300)})


def _with(fact: Fact, fields: Mapping[str, str]) -> Fact:
    return Fact(fact.kind, fact.at, fact.node, fact.clock, fact.where, {**fact.fields, **fields}, fact.times)


def keys_of(text: str) -> dict[str, str]:
    """``key="value"`` pairs; a pair that is cut is left out."""
    return {found[1]: unquoted(found[2]) for found in _PAIR.finditer(text)}


def unquoted(text: str) -> str:
    """The text in Go's quotes; other text as it is."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    if "\\" not in text:
        return text[1:-1]
    try:
        return str(json_text.parse(text))
    except ValueError:  # \x1b and other escapes of Go's own
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def moment(text: str) -> float | None:
    """RFC 3339 or journald's ``short-iso``; ``None`` if it is neither. Digits after microseconds are dropped."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    zone = "+00:00" if found[3] in ("Z", "") else f"{found[3][:3]}:{found[3][-2:]}"
    fraction = (found[2] or "")[:7]
    with suppress(ValueError):
        seconds = datetime.fromisoformat(found[1] + zone).timestamp()
        return seconds + (float("0" + fraction.replace(",", ".")) if len(fraction) > 1 else 0.0)
    return None


_TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)([.,]\d+)?(Z|[+-]\d\d:?\d\d|)")


def _json_time(value: object) -> float | None:
    """klog's ``ts``: seconds (1.19, 1.20) or milliseconds (from 1.21) since 1970, or a time in words."""
    if isinstance(value, str):
        return moment(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value / 1000 if value > 1e11 else float(value)


def _text(value: object) -> str:
    """A value of JSON as klog prints it in text."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and {"name", "namespace"} <= set(value):
        return f"{value['namespace']}/{value['name']}"
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        return "[" + ",".join(_text(entry) for entry in value) + "]"
    return "" if value is None else str(value) if isinstance(value, int | float) else json.dumps(value)
