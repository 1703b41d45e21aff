"""Log lines in the fields of documents: what the collectors of clouds and clusters put around a line, as records.

A record is the line with what its wrapper has of it: time, node, program. A dictionary with a text is one record; others are
searched, and what they have of time and labels holds for all records in them. Sources: journald's JSON fields
(systemd.journal-fields(7)); docker's json-file; fluent-bit's and fluentd's tail, systemd and stdout; CloudWatch's
filter-log-events, get-query-results and Container Insights; Cloud Logging's LogEntry; Loki's query API; Elasticsearch's
hits; tables of Log Analytics; Splunk's export; OTLP in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.features.diagnose.rules.moments import moment

DEEPEST = 12
"""Dictionaries and lists in one another that are searched."""
LEFT_OUT = "[5K blob data]"
"""As journalctl shows a text that it does not print; its JSON has ``null`` for one of more than 4 KiB."""
_TEXTS = (
    "MESSAGE", "message", "log", "line", "textPayload", "SyslogMessage", "@message", "_raw", "LogEntry", "LogMessage",
    "Message", "Line", "body", "msg",
)  # fmt: skip
_TIMES = (
    "__REALTIME_TIMESTAMP", "@timestamp", "timestamp", "TimeGenerated", "TimeGenerated [UTC]", "_time", "time", "date",
    "timeUnixNano", "EventTime", "Time", "Date", "Timestamp", "_SOURCE_REALTIME_TIMESTAMP", "observedTimeUnixNano",
)  # fmt: skip
_NODES = (
    "_HOSTNAME", "hostname", "host", "host.name", "Computer", "HostName", "node_name", "nodename", "node", "k8s.node.name",
    "compute.googleapis.com/resource_name",
)  # fmt: skip
_PROGRAMS = ("SYSLOG_IDENTIFIER", "_COMM", "_SYSTEMD_UNIT", "systemd_unit", "unit", "ProcessName")
_LABELS = (
    "resource",
    "labels",
    "stream",
    "kubernetes",
    "host",
    "metric",
    "fields",
    "systemd",
    "syslog",
    "attributes",
    "metadata",
)
"""Dictionaries that describe the lines beside them."""
_OF_A_CONTAINER = (
    ("pod_name", "container_name"),
    ("pod", "container"),
    ("PodName", "ContainerName"),
    ("namespace", "container"),
)
"""Labels of the output of a container, which its author wrote."""
_NODE = re.compile(r"[A-Za-z\d][\w.-]{0,252}")
_PROGRAM = re.compile(r"[\w.@/()+-]{1,80}")
_NAME = re.compile(r"[\w.-]{1,60}")
_NUMBER = re.compile(r"\d{9,20}(?:\.\d{1,9})?")
_OF_PEOPLE = ("%m/%d/%Y, %I:%M:%S.%f %p", "%b %d, %Y @ %H:%M:%S.%f")
"""Times in the exports of consoles: Log Analytics, Kibana."""


_NAMES = frozenset(
    (*_TEXTS, *_TIMES, *_NODES, *_PROGRAMS, *_LABELS, *(name for pair in _OF_A_CONTAINER for name in pair))
)


@dataclass(frozen=True, slots=True)
class _Names:
    """The known names of a dictionary, each kind in its order. ``of_container``: it describes the output of a container."""

    texts: tuple[str, ...]
    times: tuple[str, ...]
    nodes: tuple[str, ...]
    programs: tuple[str, ...]
    labels: tuple[str, ...]
    of_container: bool


def _known(document: Mapping[str, Any]) -> _Names:
    return _names_in(_NAMES.intersection(document))


@lru_cache(maxsize=1024)
def _names_in(names: frozenset[str]) -> _Names:
    """The dictionaries of one file have few sets of these names."""
    texts, times, nodes, programs, labels = (
        tuple(name for name in every if name in names) for every in (_TEXTS, _TIMES, _NODES, _PROGRAMS, _LABELS)
    )
    of_container = any(names.issuperset(pair) for pair in _OF_A_CONTAINER)
    return _Names(texts, times, nodes, programs, labels, of_container)


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What the wrappers around a line have of it. ``of_container``: it is the output of a container of a pod."""

    at: float | None = None
    node: str = ""
    program: str = ""
    of_container: bool = False

    def within(self, document: Mapping[str, Any]) -> Wrapping:
        """Of a dictionary inside: what it has itself is nearer to the line."""
        names = _known(document)
        labels = [document, *_labels(document)] if names.labels else [document]
        at = next((at for name in names.times if (at := time_in(document[name])) is not None), self.at)
        node = next(
            (found for each in labels for name in _known(each).nodes if _NODE.fullmatch(found := _str(each[name]))), ""
        )
        program = next(
            (
                found
                for each in labels
                for name in _known(each).programs
                if _PROGRAM.fullmatch(found := _str(each[name]))
            ),
            "",
        )
        if program and _str(document.get("_PID")).isdecimal():
            program += f"[{document['_PID']}]"
        of_container = any(_known(each).of_container for each in labels)
        return Wrapping(at, node or self.node, program or self.program, self.of_container or of_container)


@dataclass(frozen=True, slots=True)
class Record:
    """A line, and what is around it."""

    text: str
    of: Wrapping


_NOTHING = Wrapping()


def records_in(value: object, of: Wrapping = _NOTHING, depth: int = 0) -> Iterator[Record]:
    """The lines in a value of JSON."""
    if depth > DEEPEST:
        return
    if isinstance(value, dict):
        yield from _in_dictionary(value, of, depth)
    elif isinstance(value, list):
        yield from _in_list(value, of, depth)


def _in_dictionary(document: Mapping[str, Any], of: Wrapping, depth: int) -> Iterator[Record]:
    here = of.within(document)
    if "msg" in document and ("ts" in document or "caller" in document):  # klog's own JSON, taken apart by a collector
        yield Record(json.dumps(document), here)
        return
    if {"level", "msg", "time"} <= set(document):
        yield Record(as_logrus(document), here)
        return
    if document.get("MESSAGE", "") is None:
        yield Record(LEFT_OUT, here)
        return
    text = next((text for name in _known(document).texts if (text := _text(document[name])) is not None), None)
    if text is not None:
        yield Record(text, here)
        return
    for row in rows_of(document):
        yield from records_in(row, here, depth + 1)
    for inner in document.values():
        if isinstance(inner, dict | list):
            yield from records_in(inner, here, depth + 1)


def as_logrus(document: Mapping[str, Any]) -> str:
    """logrus's JSON as its text: containerd and dockerd with ``format = "json"``."""
    last = ("time", "level", "msg")
    pairs = [(name, document[name]) for name in last] + [
        (name, value) for name, value in document.items() if name not in last
    ]
    return " ".join(
        f"{name}={value if name == 'level' else json.dumps(value)}"
        for name, value in pairs
        if isinstance(value, str) and _NAME.fullmatch(name)
    )


def _in_list(values: Sequence[Any], of: Wrapping, depth: int) -> Iterator[Record]:
    """Also ``[time, line]`` of Loki, ``[time, {…}]`` of fluent-bit, and the fields of one row of a query."""
    if values and all(isinstance(each, dict) and {"field", "value"} <= set(each) for each in values):
        yield from _in_dictionary({_str(each["field"]): each["value"] for each in values}, of, depth)
        return
    at = time_in(values[0]) if values else None
    if at is None and values and isinstance(values[0], list) and values[0]:
        at = time_in(values[0][0])
    here = of if at is None else replace(of, at=at)
    if at is not None and len(values) > 1 and isinstance(values[1], str):
        yield Record(values[1], here)
        return
    for inner in values:
        if isinstance(inner, dict | list):
            yield from records_in(inner, here, depth + 1)


def rows_of(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a table: its columns have names, and its rows are lists."""
    columns = columns_of(document)
    for name in ("rows", "datarows") if columns else ():
        rows = document.get(name)
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, list):
                yield dict(zip(columns, row, strict=False))


def columns_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    columns = document.get("columns") or document.get("schema")
    if not isinstance(columns, list):
        return ()
    return tuple(_str(each.get("name")) if isinstance(each, dict) else _str(each) for each in columns)


def _labels(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in _known(document).labels:
        inner = document[name]
        if isinstance(inner, list):
            inner = {
                _str(each["key"]): _text(each.get("value"))
                for each in inner
                if isinstance(each, dict) and "key" in each
            }
        if isinstance(inner, dict):
            yield inner
            if isinstance(labels := inner.get("labels"), dict):
                yield labels
            if name == "host" and isinstance(inner.get("name"), str):
                yield {"host": inner["name"]}
            if name == "resource" and isinstance(inner.get("attributes"), list):
                yield from _labels({"attributes": inner["attributes"]})


def _text(value: object) -> str | None:
    """A text of a field: as it is, as its bytes, as a list of one, or as OTLP writes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return inner if isinstance(inner := value.get("stringValue"), str) else None
    if not isinstance(value, list) or not value:
        return None
    if len(value) == 1 and isinstance(value[0], str):
        return value[0]
    return bytes_text(value)


def bytes_text(values: Sequence[object]) -> str | None:
    """journald's JSON writes a text with control characters as numbers."""
    numbers = [each for each in values if type(each) is int and 0 <= each <= 255]
    return bytes(numbers).decode("utf-8", "replace") if numbers and len(numbers) == len(values) else None


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""


def time_in(value: object) -> float | None:
    """Seconds since 1970: of a number of seconds, milliseconds, microseconds or nanoseconds, or of a time in words."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _scaled(float(value))
    if not isinstance(value, str) or len(value) > 40:
        return None
    if _NUMBER.fullmatch(value):
        return _scaled(float(value))
    text = value.strip().removesuffix(" UTC")
    if (at := moment(text)) is not None or not text[:1].isalnum():
        return at
    for form in _OF_PEOPLE:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return None


def _scaled(number: float) -> float | None:
    """A time since 1973 in its unit."""
    for least, unit in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0)):
        if least <= number < least * 1e3:
            return number / unit
    return None
