"""Events as tables of ``kubectl``: of ``get events``, of ``describe``, and rows of them without their header.

Their times are ages: seconds before the table was printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rollout.core.text.terminal import printable
from rollout.features.diagnose.rules.facts import AGES, LONGEST_TEXT, Fact, SourceLine
from rollout.features.diagnose.rules.messages import container_of
from rollout.features.diagnose.rules.node_status import HEARTBEAT, described
from rollout.features.diagnose.rules.pod_events import event_found

_HEADER = re.compile(
    r"\s*(?:NAMESPACE\s+)?LAST SEEN\s.*(?:REASON|TYPE)\s|\s*FirstSeen\s+LastSeen\s+Count\s|\s*Type\s+Reason\s+Age\s+From\s+Message|\s*Type\s+Status\s+LastHeartbeatTime\s"
)
_COLUMN = re.compile(r"\S+(?: \S+)*")
_AGE = re.compile(r"(?P<last>[\dydhms]+)(?: \(x(?P<count>\d+) over (?P<first>[\dydhms]+)\))?")
_PART = re.compile(r"(\d{1,9})([ydhms])")
_UNITS = {"y": 365 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}
_DASHES = re.compile(r"[\s-]+")
_TYPES = ("Normal", "Warning")
_GAP = re.compile(r"\s{2,}|\t")
_OLD_SOURCE = re.compile(r"\{(\S+) (\S*) ?\}")
_SOURCE = re.compile(r"kubelet(?:, \S+)?|[a-z]+(?:-[a-z]+)+(?:, \S+)?")
_HEAD = re.compile(r"(Name|Namespace|Node):\s+(\S+)")


def is_header(line: str) -> bool:
    return _HEADER.match(line) is not None


@dataclass(slots=True)
class TableReader:
    """The rows of a file's tables. ``columns``: those of the last header, ``()`` outside of a table.

    ``about``: what the head of a ``describe`` says of its pod.
    """

    file: str
    columns: tuple[tuple[str, int], ...] = ()
    about: dict[str, str] = field(default_factory=dict)
    described: bool = False

    @property
    def inside(self) -> bool:
        return bool(self.columns) or self.described

    def line(self, number: int, line: str) -> list[Fact] | None:
        """The facts of a header, of a row or of the head of a ``describe``; ``None`` for a line of something else."""
        if is_header(line):
            self.described = False
            self.columns = tuple((found[0].casefold(), found.start()) for found in _COLUMN.finditer(line))
            return []
        if (row := self._row(number, line)) is not None:
            return row
        self.columns = ()
        return [] if self._head(line) else None

    def _head(self, line: str) -> bool:
        """Whether the line is of the head. It begins with the pod's name and its namespace."""
        match = _HEAD.match(line)
        if match and match[1] == "Name":
            self.about, self.described = {"Name": match[2]}, True
        elif match and self.described:
            self.about[match[1]] = match[2].partition("/")[0]
        elif (self.described and len(self.about) < 2) or not re.match(r"\s|[A-Z][\w -]*:|$", line):
            self.described = False
        return self.described

    def _row(self, number: int, line: str) -> list[Fact] | None:
        if self.columns and _DASHES.fullmatch(line):
            return [] if line.strip() else None
        if self.columns and self.columns[min(2, len(self.columns) - 1)][0] == HEARTBEAT:
            where = SourceLine(self.file, number, printable(line, LONGEST_TEXT))
            words = _GAP.split(line.strip())
            return list(described(words, self.about.get("Name", ""), where)) if line[:1] in " \t" else None
        cells = self._cells(line) if self.columns else {}
        if cells.get("type") not in _TYPES or not self._aligned(line):
            cells = _loose_cells(line) or cells
        if cells.get("type") not in _TYPES:
            return None
        age = _AGE.fullmatch(cells.get("last seen") or cells.get("age", ""))
        last = -_seconds(age["last"]) if age else None
        over = cells.get("first seen") or (age["first"] if age and age["first"] else "")
        first = -_seconds(over) if over and _AGE.fullmatch(over) else last
        count = cells.get("count") or (age["count"] if age else "") or "1"
        return list(self._facts(number, line, cells, (first, last), int(count) if count.isdecimal() else 1))

    def _facts(
        self, number: int, line: str, cells: Mapping[str, str], times: tuple[float | None, float | None], count: int
    ) -> Iterator[Fact]:
        kind, slash, name = cells.get("object", "").partition("/")
        name = name if slash else cells.get("name", "").partition(".")[0]
        kind = (kind if slash else cells.get("kind", "")) or "pod"
        pod = f"{cells.get('namespace', '')}/{name}" if name else self._described_pod()
        program, _, node = (cells.get("from") or cells.get("source", "")).partition(", ")
        node = node or ("" if name else self.about.get("Node", ""))
        container = container_of(cells.get("subobject", ""))
        where = SourceLine(self.file, number, printable(line, LONGEST_TEXT))
        for found in event_found(kind.capitalize(), pod, container, cells.get("reason", ""), cells.get("message", "")):
            node = found.fields.get("node", "") or (node if program == "kubelet" else "")
            fields = found.fields if name else {**found.fields, "described": "yes"}
            for at in dict.fromkeys(times):
                yield Fact(found.kind, at, node, f"{AGES}{self.file}", where, fields, count)

    def _described_pod(self) -> str:
        return f"{self.about.get('Namespace', '')}/{self.about['Name']}" if len(self.about) > 1 else ""

    def _aligned(self, line: str) -> bool:
        """Whether each cell begins below its column: a name that was replaced by hand moves those behind it."""
        return all(line[start - 1 : start].isspace() for _, start in self.columns if 0 < start < len(line))

    def _cells(self, line: str) -> dict[str, str]:
        ends = [start for _, start in self.columns[1:]] + [len(line)]
        return {name: line[start:end].strip() for (name, start), end in zip(self.columns, ends, strict=True)}


def _loose_cells(line: str) -> dict[str, str]:
    """The cells of a row without its header, by the blanks between them; ``{}`` if it is none. A cell may be missing."""
    if not any(each in line for each in _TYPES):
        return {}
    words = _GAP.split(line.strip())
    if words[0] in _TYPES and len(words) >= 5 and _AGE.fullmatch(words[2]):
        return dict(zip(("type", "reason", "age", "from", "message"), words, strict=False))
    if len(words) >= 7 and all(map(_AGE.fullmatch, words[:2])) and words[2].isdecimal():
        return _old_cells(words)
    namespace = "" if _AGE.fullmatch(words[0]) else words.pop(0)
    if len(words) < 5 or not _AGE.fullmatch(words[0]) or words[1] not in _TYPES or "/" not in words[3]:
        return {}
    age, kind, reason, about, *rest = words
    subobject = rest.pop(0) if rest[0].startswith("spec.") else ""
    source = rest.pop(0) if len(rest) > 1 and _SOURCE.fullmatch(rest[0]) else "kubelet"
    return {
        "namespace": namespace, "last seen": age, "type": kind, "reason": reason, "object": about, "subobject": subobject,
        "source": source, "message": rest[0] if rest else "",
    }  # fmt: skip


def _old_cells(words: list[str]) -> dict[str, str]:
    """Of ``kubectl`` up to 1.6: the first and the last time, the count and the source come first."""
    first, last, count, source, *rest = words
    old = _OLD_SOURCE.fullmatch(source)
    subobject = rest.pop(0) if rest[0] not in _TYPES else ""
    return {
        "first seen": first, "last seen": last, "count": count, "from": f"{old[1]}, {old[2]}" if old else source, "subobject": subobject,
        **dict(zip(("type", "reason", "message"), rest, strict=False)),
    }  # fmt: skip


def _seconds(age: str) -> float:
    """``3d4h`` in seconds."""
    return float(sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(age)))
