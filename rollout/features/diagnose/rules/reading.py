"""Any file as facts: its form is found from its beginning, and a table may stand between the lines of a log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain

from rollout.features.diagnose.rules.event_lists import DocumentReader
from rollout.features.diagnose.rules.event_tables import TableReader
from rollout.features.diagnose.rules.facts import Fact
from rollout.features.diagnose.rules.log_lines import LogReader, newest_first
from rollout.features.diagnose.rules.long_errors import with_long_errors
from rollout.features.diagnose.rules.others_text import OthersText
from rollout.features.diagnose.rules.sieve import Sieve, UnreadLines, text_of
from rollout.features.diagnose.rules.wrapped_documents import Wrapped, reader_of
from rollout.features.diagnose.rules.wrapped_lines import AS_THEY_ARE, MAY_BE_WRAPPED, unwrapped

BOM = b"\xef\xbb\xbf"
"""What some programs write in front of UTF-8."""
PIECE = 64 * 1024
"""The most bytes of one piece of a file. A longer line comes in several pieces; of a log only the first is read."""

_JSON_LIST = re.compile(rb'\s*[{\[][^\x00]{0,4000}?"(?:items|apiVersion|involvedObject|regarding)"', re.DOTALL)
_MAY_BE_A_TABLE = re.compile(
    rb"\s*(?:Name:|LAST SEEN|FirstSeen\s|NAMESPACE|Type\s|(?:[\dydhms]+\s+){2}\d+\s+[{a-z]|Normal\s|Warning\s|(?:[a-z\d-]+\s+)?[\dydhms]+(?: \([^)]*\))?\s+(?:Normal|Warning)\s)"
)
_OF_A_LOG = (
    b'"ts"', b'"MESSAGE"', b'"__REALTIME', b'"textPayload"', b'"jsonPayload"', b'"_source"', b'"ingestionTime"', b'"resultType"',
    b'"@message"', b'"SyslogMessage"', b'"_raw"', b'"logRecords"',
)  # fmt: skip
_YAML_LIST = re.compile(rb"\s*(?:#[^\n]*\n|---\n)*(?:apiVersion|items|kind): ?")


@dataclass(slots=True)
class FileReading:
    """What was read of one file. ``left_out``: lines that matter and are older than those that were used. ``notes``: what a
    reader of the findings must know about it. ``unit``: what is counted. ``zone``: that of lines without one, in seconds, if it is known. ``last``: the last line of a log: what it shows has not happened until then.
    """

    file: str
    unread: UnreadLines = field(default_factory=UnreadLines)
    read: int = 0
    left_out: int = 0
    notes: tuple[str, ...] = ()
    blank: int = 0
    unit: str = "line"
    last: Fact | None = None
    zone: float | None = None
    _damaged: UnreadLines = field(default_factory=UnreadLines)

    def of(self, pieces: Iterator[bytes], latest: datetime) -> Iterator[Fact]:
        """The facts of a file, given as its lines in pieces of at most ``PIECE`` bytes."""
        first = list(_some(pieces))
        if first:
            first[0] = first[0].removeprefix(BOM)
        head = b"".join(first)[:8192]
        wrapped = reader_of(head)
        if b"\x00" in head and wrapped is None:
            wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
            self.notes = ("it is UTF-16: iconv -f UTF-16 -t UTF-8" if wide else "it is a binary file, not a log",)
            return
        everything = chain(first, pieces)
        if _JSON_LIST.match(head) and not any(mark in head for mark in _OF_A_LOG):
            yield from self._document(DocumentReader(self.file, latest.timestamp()), everything, in_json=True)
        elif _YAML_LIST.match(head):
            yield from self._document(DocumentReader(self.file, latest.timestamp()), everything, in_json=False)
        elif wrapped is not None:
            self.unit = "record"
            yield from self._log(wrapped(everything, self._note), latest)
        else:
            yield from self._log(_unwrapped(everything), latest)
        if not self.read - self.blank:
            self.notes = ("no line of it is of a form that is known",) if self.unread.lines else ("it is empty",)

    def take_in(self, other: FileReading) -> None:
        """Counts what was read of another file of the same node."""
        self.read += other.read
        self.left_out += other.left_out
        self.unread = self.unread.and_those(other.unread)

    def _document(self, reader: DocumentReader, pieces: Iterable[bytes], *, in_json: bool) -> Iterator[Fact]:
        yield from reader.json(pieces) if in_json else reader.yaml(pieces)
        self.unread, self.read, self.left_out = reader.unread, reader.read, reader.left_out
        if reader.unread.lines and in_json:
            self.notes = (f"its end is missing; {reader.read} whole events of it were read",)

    def _note(self, number: int, why: str) -> None:
        """Of a document: what cannot be read."""
        self._damaged = self._damaged.and_(self.file, number, why)

    def _log(self, lines: Iterable[Wrapped], latest: datetime) -> Iterator[Fact]:
        sieve, table, rows, others = Sieve(self.file, latest, zone=self.zone), TableReader(self.file), 0, OthersText()
        sieve.backwards = newest_first
        for number, line, of_container in with_long_errors(lines):
            of_others = others.take(number, line)
            if of_container:
                of_others = True
                others.add(number)
            if (table.inside or _MAY_BE_A_TABLE.match(line)) and (
                facts := table.line(number, text_of(line))
            ) is not None:
                rows += 1
                yield from facts
                continue
            if line.isspace():
                self.blank += 1
            sieve.take(number, line, of_others=of_others)
        reader = LogReader(self.file, sieve.zone or 0.0)
        for number, midnight, line in sieve.kept():
            of_others = others.holds(number) or (sieve.newest_first and others.may_be_ahead_of(number, line))
            for fact in reader.line(number, midnight, line):
                yield replace(fact, of_others=True) if of_others else fact
        if (overlap := reader.overlap()) is not None:
            yield overlap
        self.last = _last(self.file, sieve)
        if reader.years and not sieve.year:
            told = " and ".join(map(str, sorted(reader.years)))
            self.notes = (f"its lines have no year: {told} is by the time of the file",)
        self.unread = sieve.unread.and_those(reader.unread).and_those(self._damaged)
        self.left_out = sieve.left_out
        self.read = sieve.read + rows - reader.unread.lines


def _last(file: str, sieve: Sieve) -> Fact | None:
    """The newest line of a known form, if it has a time."""
    newest = sieve.newest()
    if newest is None:
        return None
    reader = LogReader(file, sieve.zone or 0.0)
    for _ in reader.line(*newest):
        pass
    return reader.latest if reader.latest is not None and reader.latest.at is not None else None


def _some(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The first pieces, until they show what the file is."""
    size = 0
    for piece in pieces:
        yield piece
        size += len(piece)
        if size >= 4096:
            return


def _unwrapped(pieces: Iterable[bytes]) -> Iterator[Wrapped]:
    """The lines of a log; most of them have no wrapper, and that is seen by their first byte."""
    for number, line in _lines(pieces):
        if line[0] in AS_THEY_ARE or MAY_BE_WRAPPED.match(line) is None:
            yield number, line, False
        else:
            for inner, of_container in unwrapped(line):
                yield number, inner, of_container


def _lines(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Numbered lines; the pieces of an overlong line after its first are dropped."""
    number, whole = 0, True
    for piece in pieces:
        if whole:
            number += 1
            yield number, piece
        whole = piece.endswith(b"\n")
