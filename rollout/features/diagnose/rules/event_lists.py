"""Events and pods as ``kubectl`` prints them in JSON and YAML documents."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from rollout.core.text.terminal import printable
from rollout.core.text.yaml_source import read_yaml
from rollout.features.diagnose.rules.facts import API_CLOCK, LONGEST_TEXT, MOST_FACTS, Fact, Kind, SourceLine
from rollout.features.diagnose.rules.messages import container_of
from rollout.features.diagnose.rules.moments import moment
from rollout.features.diagnose.rules.node_status import is_node, node_facts
from rollout.features.diagnose.rules.pod_events import event_found, shows_something
from rollout.features.diagnose.rules.pod_status import pod_facts
from rollout.features.diagnose.rules.sieve import UnreadLines

Document = Mapping[str, Any]

_LIST = re.compile(r'\{(?:[^{}\[\]]|\{[^{}]*\})*"items"\s*:\s*\[')
_DECODER = json.JSONDecoder()
_BLOCK = 64 * 1024
_AT_ONCE = 64
_LARGEST = 4 * 1024 * 1024
"""Characters of one event that are read; a longer one is damaged."""
_OF_A_POD = re.compile(r"^ {0,4}(?:deletionTimestamp|containerStatuses): ?", re.MULTILINE)
_REASON = re.compile(r"^(?:- |  )?reason: (\w+)$", re.MULTILINE)
_CUT = "@ cut:"
_BLANK = re.compile(r"[\s,\]}]*")


@dataclass(slots=True)
class DocumentReader:
    """Events of a JSON or YAML document, one at a time: a long list needs no more memory than a short one.

    ``latest``: the file was not changed after it, so nothing of it was printed later.
    """

    file: str
    latest: float | None = None
    unread: UnreadLines = field(default_factory=UnreadLines)
    read: int = 0
    left_out: int = 0

    def json(self, pieces: Iterable[bytes]) -> Iterator[Fact]:
        """The events of lists and of single documents, one behind the other. A cut end is one unread line."""
        text = ""
        for block in _blocks(pieces):
            text, at = text + block, 0
            while (end := (yield from self._next(text, at))) is not None:
                at = end
            text = text[at:]
            if len(text) > _LARGEST:
                break
        # What is behind the last whole event: the end of the list, or of an event that was cut.
        rest = text[_end(_BLANK, text, 0) :]
        if rest and not rest.startswith(('"kind"', '"metadata"', '"apiVersion"')):
            self.unread = self.unread.and_(self.file, self.read + 1, f"cut: {printable(rest, 100)}")

    def _next(self, text: str, at: int) -> Generator[Fact, None, int | None]:
        """The first event from ``at`` on; returns where the rest begins, ``None`` if no whole event is there."""
        start = _end(_BLANK, text, at)
        if opening := _LIST.match(text, start):
            return opening.end()
        try:
            event, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            return None
        if not isinstance(event, dict):  # a key of the list itself, behind its items
            return None
        self.read += 1
        if isinstance(event, dict):
            yield from self._printed(_facts(event, self.file, self.read))
        return end

    def yaml(self, pieces: Iterable[bytes]) -> Iterator[Fact]:
        """The items of a list, or the documents between ``---``. YAML is slow: of each reason the newest events are read."""
        newest: dict[str, deque[tuple[int, str]]] = {}
        for number, text in enumerate(_yaml_events(pieces), 1):
            match = _REASON.search(text)
            reason = match[1] if match else ""
            if shows_something(reason) or not reason:
                kept = newest.setdefault(reason, deque(maxlen=MOST_FACTS))
                self.left_out += len(kept) == MOST_FACTS
                kept.append((number, text))
            else:
                self.read += 1
        for number, text in sorted(chain(*newest.values())):
            yield from self._yaml_event(number, text)
        self.read += self.left_out

    def _yaml_event(self, number: int, text: str) -> Iterator[Fact]:
        document = read_yaml(f"  {text[2:]}" if text.startswith("- ") else text, self.file)
        if document.root is None or document.problems or not isinstance(event := document.root.plain(), dict):
            self.unread = self.unread.and_(self.file, number, text)
            return
        self.read += 1
        yield from self._printed(_facts(event, self.file, number))

    def _printed(self, facts: Iterator[Fact]) -> Iterator[Fact]:
        """A pod that is being deleted says nothing of the time at which it was printed: the file does."""
        for fact in facts:
            known = fact.kind is Kind.ACCEPTED and self.latest is not None
            yield replace(fact, fields={**fact.fields, "printed": str(self.latest)}) if known else fact


def _yaml_events(pieces: Iterable[bytes]) -> Iterator[str]:
    """The text of each item or document that has a reason, and of each pod that the API deletes or that has containers."""
    block: list[bytes] = []
    for line in pieces:
        if line.startswith((b"- ", b"---")) or (block and line[:1] not in b" -\n" and block[0][:1] == b"-"):
            yield from _with_reason(block)
            block = [] if line.startswith(b"---") else [line]
        elif block or line.startswith((b"apiVersion", b"kind: Event", b"kind: Node")):
            block.append(line)
        if line.startswith(b"items:"):
            block = []
    yield from _with_reason(block, last=True)


def _with_reason(block: Sequence[bytes], *, last: bool = False) -> Iterator[str]:
    """What may show something: with a reason, or a pod. The last item of a file that is cut lacks its reason: it is given as text that is no YAML."""
    text = b"".join(block).decode("utf-8", "replace")
    if "reason:" in text or _OF_A_POD.search(text):
        yield text
    elif last and text.startswith("- ") and "involvedObject:" in text:
        yield f"- {_CUT} {text}"


def _blocks(pieces: Iterable[bytes]) -> Iterator[str]:
    """The same text in fewer pieces: each is decoded from the beginning of an event."""
    pieces, held, size = iter(pieces), [], 0
    while some := b"".join(islice(pieces, _AT_ONCE)):
        held.append(some)
        size += len(some)
        if size >= _BLOCK:
            yield b"".join(held).decode("utf-8", "replace")
            held, size = [], 0
    yield b"".join(held).decode("utf-8", "replace")


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _facts(document: Document, file: str, number: int) -> Iterator[Fact]:
    """Of an event, a pod or a node, also as a watch wraps them. The items of a list of the API itself have no kind."""
    if "type" in document and isinstance(inner := document.get("object"), dict):
        document = inner
    if is_node(document):
        return node_facts(document, file, number)
    is_pod = document.get("kind") == "Pod" or ("kind" not in document and {"spec", "status"} <= set(document))
    return (pod_facts if is_pod else event_facts)(document, file, number)


def event_facts(document: Document, file: str, number: int) -> Iterator[Fact]:
    """The facts of an Event of v1 or events.k8s.io/v1: one of its first time, and one of its last if that is another."""
    about = _map(document.get("involvedObject")) or _map(document.get("regarding"))
    kind, name = _str(about, "kind"), _str(about, "name")
    pod = f"{_str(about, 'namespace')}/{name}"
    reason, message = _str(document, "reason"), _str(document, "message") or _str(document, "note")
    source = _map(document.get("source")) or _map(document.get("deprecatedSource"))
    node = _str(source, "host") or _str(document, "reportingInstance")
    series = _map(document.get("series"))
    times = document.get("count") or series.get("count") or document.get("deprecatedCount") or 1
    first = _first(document, "firstTimestamp", "eventTime", "deprecatedFirstTimestamp")
    last = (
        moment(_str(series, "lastObservedTime"))
        or _first(document, "lastTimestamp", "deprecatedLastTimestamp")
        or first
    )
    text = printable(f"{_str(document, 'lastTimestamp')} {reason} {kind} {pod}: {message}".strip(), LONGEST_TEXT)
    count = times if isinstance(times, int) else 1
    for found in event_found(kind, pod, container_of(_str(about, "fieldPath")), reason, message):
        for at in dict.fromkeys((first if first is not None else last, last)):
            yield Fact(
                found.kind,
                at,
                found.fields.get("node", "") or node,
                API_CLOCK,
                SourceLine(file, number, text),
                found.fields,
                count,
            )


def _first(document: Document, *names: str) -> float | None:
    return next((at for name in names if (at := moment(_str(document, name))) is not None), None)


def _map(value: object) -> Document:
    return value if isinstance(value, dict) else {}


def _str(document: Document, name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""
