"""Which lines of a log matter, found in its bytes: 1 GB has about four million lines, and few of them are taken apart.

A line passes three steps. Its *prefix* (journald, klog, logrus, JSON) shows that it is of a known form, and its date. Its
*message* begins as one of ``WANTED``, or the line is passed over. Of each kind of message the newest lines are kept; only
these are read, when the file has ended.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rollout.core.text.terminal import printable
from rollout.features.diagnose.rules.facts import MOST_FACTS, SourceLine
from rollout.features.diagnose.rules.messages import KEY, WANTED
from rollout.features.diagnose.rules.months import month_of
from rollout.features.diagnose.rules.programs import PROGRAM_FIELDS, is_kubelet
from rollout.kubelet.runtimes.known import DAEMONS

SHOWN = 3
"""Unreadable lines of a file that are shown; all are counted."""
MOST_BYTES = 48 * 2**20
"""Lines of a file that are kept in memory, with ``OVERHEAD`` for each."""
OVERHEAD = 130
MOST_NODES = 5_000
"""Nodes of one file of which the last errors are kept apart."""
SAMPLE = 500
"""Lines of a file by which its order is known."""
PREFIX = 2000
"""Bytes of such a line: its times stand ahead of its message."""

_KLOG = re.compile(
    rb"(?:\d{4}-\d\d-\d\dT\S{1,40} std(?:err|out) [FP] |[IWEF]?[\d .:]{1,40})??(?P<level>[IWEF])(?P<month>\d\d)(?P<day>\d\d) \d\d:\d\d:\d\d\.\d{6}\s+\d+ [\w./-]+:\d+\] ?"
)
"""At the beginning of a line, behind a container's time and stream, or behind a cut prefix. Behind a text it is quoted, and may be anybody's."""
_NAME = r"[^\s\d:;=,\[\](){}\"']{1,24}"
JOURNAL = (
    rf"(?: ?(?:(?P<month>{_NAME}|\d{{1,2}}[月월]) +(?P<day>\d{{1,2}})|(?P<first>\d{{1,2}}) (?P<then>{_NAME}))"
    r" (?P<time>\d\d:\d\d:\d\d(?:\.\d+)?)"
    r"|(?:\S{1,12} )?(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*)(?: (?:[A-Z]{2,5}|(?P<zone>[+-]\d{2,4})))?|(?P<unix>\d{10}\.\d+)"
    r"|\[ {0,12}\d{1,12}\.\d{1,9}[ \d.<>]{0,40}\])"
    r" (?P<node>\S+) (?P<program>[\w.@/()\\+-]+?)(?:\[\d+\])?: "
)
"""The prefix of journald: the day stands before or behind the month, which may be of any language."""
_JOURNAL = re.compile(JOURNAL.replace("[月월]", "(?:月|월)").encode())
CUT = re.compile(rb"[IWEF]?[\d .:]{0,40}[\w/-]+\.go:\d+\] ?")
"""The end of klog's prefix, where the line lost its beginning."""
QUOTED = b"pull QPS exceed"
"""Words that are a lead wherever they stand: people quote them, and other programs log them."""
_LOGRUS = re.compile(rb'time="(?P<date>\d{4}-\d\d-\d\d)?[^"]+?(?P<zone>[+-]\d\d:\d\d)?" level=\w+ msg=')
_OF_A_FILE = re.compile(
    rb"(?:-- (?:Logs begin|Journal begins) at .{1,60}, ends? at \D{1,12}|Log file created at: )(\d{4})[-/](\d\d)[-/](\d\d) "
)
"""What journalctl and klog write at the beginning of a file: the only date with a year in it."""
OF_K0S = rf" component=({'|'.join(('kubelet', *(daemon.program for daemon in DAEMONS if daemon.embedded_log)))})\b"
"""k0s puts each line of its kubelet and its runtime into the message of one of its own."""
_OF_K0S = re.compile(OF_K0S.encode())
_QUOTES = re.compile(rb'\\{1,8}"')
_JSON_MESSAGE = re.compile(rb'"(msg|MESSAGE)" ?: ?"')
_WRITER = re.compile(rf'"(_HOSTNAME|{"|".join(PROGRAM_FIELDS)})" ?: ?"([^"\\]{{0,255}})"'.encode())
_OF_A_DUMP = (
    b"\t",
    b"goroutine ",
    b"created by ",
    b"k8s.io/",
    b"main.",
    b"runtime.",
    b"panic(",
    b"-- ",
    b"Error: ",
    b"Flag --",
    b"Events:",
    b"Log file created at: ",
    b"Running on machine: ",
    b"Binary: Built with ",
    b"Log line format: ",
    b"==> ",
)
"""Lines between those of a log: of a stack, of a kubelet's flags, of journald itself."""

Label = tuple[str, str]
"""A beginning and a word behind it: the newest lines of each are kept."""
_FATAL: Label = ("", "fatal")
_QUOTED: Label = ("", "quoted")
_LAST: Label = ("", "last")
_EXITS = frozenset(
    begins for begins in WANTED if begins.endswith(" process exited") or begins.startswith("Kubelet exited: ")
)
"""The end of a kubelet's process. The last error before it is kept, whatever its message."""
_Choice = tuple[bytes, tuple[tuple[bytes, Label], ...]]


def _choices() -> dict[bytes, tuple[_Choice, ...]]:
    choices: dict[bytes, tuple[_Choice, ...]] = {}
    for begins, words in WANTED.items():
        choice = begins.encode(), tuple((word.encode(), (begins, word)) for word in words)
        choices[choice[0][:KEY]] = (*choices.get(choice[0][:KEY], ()), choice)
    return choices


_CHOICES = _choices()
_KNOWN = (*(begins.encode() for begins in WANTED), *_OF_A_DUMP)


@dataclass(frozen=True, slots=True)
class UnreadLines:
    """Lines of a file that are of no known form: how many, and the first of them."""

    lines: int = 0
    examples: tuple[SourceLine, ...] = ()

    def and_(self, file: str, number: int, text: str) -> UnreadLines:
        if len(self.examples) >= SHOWN:
            return UnreadLines(self.lines + 1, self.examples)
        return UnreadLines(self.lines + 1, (*self.examples, SourceLine(file, number, printable(text, 120))))

    def and_those(self, other: UnreadLines) -> UnreadLines:
        return UnreadLines(self.lines + other.lines, (*self.examples, *other.examples)[:SHOWN])


@dataclass(slots=True)
class Calendar:
    """Dates without a year. ``latest``: the file's newest possible time; a month that falls by half a year is a new year."""

    latest: datetime
    year: int = 0
    month: int = 0
    day: tuple[int, int] = (0, 0)
    _midnight: float = 0.0

    def midnight(self, month: int, day: int) -> float | None:
        """Seconds since 1970 at its begin, with the date read as UTC; ``None`` for a date that does not exist."""
        if (month, day) != self.day:
            with suppress(ValueError):
                self._turn(month, day)
        return self._midnight if self.day == (month, day) else None

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
        self.month, self.day = month, (month, day)

    def _moment(self, month: int, day: int) -> datetime:
        if (month, day) == (2, 29):
            self.year -= next(back for back in range(9) if _leap(self.year - back))
        return datetime(self.year, month, day, tzinfo=UTC)


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


Kept = tuple[int, float | None, bytes]
"""A line's number, the begin of its day if its date has no year, and its bytes."""


@dataclass(slots=True)
class Sieve:
    """Takes the lines of one file in their order. ``latest``: a time after its last line, for dates without a year.

    ``zone``: seconds of the first line that has a zone and is not behind a journal's date. ``year``: whether a line of the
    file has it. ``backwards``: tells whether the first lines are the newest. ``first``, ``last``: lines of a known form.
    """

    file: str
    latest: datetime
    unread: UnreadLines = field(default_factory=UnreadLines)
    read: int = 0
    left_out: int = 0
    zone: float | None = None
    first: Kept | None = None
    last: Kept | None = None
    year: bool = False
    newest_first: bool = False
    backwards: Callable[[Sequence[Kept]], bool] = lambda _: False
    _later: int = 0
    """Years between the calendar's, which goes by the time of the file, and that of a line that has one."""
    _dated: tuple[int, tuple[int, int]] = (0, (0, 0))
    """The year and the day of the newest line that has both."""
    _unknown: bytes = b""
    _errors: dict[bytes, tuple[bool, Kept]] = field(default_factory=dict)
    """Node → its last error of no known message, and whether its line names a kubelet as its program."""
    _is_error: bool = False
    _ended: set[bytes] = field(default_factory=set)
    """Nodes of which a process ended, with no error since."""
    _learned: dict[bytes, int] = field(default_factory=dict)
    """Months of an unknown language, by klog's date in the same lines."""
    _sample: list[Kept] = field(default_factory=list)
    """Lines by which the order of all is known, of any message: every ``_step``-th."""
    _step: int = 1
    _taken: int = 0
    _drops_last: bool | None = None
    _kept: dict[tuple[Label, bool], deque[Kept]] = field(default_factory=dict)
    _size: int = 0
    _calendar: Calendar = field(init=False)
    _date: tuple[bytes, bytes] = (b"", b"")
    _midnight: float | None = None

    def __post_init__(self) -> None:
        self._calendar = Calendar(self.latest)

    def take(self, number: int, line: bytes, *, of_others: bool = False) -> None:
        """``of_others``: the author of a pod may have written it. Such lines are counted apart: they displace no others."""
        klog, before = _KLOG.match(line), self.read
        label = self._klog(line, klog) if klog is not None else self._other(number, line)
        if self.read > before and not of_others:
            self.last = number, self._midnight, line
            self.first = self.first or self.last
        self._taken += 1
        if self._taken >= self._step:
            self._take_sample((number, self._midnight, line[:PREFIX]))
        if self._is_error:
            self._is_error = False
            if label is None:
                self._remember((number, self._midnight, line), of_others=of_others)
        if label is not None:
            if label[0] in _EXITS:
                self._end(_writer(line)[0], of_others=of_others)
            self._keep((label, of_others), (number, self._midnight, line))

    def _take_sample(self, line: Kept) -> None:
        self._taken = 0
        self._sample.append(line)
        if len(self._sample) >= SAMPLE:
            del self._sample[1::2]
            self._step *= 2

    def _remember(self, line: Kept, *, of_others: bool) -> None:
        """An error of no known message. The one beside the end of a process may be its reason: ahead, or behind where the newest line is the first.

        That of another program is none, and that of an unnamed one displaces none of a kubelet.
        """
        node, kubelet = _writer(line[2])
        before = self._errors.get(node)
        if kubelet is False or (before is not None and before[0] and not kubelet):
            return
        if len(self._errors) >= MOST_NODES:
            self._errors.clear()
        self._errors[node] = bool(kubelet), line
        if node in self._ended:
            self._end(node, of_others=of_others)
            self._ended.discard(node)

    def _end(self, node: bytes, *, of_others: bool) -> None:
        """Of a process on this node. The lines of the process itself may lack the node."""
        if len(self._ended) < MOST_NODES:
            self._ended.add(node)
        if found := self._errors.pop(node, None) or self._errors.pop(b"", None):
            self._keep((_LAST, of_others), found[1])

    def kept(self) -> Iterator[Kept]:
        """The lines that matter, the oldest first. They are given up while they are read: each is needed once."""
        lines = sorted((line for lines in self._kept.values() for line in lines), key=lambda line: line[0])
        self._kept.clear()
        self.newest_first = self.backwards(self._sample)
        if not self.newest_first:
            lines.reverse()
        while lines:
            number, midnight, line = lines.pop()
            yield number, _in_year(midnight, self._later), line

    def newest(self) -> Kept | None:
        """The newest line of a known form, once ``kept`` has told the order of the file."""
        line = self.first if self.newest_first else self.last
        return None if line is None else (line[0], _in_year(line[1], self._later), line[2])

    def _keep(self, label: tuple[Label, bool], line: Kept) -> None:
        lines = self._kept.get(label)
        if lines is None:
            lines = self._kept[label] = deque()
        lines.append(line)
        self._size += len(line[2]) + OVERHEAD
        if len(lines) > MOST_FACTS:
            self._drop(lines)
        while self._size > MOST_BYTES:
            self._drop(max(self._kept.values(), key=len))

    def _drop(self, lines: deque[Kept]) -> None:
        """The oldest line."""
        if self._drops_last is None:
            self._drops_last = self.backwards(self._sample)
        self._size -= len((lines.pop() if self._drops_last else lines.popleft())[2]) + OVERHEAD
        self.left_out += 1

    # The forms of a line. Each method counts it and returns its label, or ``None``: the line shows nothing.

    def _klog(self, line: bytes, klog: re.Match[bytes]) -> Label | None:
        self.read += 1
        end = klog.end()
        month, day = klog.group("month", "day")
        if self._unknown:
            self._learn(month, day)
        if (month, day) != self._date:
            self._turn((month, day), int(month), int(day))
        level = klog["level"]
        self._is_error = level == b"E"
        return _FATAL if level == b"F" else label_of(line, end)

    def _other(self, number: int, line: bytes) -> Label | None:
        if line.startswith(b"{"):
            return self._json(number, line, 0)
        journal = _JOURNAL.match(line)
        if journal is None:
            return self._message(number, line, 0, known=False)
        if journal["time"]:
            self._journal_date(journal["month"] or journal["then"], journal["day"] or journal["first"])
        return self._message(number, line, journal.end(), known=True)

    def _journal_date(self, month: bytes, day: bytes) -> None:
        if (month, day) == self._date:
            return
        number = month_of(month.decode(errors="replace")) or self._learned.get(month)
        self._unknown = b""
        if number is not None:
            self._turn((month, day), number, int(day))
            return
        self._unknown = month
        if self._midnight is None or datetime.fromtimestamp(self._midnight, UTC).day != int(day):
            self._date, self._midnight = (month, day), None  # klog's own date of a later line shows it

    def _learn(self, month: bytes, day: bytes) -> None:
        """The number of the month that the journal's date of this line has in words."""
        if self._date[0] == self._unknown and int(day) == int(self._date[1]):
            self._learned[self._unknown] = int(month)
        self._unknown = b""

    def _message(self, number: int, line: bytes, start: int, *, known: bool) -> Label | None:
        """Behind the prefix of a journal, or of a line without one."""
        if klog := _KLOG.match(line, start):
            return self._klog(line, klog)
        if logrus := _LOGRUS.match(line, start):
            self.read += 1
            if self.zone is None and not known:
                self.zone = _seconds_of(logrus["zone"])
            if not self.year and logrus["date"]:
                year, month, day = map(int, logrus["date"].split(b"-"))
                self._dated = year, (month, day)
                self._set_year()
            if _OF_K0S.search(line, logrus.end()):
                self.read -= 1
                return self._message(number, _QUOTES.sub(b'"', line[logrus.end() + 1 :]), 0, known=True)
            return label_of(line, logrus.end())
        if known and line.startswith(b"{", start):
            return self._json(number, line, start)
        if not known and (begun := _OF_A_FILE.match(line)):
            self._calendar.latest = min(self._calendar.latest, _end_of_day(*map(int, begun.groups())))
        if known or line.startswith(_KNOWN, start) or not line[start:].strip():
            self.read += 1
            return label_of(line, start)
        if cut := CUT.match(line, start):
            self.read += 1
            return label_of(line, cut.end())
        self._count_unread(number, line)
        return _QUOTED if QUOTED in line else None

    def _json(self, number: int, line: bytes, start: int) -> Label | None:
        message = _JSON_MESSAGE.search(line, start)
        if message is None:
            self._count_unread(number, line)
            return None
        text = line[message.end() :].replace(b'\\"', b'"')
        if message[1] == b"MESSAGE":
            return self._message(number, text, 0, known=True)
        self.read += 1
        return label_of(text, 0)

    def _count_unread(self, number: int, line: bytes) -> None:
        shown = len(self.unread.examples) < SHOWN
        self.unread = self.unread.and_(self.file, number, text_of(line) if shown else "")

    def _set_year(self) -> None:
        """By a line that has it, on the day of a line that has none."""
        year, day = self._dated
        if self._midnight is not None and self._calendar.day == day:
            self.year, self._later = True, year - self._calendar.year

    def _turn(self, date: tuple[bytes, bytes], month: int, day: int) -> None:
        self._date, self._midnight = date, self._calendar.midnight(month, day)
        if not self.year:
            self._set_year()


def _writer(line: bytes) -> tuple[bytes, bool | None]:
    """The node of a line of a journal, and whether its program is a kubelet. ``b""`` and ``None`` where it does not say so."""
    if line.startswith(b"{"):
        fields = dict(_WRITER.findall(line))
        return fields.pop(b"_HOSTNAME", b""), is_kubelet(name.decode("ascii", "replace") for name in fields.values())
    journal = _JOURNAL.match(line)
    if journal is None:
        return b"", None
    return journal["node"].replace(b"-", b"") and journal["node"], is_kubelet([journal["program"].decode()])


def _end_of_day(year: int, month: int, day: int) -> datetime:
    with suppress(ValueError, OverflowError):
        return datetime(year, month, day, tzinfo=UTC) + timedelta(days=1)
    return datetime.max.replace(tzinfo=UTC)


def _in_year(midnight: float | None, later: int) -> float | None:
    """The same day, years later."""
    if midnight is None or not later:
        return midnight
    day = datetime.fromtimestamp(midnight, UTC)
    with suppress(ValueError, OverflowError):
        return day.replace(year=day.year + later).timestamp()
    return midnight


def _seconds_of(zone: bytes | None) -> float:
    """``+08:00``; UTC without one."""
    text = (zone or b"+00:00").decode()
    return (int(text[1:3]) * 3600.0 + int(text[4:6]) * 60.0) * (-1 if text[0] == "-" else 1)


def label_of(line: bytes, start: int) -> Label | None:
    """Of the message at ``start``; in quotes or not."""
    if line[start : start + 1] == b'"':
        start += 1
    for begins, words in _CHOICES.get(line[start : start + KEY], ()):
        if line.startswith(begins, start):
            for word, label in words:
                if line.find(word, start) >= 0:
                    return label
    return None


def text_of(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r\n")
