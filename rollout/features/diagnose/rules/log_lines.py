"""Lines of logs as facts: klog in words, with keys and as JSON; journald short and JSON; logrus.

The lines have passed the sieve: their messages begin like one that matters. Here their keys and values are taken apart.

A line of a journal has two times. That of journald is true, and mostly in whole seconds. That of the program is exact, but
klog has no year and no zone: it is moved to the other one. So all lines of a journal are on one clock.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise

from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.features.diagnose.rules.facts import LONGEST_TEXT, Fact, Kind, SourceLine
from rollout.features.diagnose.rules.messages import OF_ANY_CLIENT, QPS, found_in
from rollout.features.diagnose.rules.moments import moment
from rollout.features.diagnose.rules.programs import PROGRAM_FIELDS, has_own_words, is_kubelet, may_show
from rollout.features.diagnose.rules.sieve import CUT, JOURNAL, OF_K0S, QUOTED, Kept, UnreadLines, label_of, text_of
from rollout.features.diagnose.rules.wrapped_fields import as_logrus

_KLOG = re.compile(
    r"(?:\d{4}-\d\d-\d\dT\S{1,40} std(?:err|out) [FP] |[IWEF]?[\d .:]{1,40})??"
    r"([IWEF])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})\s+(?P<pid>\d+) (?P<place>[\w./-]+):\d+\] ?"
)
_PLACES = ("kubelet.go", "kubelet/")
"""Sources of a kubelet alone. ``server.go`` and ``run.go`` are of each program of Kubernetes."""
_JOURNAL = re.compile(JOURNAL, re.ASCII)
_LOGRUS = re.compile(r'time="(?P<time>[^"]+)" level=(?P<level>\w+) msg=(?P<msg>"(?:[^"\\]|\\.)*"|\S+)(?P<rest>.*)')
_KEYED = re.compile(r'"((?:[^"\\]|\\.)*)"(?= \w|$| ?$)(.*)', re.DOTALL)
_CUT = re.compile(CUT.pattern.decode())
_OF_K0S = re.compile(OF_K0S)
_PAIR = re.compile(r' ([\w./-]+)=("(?:[^"\\]|\\.)*"|&?\{[^}]{0,4096}\}|\[[^\]]{0,4096}\]|\S*)')
_CUT_ERROR = re.compile(r' (err|error)="((?:[^"\\]|\\.){1,4096})\\?$')

_MICROSECONDS = re.compile(r'"__REALTIME_TIMESTAMP" ?: ?"(\d{10,17})"|"ts" ?: ?(\d{10,16})')


_OWN_MESSAGES = ("Failed to run kubelet",)
_OWN_BEGINS = ("failed to run Kubelet: ", "Failed to run kubelet: ", "Error: failed to parse kubelet flag")
_OF_LOGRUS = {"error": "error", "host": "host", "version": "version", "id": "request"}
"""Keys of a line → fields of its fact, where the message itself has no such field."""
_MOST_PROCESSES = 10_000
"""Processes of one file of which the nodes are remembered."""
_MOST_PARTS = 100
"""Logs in one file, one behind the other, of which the times are remembered."""
_UNKNOWN = float("inf")
_DISORDER = 1.0
"""Seconds by which a line of a process may be before the one above it: threads write them."""
_ZONES = 900.0
"""Seconds: time zones, and dates of other years, differ by multiples of a quarter of an hour."""


@dataclass(slots=True)
class _Head:
    """What the prefixes of a line give. ``programs``: names of the one that wrote it; ``own``: its place is in a kubelet's source."""

    node: str = ""
    at: float | None = None
    known: bool = False
    fatal: bool = False
    programs: tuple[str, ...] = ()
    own: bool = False
    pid: str = ""

    @property
    def kubelet(self) -> bool | None:
        """Whether its program is a kubelet; ``None`` if it is not named."""
        return is_kubelet(self.programs)


@dataclass(slots=True)
class LogReader:
    """Reads lines of one file in their order. ``unread``: those that are damaged behind their beginning.

    ``zone``: of lines without one, in seconds. ``years``: of dates that have none. ``latest``: the last line that was taken apart.
    """

    file: str
    zone: float = 0.0
    unread: UnreadLines = field(default_factory=UnreadLines)
    years: set[int] = field(default_factory=set)
    latest: Fact | None = None
    _overlaps: dict[str, Fact] = field(default_factory=dict)
    _starts: dict[str, set[float]] = field(default_factory=dict)
    """Number of a process → when one with it began; and a line that lies in the time of an earlier part of the file."""
    _spans: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Number of a process → the times of its lines, a span for each part of the file in which they go on; those without a node."""
    _nodes: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Number of a process → the node that it registered and the time of its last line, for lines without a node.

    ``""``: those of several nodes have the number. ``_UNKNOWN``: another process may have it, until the node registers again.
    One process begins once, and its time goes on.
    """
    _midnight: float | None = None

    def line(self, number: int, midnight: float | None, content: bytes) -> Iterator[Fact]:
        """``midnight``: the begin of the line's day, if its date has no year."""
        line, self._midnight = text_of(content), midnight
        if line.startswith("{"):
            yield from self._json(_Head(), number, line, line)
            return
        head, rest = self._prefix(line)
        yield from self._rest(head, number, rest, line)

    def time_of(self, midnight: float | None, content: bytes) -> float | None:
        """The time of a line, without its facts: that of its journal, which no author of a text has written, before its own."""
        line, self._midnight = text_of(content), midnight
        if line.startswith("{"):
            micro = _MICROSECONDS.search(line)
            return _json_time(int(micro[1]) / 1e6 if micro[1] else int(micro[2])) if micro else None
        head, rest = self._prefix(line)
        klog, logrus = _KLOG.match(rest), _LOGRUS.match(rest)
        if head.at is not None:
            return head.at
        if klog is not None:
            return self._time(None, _seconds_of_day(klog))
        return moment(logrus["time"]) if logrus is not None else None

    def _prefix(self, line: str) -> tuple[_Head, str]:
        """That of a journal, and what is behind it."""
        head, rest = _Head(), line
        if journal := _JOURNAL.match(line):
            head = _Head(journal["node"].replace("-", "") and journal["node"], known=True)
            head.programs = (journal["program"],)
            if journal["iso"]:
                head.at = moment(f"{journal['iso']}{_hours_and_minutes(journal['zone'])}")
            elif journal["unix"]:
                head.at = float(journal["unix"])
            elif journal["time"]:
                hours, minutes, seconds = journal["time"].split(":")
                head.at = self._time(None, int(hours) * 3600 + int(minutes) * 60 + float(seconds))
            rest = line[journal.end() :]
        return head, rest

    def _time(self, outer: float | None, seconds: float) -> float | None:
        """Of a line without a year. ``outer``: journald's time of the same line."""
        if self._midnight is None:
            return outer
        if outer is not None:
            return _moved(self._midnight + seconds, outer)
        self.years.add(datetime.fromtimestamp(self._midnight, UTC).year)
        return self._midnight + seconds - self.zone

    def _rest(self, head: _Head, number: int, rest: str, line: str) -> Iterator[Fact]:
        """A message behind the prefix of a journal, or a line without one."""
        if klog := _KLOG.match(rest):
            head.at = self._time(head.at, _seconds_of_day(klog))
            head.fatal = klog[1] == "F"
            head.pid, head.own = klog["pid"], klog["place"].startswith(_PLACES)
            if not head.node and head.at is not None and self._lies_in_another(head.pid, head.at):
                where = SourceLine(self.file, number, line[:LONGEST_TEXT])
                fact = Fact(Kind.OVERLAP, head.at, "", self.file, where, {"pid": head.pid})
                self._overlaps.setdefault(head.pid, fact)
            message = rest[klog.end() :]
            facts = list(self._message(head, number, message, line))
            if head.kubelet is not False and not facts and klog[1] == "E" and label_of(message.encode(), 0) is None:
                where = SourceLine(self.file, number, line[:LONGEST_TEXT])
                facts = [
                    Fact(
                        Kind.ERROR,
                        head.at,
                        head.node,
                        self.file,
                        where,
                        {"error": printable(message, 300), "own": "yes" if head.kubelet else ""},
                    )
                ]
            yield from facts
        elif logrus := _LOGRUS.match(rest):
            own = moment(logrus["time"])
            head.at = own if head.at is None else head.at if own is None else _moved(own, head.at)
            if head.kubelet is not False and (component := _OF_K0S.search(logrus["rest"])):
                inner = replace(head, known=True, programs=(component[1],))
                yield from self._rest(inner, number, unquoted(logrus["msg"]), line)
                return
            keys = keys_of(logrus["rest"])
            for fact in self._found(head, number, unquoted(logrus["msg"]), None, line, keys):
                known = {to: keys[key] for key, to in _OF_LOGRUS.items() if key in keys and fact[to] in ("", "failed")}
                yield replace(fact, fields={**fact.fields, **known})
        elif rest.startswith("{"):
            yield from self._json(head, number, rest, line)
        elif not head.known and (cut := _CUT.match(rest)):
            yield from self._message(head, number, rest[cut.end() :], line)
        elif not head.known and QUOTED.decode() in rest:
            where = SourceLine(self.file, number, line[:LONGEST_TEXT])
            yield Fact(Kind.PULL_FAILED, None, "", self.file, where, {"error": QPS})
        else:
            yield from self._found(head, number, rest, None, line)

    def _message(self, head: _Head, number: int, message: str, line: str) -> Iterator[Fact]:
        keyed = _KEYED.match(message)
        if keyed is not None:
            yield from self._found(head, number, unquoted(f'"{keyed[1]}"'), keys_of(keyed[2]), line)
        else:
            yield from self._found(head, number, message, None, line)

    def _json(self, head: _Head, number: int, rest: str, line: str) -> Iterator[Fact]:
        try:
            document = json_text.parse(rest)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            self.unread = self.unread.and_(self.file, number, line)
        elif "MESSAGE" in document:
            message = _text(document["MESSAGE"])
            micro = _text(document.get("__REALTIME_TIMESTAMP"))
            yield from self._rest(
                _Head(
                    _text(document.get("_HOSTNAME")),
                    int(micro) / 1e6 if micro.isdecimal() else None,
                    known=True,
                    programs=tuple(_text(document.get(name)) for name in PROGRAM_FIELDS),
                ),
                number,
                message,
                message,
            )
        elif {"level", "msg", "time"} <= set(document):
            yield from self._rest(head, number, as_logrus(document), line)
        else:
            head.at = _json_time(document.get("ts")) or head.at
            keys = {key: _text(value) for key, value in document.items() if key not in ("ts", "caller", "msg", "v")}
            message = _text(document.get("msg"))
            worded = " " not in "".join(keys) and (set(keys) - {"err", "logger"}) == set()
            for fact in self._found(head, number, message, keys, line):
                yield fact
                worded = False
            if worded:
                yield from self._found(head, number, message, None, line)

    def _found(
        self,
        head: _Head,
        number: int,
        message: str,
        keys: Mapping[str, str] | None,
        line: str,
        others: Mapping[str, str] | None = None,
    ) -> Iterator[Fact]:
        where = SourceLine(self.file, number, line[:LONGEST_TEXT])
        self.latest = Fact(Kind.LAST, head.at, sys.intern(head.node), self.file, where, {})
        for found in found_in(message, keys, others):
            if not may_show(found.kind, head.programs):
                continue
            if found.kind is Kind.START and head.at is not None and len(self._starts) < _MOST_PROCESSES:
                self._starts.setdefault(head.pid, set()).add(head.at)
            if found.kind is Kind.START and head.pid in self._nodes:
                self._nodes[head.pid] = self._nodes[head.pid][0], _UNKNOWN
            node = head.node or found.fields.get("node", "") or self._of_process(head)
            if found.kind is Kind.NODE and head.pid and len(self._nodes) < _MOST_PROCESSES:
                known, _ = self._nodes.get(head.pid, (node, 0.0))
                self._nodes[head.pid] = node if known == node else "", head.at or 0.0
            fields = {name: sys.intern(text) for name, text in found.fields.items()}
            if found.kind is Kind.FATAL:
                fields = _origin(head, message, found.fields.get("error", "")) | fields
            elif found.kind is Kind.START and (head.kubelet or message == "Kubelet version"):
                fields |= {"own": "yes", "pid": head.pid}
            elif found.kind is Kind.PULL_FAILED and message == OF_ANY_CLIENT and not head.kubelet:
                fields |= {"client": "yes"}
            yield Fact(found.kind, head.at, sys.intern(node), self.file, where, fields)
        if head.fatal and head.kubelet is not False:
            error = printable(message, 300)
            origin = _origin(head, message, error)
            yield Fact(
                Kind.FATAL,
                head.at,
                head.node or self._of_process(head),
                self.file,
                where,
                {"error": error, **origin},
            )

    def overlap(self) -> Fact | None:
        """A line after which one number may be of processes of several nodes.

        A write-up repeats parts of one log. So the number has to be known of a node, or several processes began with it.
        """
        return next(
            (
                fact
                for pid, fact in self._overlaps.items()
                if self._nodes.get(pid, ("", 0.0))[0] or len(self._starts.get(pid, ())) > 1
            ),
            None,
        )

    def _lies_in_another(self, pid: str, at: float) -> bool:
        """Whether a line of this process lies in the time of an earlier part of the file: one process writes its lines in order."""
        spans = self._spans.get(pid)
        if spans is None:
            if len(self._spans) < _MOST_PROCESSES:
                self._spans[pid] = [(at, at)]
            return False
        first, last = spans[-1]
        if at >= last - _DISORDER:
            spans[-1] = first, max(last, at)
        elif len(spans) < _MOST_PARTS:
            spans.append((at, at))
        first, last = spans[-1]
        return any(first < end - _DISORDER and last > begin + _DISORDER for begin, end in spans[:-1])

    def _of_process(self, head: _Head) -> str:
        """The node that the line's process registered; ``""``: it is not known."""
        node, last = self._nodes.get(head.pid, ("", 0.0))
        if not node or last == _UNKNOWN:
            return ""
        at = last if head.at is None else head.at
        is_same = at >= last - _DISORDER
        self._nodes[head.pid] = node, max(at, last) if is_same else _UNKNOWN
        return node if is_same else ""


def _origin(head: _Head, message: str, error: str) -> dict[str, str]:
    """Of the end of a process: whether it is a kubelet's, and its number."""
    named = message in _OWN_MESSAGES or message.startswith(_OWN_BEGINS)
    own = bool(head.kubelet) or head.own or named or has_own_words(message) or has_own_words(error)
    return {"own": "yes" if own else "", "pid": head.pid}


def newest_first(sample: Sequence[Kept]) -> bool:
    """Whether a file has its newest lines first, as consoles of clouds and ``journalctl -r`` print them."""
    reader = LogReader("")
    times = [at for each in sample if (at := reader.time_of(*each[1:])) is not None]
    later = sum(second > first for first, second in pairwise(times))
    return sum(second < first for first, second in pairwise(times)) > later


def _seconds_of_day(klog: re.Match[str]) -> float:
    return int(klog[4]) * 3600 + int(klog[5]) * 60 + int(klog[6]) + int(klog[7]) / 1e6


def _moved(inner: float, outer: float) -> float:
    """The program's own time of a line, in the zone and the year of journald's."""
    return inner + round((outer - inner) / _ZONES) * _ZONES


def keys_of(text: str) -> dict[str, str]:
    """``key="value"`` pairs. One that is cut is left out, except an error: its beginning tells something."""
    keys = {found[1]: unquoted(found[2]) for found in _PAIR.finditer(text)}
    if cut := _CUT_ERROR.search(text):
        keys[cut[1]] = unquoted(f'"{cut[2]}"')
    return keys


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


def _hours_and_minutes(zone: str | None) -> str:
    """``-03`` of a zone without a name; ``""`` for one with a name: its lines are read as UTC."""
    return "" if zone is None else f"{zone}00" if len(zone) == 3 else zone


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
    if isinstance(value, dict) and {"Type", "ID"} == set(value):
        return f"{value['Type']}://{value['ID']}"
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        return "[" + ",".join(_text(entry) for entry in value) + "]"
    return "" if value is None else str(value) if isinstance(value, int | float) else json.dumps(value)
