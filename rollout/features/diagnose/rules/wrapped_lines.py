"""Lines that a program put around a line of a log, each taken off: what is left is a line of a journal, or as it was.

A wrapper is known by its whole form, with a line of a known form behind it: a word before a line is no wrapper, because
people and programs quote lines. What a wrapper has of a line becomes the prefix of journald's ``short-iso-precise``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from rollout.core.text import json_text
from rollout.features.diagnose.rules.sieve import JOURNAL
from rollout.features.diagnose.rules.wrapped_fields import Record, Wrapping, bytes_text, records_in, time_in

DEEPEST = 4
"""Wrappers around one line that are taken off."""
LONGEST = 64 * 1024
AS_THEY_ARE = frozenset(b"IWEFJFMASOND \t\r\n-").union(range(0x80, 0x100))
"""How lines begin that no wrapper begins with: klog, logrus, the English months of a journal."""
_KNOWN = r'(?=[IWEF]\d{4} \d\d:|time="|\{"|<\d{1,3}>|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )'
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| ?[+-]\d\d:?\d\d)?"
_STREAM = re.compile(rf"(?P<at>{_ISO}) std(?:out|err) [FP] ")
"""A container runtime's own file (CRI)."""
_LABELLED = re.compile(rf"(?P<at>{_ISO})[ \t](?P<labels>\{{[^{{}}]{{0,4000}}\}})[ \t]")
"""Loki's ``logcli``."""
_DATED = re.compile(rf"(?P<at>{_ISO})[ \t](?:(?P<source>[^\s{{]\S{{0,200}}+)[ \t])?{_KNOWN}")
"""``aws logs tail``, ``docker logs -t``, ``kubectl logs --timestamps``, fluentd's file and standard output."""
_SYSLOG = re.compile(
    rf"<\d{{1,3}}>(?:1 (?P<at>{_ISO}) (?P<node>\S{{1,255}}) (?P<program>\S{{1,48}}) (?P<pid>\S{{1,128}}) \S{{1,32}} (?:-|\[[^\]]{{0,2000}}\]) (?:\ufeff)?)?"
)
"""RFC 5424, or the priority of RFC 3164 in front of a line of a journal."""
_NAMED = re.compile(r"(?P<node>[A-Za-z\d][\w.-]{0,252}+)(?::| +\|) (?!\S+\.service)(?=[IWEF]\d{4} \d\d:|time=\"|\{\")")
"""``talosctl``, ``pdsh``, ``clush``, ``docker compose``: the name of a node or a container."""
_ADDRESS = re.compile(r"[\d.]+")
_BUFFERED = re.compile(r"\[\d+\] [^\s:]{1,200}: (?=\[)")
"""fluent-bit's standard output: ``[0] tag: [time, {"key"=>"value"}]``."""
_COLOUR = re.compile(r"\x1b\[[\d;]{0,20}m")
_ARROW = re.compile(r'("(?:[^"\\]|\\.)*+")|=>')
_JOURNAL = re.compile(JOURNAL, re.ASCII)
_TEXT_OF_JOURNALD = re.compile(rb'"MESSAGE" ?: ?"')
_LABEL_OF_NODE = re.compile(r'(?:hostname|host|node_name|nodename|node|instance)="([A-Za-z\d][\w.-]{0,252})"')
_LABEL_OF_POD = re.compile(r'(?:pod|pod_name)="')
_LABEL_OF_UNIT = re.compile(r'(?:syslog_identifier|unit|systemd_unit)="([\w.@/()+-]{1,80})"')


MAY_BE_WRAPPED = re.compile(
    rb'\{|\d{4}-\d\d-\d\d[T ]|<\d|\* |data: \{|\x1e\{|\[\d|[A-Za-z\d][\w.-]{0,252}+(?::| +\|) (?:[IWEF]\d{4} |time="|\{")'
)
"""The first bytes of a line with a wrapper."""
_MAY_BE_WRAPPED = re.compile(MAY_BE_WRAPPED.pattern.decode())


def unwrapped(line: bytes) -> Iterator[tuple[bytes, bool]]:
    """The lines in a line, and whether the author of a pod wrote them. Most lines are their own."""
    if line[:1] == b"{":
        yield from _object(line)
        return
    text = line.decode("utf-8", "replace")
    record = _taken_off(text, Wrapping())
    if record is None:
        yield line, False
    else:
        yield from _lines(record, 1)


def _object(line: bytes) -> Iterator[tuple[bytes, bool]]:
    """A line of JSON. klog's and journald's own are taken apart when they matter; one with a text as numbers gets its text."""
    if line.startswith(b'{"ts":') or (b'"__REALTIME' in line and _TEXT_OF_JOURNALD.search(line)):
        yield line, False
        return
    try:
        document = json_text.parse(line)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        yield line, False
        return
    if "__REALTIME_TIMESTAMP" in document and "MESSAGE" in document:
        text = bytes_text(document["MESSAGE"]) if isinstance(document["MESSAGE"], list) else None
        yield (line if text is None else json.dumps(document | {"MESSAGE": text}).encode()), False
        return
    found = False
    for record in records_in(document):
        found = True
        if record.of == Wrapping() and record.text.startswith("{"):
            yield line, False
        else:
            yield from _lines(record, 1)
    if not found:
        yield line, False


def lines_of(record: Record) -> Iterator[tuple[bytes, bool]]:
    """The line of a record, and whether the author of a pod wrote it."""
    return _lines(record, 1)


def _lines(record: Record, depth: int) -> Iterator[tuple[bytes, bool]]:
    """Of a text of several lines the first: the others may be anybody's."""
    text = record.text.lstrip("\ufeff").partition("\n")[0].rstrip()[:LONGEST]
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    if depth < DEEPEST:
        if text.startswith("{") and (inner := _inner(text, record.of)):
            for each in inner:
                yield from _lines(each, depth + 1)
            return
        if (less := _taken_off(text, record.of)) is not None:
            yield from _lines(less, depth + 1)
            return
    yield _as_journal(text, record.of), record.of.of_container


def _inner(text: str, of: Wrapping) -> list[Record]:
    """The records in a text that is JSON itself; none in klog's own."""
    with suppress(ValueError):
        document = json_text.parse(text)
        if isinstance(document, dict) and not ("msg" in document and ("ts" in document or "caller" in document)):
            return list(records_in(document, of))
    return []


def _taken_off(text: str, of: Wrapping) -> Record | None:
    """The line without its first wrapper; ``None`` if it has none."""
    if _MAY_BE_WRAPPED.match(text) is None:
        return None
    if match := _STREAM.match(text):
        return Record(text[match.end() :], _with(of, match["at"]))
    if match := _LABELLED.match(text):
        return Record(text[match.end() :], _labelled(_with(of, match["at"]), match["labels"]))
    if match := _DATED.match(text):
        return Record(text[match.end() :], _with(of, match["at"]))
    if match := _SYSLOG.match(text):
        rest = text[match.end() :]
        if match["at"] is None:
            return Record(rest, of)
        program = match["program"] if match["pid"] == "-" else f"{match['program']}[{match['pid']}]"
        return Record(rest, replace(_with(of, match["at"]), node=match["node"], program=program))
    if match := _NAMED.match(text):
        name = "" if _ADDRESS.fullmatch(match["node"]) else match["node"]
        return Record(text[match.end() :], replace(of, node=of.node or name))
    if match := _BUFFERED.match(text):
        with suppress(ValueError):
            value = json_text.parse(_ARROW.sub(lambda token: token[1] or ":", text[match.end() :]))
            return next(records_in(value, of), None)
    if text.startswith("* "):
        return Record(text[2:], of)
    if text.startswith("data: {"):
        return Record(text[6:], of)
    if text.startswith("\x1e{"):
        return Record(text[1:], of)
    return None


def _with(of: Wrapping, at: str) -> Wrapping:
    compact = at[:19] + at[19:].replace(" ", "")
    return replace(of, at=of.at if (found := time_in(compact)) is None else found)


def _labelled(of: Wrapping, labels: str) -> Wrapping:
    node, unit = _LABEL_OF_NODE.search(labels), _LABEL_OF_UNIT.search(labels)
    return replace(
        of,
        node=node[1] if node else of.node,
        program=unit[1] if unit else of.program,
        of_container=of.of_container or _LABEL_OF_POD.search(labels) is not None,
    )


def _as_journal(text: str, of: Wrapping) -> bytes:
    """With the prefix of ``short-iso-precise``. A prefix of the line's own has the better names, and maybe no year."""
    if journal := _JOURNAL.match(text):
        if journal["iso"] or journal["unix"] or of.at is None:
            return f"{text}\n".encode("utf-8", "replace")
        text = text[journal.end() :]
        of = replace(of, node=journal["node"], program=journal["program"])
    if of == Wrapping():
        return f"{text}\n".encode("utf-8", "replace")
    begin = "[0.0]" if of.at is None else datetime.fromtimestamp(of.at, UTC).isoformat(timespec="microseconds")
    return f"{begin} {of.node or '-'} {of.program or '-'}: {text}\n".encode("utf-8", "replace")
