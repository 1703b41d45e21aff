"""Labelled inputs: what a log or a list of events shows, with its source. The files beside this one have them.

A case begins with ``=== id`` and has keys, then files behind ``--- name``; ``--- @name`` is a recorded file, and
``--- @name 10-20`` its lines from 10 to before 20. The keys:

``kind``     pulls, queues, ends, starts, volumes, runtimes or healthy
``source``   where the right answer is from: an issue, a source, a recording
``shows``    ``id [or id] [at most GRADE] | words | words``: a finding that must be there. Words are in its cause or its other
             texts; ``a; b`` needs one of both. A case without it must have no finding.
``also``     an id that may be there too
``never``    ``words; words``: no text of a finding contains them
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rollout.features.diagnose.rules.diagnosis import Diagnosis, diagnosed
from rollout.features.diagnose.rules.facts import Facts
from rollout.features.diagnose.rules.finding import Confidence, Finding, ProposalTarget
from rollout.features.diagnose.rules.reading import FileReading

HERE = Path(__file__).parent
RECORDED = HERE.parent / "rules" / "recorded"
LATEST = datetime(2026, 12, 31, tzinfo=UTC)
"""When the files were last changed."""
GRADES = list(Confidence)


@dataclass(frozen=True)
class Shown:
    """A finding that must be there: one of ``ids``, not surer than ``at_most``, and with each of ``words``."""

    ids: tuple[str, ...]
    at_most: Confidence
    words: tuple[tuple[str, ...], ...]

    def is_right(self, finding: Finding) -> bool:
        text = text_of(finding)
        known = all(any(word in text for word in either) for either in self.words)
        return finding.id in self.ids and known and GRADES.index(finding.confidence) >= GRADES.index(self.at_most)


@dataclass
class Labelled:
    id: str
    kind: str = ""
    source: str = ""
    shows: list[Shown] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    never: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    def diagnosis(self) -> Diagnosis:
        facts, readings = Facts(), []
        for name, data in self.files.items():
            reading = FileReading(name)
            for fact in reading.of(iter(data.splitlines(keepends=True)), LATEST):
                facts.add(fact)
            readings.append(reading)
        return diagnosed(facts, ProposalTarget(), readings)


@dataclass(frozen=True)
class Graded:
    """The answer to one case. ``right`` and ``wrong``: findings; ``silent``: what should have been found."""

    case: Labelled
    right: tuple[Finding, ...]
    wrong: tuple[Finding, ...]
    silent: tuple[Shown, ...]

    @property
    def good(self) -> bool:
        return not self.wrong and not self.silent


def graded(case: Labelled) -> Graded:
    findings = case.diagnosis().findings
    right: list[Finding] = []
    wrong: list[Finding] = []
    for finding in findings:
        allowed = finding.id in case.also or any(shown.is_right(finding) for shown in case.shows)
        (right if allowed and not any(word in text_of(finding) for word in case.never) else wrong).append(finding)
    silent = [shown for shown in case.shows if not any(finding.id in shown.ids for finding in findings)]
    return Graded(case, tuple(right), tuple(wrong), tuple(silent))


def text_of(finding: Finding) -> str:
    return " ".join((finding.cause, finding.proposal, finding.fetch_next, *finding.timeline))


def cases() -> Iterator[Labelled]:
    for file in sorted(HERE.glob("*.txt")):
        yield from read(file.read_text(encoding="utf-8").splitlines(keepends=True))


def read(lines: Iterable[str]) -> Iterator[Labelled]:
    case: Labelled | None = None
    file = ""
    for line in lines:
        if line.startswith("=== "):
            if case is not None:
                yield case
            case, file = Labelled(line[4:].strip()), ""
        elif case is None:
            continue
        elif line.startswith("--- @"):
            name, _, part = line[5:].strip().partition(" ")
            case.files[name] = _recorded(name, part)
            file = ""
        elif line.startswith("--- "):
            file = line[4:].strip()
            case.files[file] = b""
        elif file:
            case.files[file] += line.encode()
        elif line.strip():
            _key(case, *(part.strip() for part in line.split(":", 1)))
    if case is not None:
        yield case


def _key(case: Labelled, key: str, value: str) -> None:
    if key == "shows":
        ids, *words = (part.strip() for part in value.split("|"))
        names, _, grade = ids.partition(" at most ")
        either = tuple(tuple(word.strip() for word in each.split(";")) for each in words)
        case.shows.append(Shown(tuple(names.split(" or ")), Confidence(grade or "certain"), either))
    elif key == "also":
        case.also.append(value)
    elif key == "never":
        case.never += [word.strip() for word in value.split(";")]
    else:
        setattr(case, key, value)


def _recorded(name: str, part: str) -> bytes:
    content = (RECORDED / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    first, _, last = part.partition("-")
    return b"".join(content.splitlines(keepends=True)[int(first) : int(last)]) if part else content
