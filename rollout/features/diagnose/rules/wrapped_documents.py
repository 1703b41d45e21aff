"""Files that are no lines: journald's export and verbose forms, tables with commas, and documents of JSON of any size.

Each reader gives the lines of a journal that ``wrapped_lines`` makes of a record, with the record's number. A document is
read value by value: one that is small is parsed as a whole, a large one is entered. So a list of any length needs the
memory of its largest record.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rollout.core.text import json_text
from rollout.features.diagnose.rules.sieve import text_of
from rollout.features.diagnose.rules.wrapped_fields import Record, Wrapping, columns_of, records_in
from rollout.features.diagnose.rules.wrapped_lines import lines_of

Wrapped = tuple[int, bytes, bool]
"""A record's number, its line, and whether the author of a pod wrote it."""
Note = Callable[[int, str], None]
"""Takes what cannot be read: the number of the record, and why."""
Reader = Callable[[Iterable[bytes], Note], Iterator[Wrapped]]

LARGEST = 1024 * 1024
"""Bytes of a value that is parsed as a whole."""
_AT_ONCE = 64 * 1024
DEEPEST = 8
"""Large values in one another that are entered."""
LONGEST_SCALAR = 64
_HEAD_OF_EXPORT = re.compile(rb"(?:__CURSOR|__REALTIME_TIMESTAMP|__SEQNUM)=")
_HEAD_OF_VERBOSE = re.compile(
    rb"(?:-- [^\n]{0,200}\n)?[^\s\d]\S{0,11} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} (?P<zone>\S{1,6}) \[s=[0-9a-f]{1,32};"
)
_OPENS = re.compile(rb'\s{0,200}(?:\{\s{0,200}"|\[\s{0,200}[{\["\d])')
_TEXT_INSIDE = re.compile(
    rb'"(?:MESSAGE|message|log|line|textPayload|SyslogMessage|@message|_raw|LogEntry|LogMessage|Message|body|values|rows|datarows|results|resourceLogs)"\s{0,9}:'
)
_COLUMN = re.compile(
    rb"(?:^|[,;\t])\"?(?:[\w.]{1,40}\.)?(?:@message|message|MESSAGE|SyslogMessage|textPayload|_raw|LogEntry|Line|line)\"?(?=[,;\t\r\n]|$)"
)
_SPACE = re.compile(rb"[\s,:\x1e]*")
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?P<end>"?)|[\[\]{}]', re.DOTALL)
_FLAT = re.compile(rb'\{(?:[^"\\{}\[\]]*+"[^"\\]*+(?:\\.[^"\\]*+)*+")*+[^"\\{}\[\]]*+\}', re.DOTALL)
"""A dictionary of texts and numbers, as most records are."""
_FLAT = re.compile(rb'\{(?:[^"\\{}\[\]]*+"[^"\\]*+(?:\\.[^"\\]*+)*+")*+[^"\\{}\[\]]*+\}', re.DOTALL)
"""A dictionary of texts and numbers, as most records are."""
_INSIDE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SCALAR = re.compile(rb'[^\s,\[\]{}":]{1,64}')


def reader_of(head: bytes) -> Reader | None:
    """The reader for a file that begins so; ``None``: it is read line by line."""
    if _HEAD_OF_EXPORT.match(head):
        return _exported
    if b"\x00" in head:
        return None
    if _HEAD_OF_VERBOSE.match(head):
        return _verbose
    first, newline, rest = head.partition(b"\n")
    if _OPENS.match(head) and _TEXT_INSIDE.search(head) and not (newline and _is_one_record(first)):
        return _documents
    return _rows if _COLUMN.search(first) and rest and first[:1] not in b"{[" else None


def _is_one_record(first: bytes) -> bool:
    """Whether the first line is a document of its own: then each line is."""
    try:
        document = json_text.parse(first)
    except ValueError:
        return False
    return isinstance(document, dict) and len(list(islice(records_in(document), 2))) < 2


def _numbered(records: Iterable[Record]) -> Iterator[Wrapped]:
    for number, record in enumerate(records, 1):
        for line, of_container in lines_of(record):
            yield number, line, of_container


# journald's export form: ``NAME=value``, or the name alone, eight bytes of length and a value of any bytes.


@dataclass(slots=True)
class _Bytes:
    """A stream of bytes, by lines or by their number."""

    pieces: Iterator[bytes]
    held: bytes = b""

    def line(self) -> bytes:
        """Up to the line's end; ``b""`` at the end of all. A line that is too long comes in parts."""
        while b"\n" not in self.held and len(self.held) < LARGEST:
            piece = next(self.pieces, b"")
            if not piece:
                break
            self.held += piece
        end = self.held.find(b"\n") + 1 or len(self.held)
        line, self.held = self.held[:end], self.held[end:]
        return line

    def take(self, size: int) -> bytes:
        """This many bytes, of which the first ``LARGEST`` are kept."""
        taken = b""
        while size > 0:
            if not self.held:
                self.held = next(self.pieces, b"")
                if not self.held:
                    break
            part, self.held = self.held[:size], self.held[size:]
            size -= len(part)
            taken += part[: LARGEST - len(taken)]
        return taken


def _exported(pieces: Iterable[bytes], _note: Note) -> Iterator[Wrapped]:
    return _numbered(_entries(_Bytes(iter(pieces))))


def _entries(stream: _Bytes) -> Iterator[Record]:
    entry: dict[str, Any] = {}
    while line := stream.line():
        name, equals, value = line.removesuffix(b"\n").removesuffix(b"\r").partition(b"=")
        if equals:
            _put(entry, name, value)
        elif name:
            _put(entry, name, stream.take(int.from_bytes(stream.take(8), "little")))
            stream.line()
        else:
            yield from records_in(entry)
            entry = {}
    yield from records_in(entry)


_WANTED = frozenset(
    (b"MESSAGE", b"__REALTIME_TIMESTAMP", b"_SOURCE_REALTIME_TIMESTAMP", b"_HOSTNAME", b"SYSLOG_IDENTIFIER", b"_COMM", b"_PID", b"_SYSTEMD_UNIT")
)  # fmt: skip


def _put(entry: dict[str, Any], name: bytes, value: bytes) -> None:
    if name in _WANTED:
        entry[name.decode()] = value.decode("utf-8", "replace")


# journald's verbose form: a line with the time, then ``    NAME=value`` for each field.


def _verbose(pieces: Iterable[bytes], _note: Note) -> Iterator[Wrapped]:
    return _numbered(_paragraphs(_Bytes(iter(pieces))))


def _paragraphs(stream: _Bytes) -> Iterator[Record]:
    entry: dict[str, Any] = {}
    while line := stream.line():
        if _HEAD_OF_VERBOSE.match(line):
            yield from records_in(entry)
            _, date, time, zone = line.split(b" ", 4)[:4]
            numeric = zone if zone[:1] in b"+-" else b""
            entry = {"timestamp": b"".join((date, b"T", time, numeric, b":00" if len(numeric) == 3 else b"")).decode()}
        elif line.startswith(b"    ") and not line.startswith(b"     "):
            name, _, value = line.strip().partition(b"=")
            _put(entry, name, value)
    yield from records_in(entry)


# Tables with a header, as consoles export them.


def _rows(pieces: Iterable[bytes], note: Note) -> Iterator[Wrapped]:
    texts = iter(text_of(piece) + "\n" for piece in pieces)
    header = next(texts, "")
    comma = max(",;\t", key=header.count)
    names = next(csv.reader([header], delimiter=comma))
    reader, number = csv.reader(texts, delimiter=comma), 0
    while True:
        number += 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            note(number, "a field of this row does not end")
            continue
        cells: dict[str, Any] = {}
        for name, cell in zip(names, row, strict=False):
            cells.setdefault(name, cell)
            cells.setdefault(name.rpartition(".")[2], cell)
        yield from ((number, line, other) for each in records_in(cells) for line, other in lines_of(each))


# Documents of JSON.


@dataclass(slots=True)
class _Values:
    """The values of a text of JSON. ``at``: where the next one begins. ``damaged``: what is no JSON; ``cut``: the end is missing."""

    pieces: Iterator[bytes]
    text: bytes = b""
    at: int = 0
    damaged: int = 0
    cut: bool = False

    def more(self) -> bool:
        """Whether a value begins here, behind blanks and commas."""
        while True:
            space = _SPACE.match(self.text, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.text):
                return True
            if not self._fill():
                return False

    def records(self, of: Wrapping, columns: tuple[str, ...] = (), depth: int = 0) -> Iterator[Record]:
        """Of the value that begins here."""
        begins, end = self.text[self.at : self.at + 1], self._end()
        if end is not None:
            value, self.at = self._parsed(end), end
            if columns and isinstance(value, list):
                value = dict(zip(columns, value, strict=False))
            yield from records_in(value, of)
        elif depth > DEEPEST:
            self._give_up()
        elif begins == b"[":
            yield from self._list(of, columns, depth)
        elif begins == b"{":
            yield from self._dictionary(of, depth)
        else:
            self._pass_over()

    def pass_over_line(self) -> None:
        """Words between the documents."""
        self.damaged += 1
        while (end := self.text.find(b"\n", self.at)) < 0:
            self.at = len(self.text)
            if not self._fill():
                return
        self.at = end + 1

    def _list(self, of: Wrapping, columns: tuple[str, ...], depth: int) -> Iterator[Record]:
        self.at += 1
        while self._another():
            yield from self.records(of, columns, depth + 1)

    def _dictionary(self, of: Wrapping, depth: int) -> Iterator[Record]:
        """Small values are kept: they may have what holds for the records of a large one behind them."""
        self.at += 1
        fields: dict[str, Any] = {}
        size = 0
        while self._another():
            begins = self.text[self.at : self.at + 1]
            end = self._end()
            if begins != b'"' or end is None:
                self._give_up()
                break
            name, self.at = self._parsed(end), end
            if not self.more():
                self.cut = True
                break
            begun, end = self.at, self._end()
            if end is None:
                rows = columns_of(fields) if name in ("rows", "datarows") else ()
                yield from self.records(of.within(fields), rows, depth + 1)
                continue
            value, self.at = self._parsed(end), end
            size += end - begun
            if isinstance(name, str) and size < LARGEST:
                fields[name] = value
        yield from records_in(fields, of)

    def _another(self) -> bool:
        """Whether another entry begins; passes over the end of the list or the dictionary."""
        if not self.more():
            self.cut = True
            return False
        if self.text[self.at : self.at + 1] in (b"]", b"}"):
            self.at += 1
            return False
        return True

    def _parsed(self, end: int) -> Any:
        try:
            return json_text.parse(self.text[self.at : end])
        except ValueError:
            self.damaged += 1
            return None

    def _end(self) -> int | None:
        """Where the value ends; ``None`` if it is too large to be parsed as a whole, or cut."""
        if flat := _FLAT.match(self.text, self.at):
            return flat.end()
        scan, depth = self.at, 0
        while True:
            if depth == 0 and self.text[scan : scan + 1] not in (b'"', b"{", b"["):
                scalar = _SCALAR.match(self.text, scan)
                if scalar is None:
                    return scan + 1
                if scalar.end() < len(self.text) or len(scalar[0]) >= LONGEST_SCALAR:
                    return scalar.end()
            else:
                scan, depth, ended = self._scanned(scan, depth)
                if ended:
                    return scan
            if len(self.text) - self.at > LARGEST:
                return None
            scan -= self.at
            if not self._fill():
                return len(self.text) if depth == 0 and self.text[:1] not in b'"{[' else None

    def _scanned(self, scan: int, depth: int) -> tuple[int, int, bool]:
        """From ``scan`` on: where to go on, how deep that is, and whether the value ends there."""
        for token in _TOKEN.finditer(self.text, scan):
            if token[0][:1] == b'"':
                if not token["end"]:
                    return token.start(), depth, False
            else:
                depth += 1 if token[0] in b"[{" else -1
            if depth <= 0:
                return token.end(), 0, True
        return len(self.text), depth, False

    def _pass_over(self) -> None:
        """A text that is too large: up to its closing quote, so that nothing in it is read as a document."""
        self.damaged += 1
        self.at += 1
        while True:
            inside = _INSIDE.match(self.text, self.at)
            self.at = inside.end() if inside else self.at
            if self.text[self.at : self.at + 1] == b'"':
                self.at += 1
                return
            if not self._fill():
                self._give_up()
                return

    def _give_up(self) -> None:
        self.cut = True
        self.pieces, self.text, self.at = iter(()), b"", 0

    def _fill(self) -> bool:
        """More of the text, at least as much again as is held: so a value is looked at a few times only."""
        held = self.text[self.at :]
        wanted, got, size = max(_AT_ONCE, len(held)), [held], 0
        while size < wanted and (piece := next(self.pieces, b"")):
            got.append(piece)
            size += len(piece)
        self.text, self.at = b"".join(got), 0
        return size > 0


def _documents(pieces: Iterable[bytes], note: Note) -> Iterator[Wrapped]:
    values, number = _Values(iter(pieces)), 0
    while values.more():
        if values.text[values.at : values.at + 1] not in b'{["':
            values.pass_over_line()
            continue
        for record in values.records(Wrapping()):
            number += 1
            yield from ((number, line, other) for line, other in lines_of(record))
    if values.damaged or values.cut:
        note(number + 1, "the end is missing" if values.cut else "no JSON")
