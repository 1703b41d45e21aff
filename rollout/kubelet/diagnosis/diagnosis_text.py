"""A diagnosis for people and as a document."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from rollout.core.text.terminal import counted, printable
from rollout.kubelet.diagnosis.diagnosis import Diagnosis
from rollout.kubelet.diagnosis.facts import SourceLine
from rollout.kubelet.diagnosis.finding import Confidence, Finding

_WIDTH = 118
_LONGEST = 220


@dataclass(frozen=True, slots=True)
class FindingPart:
    """``nodes`` is a nodeset. The risk is a comment behind the command, so that the proposal can be pasted into a shell."""

    id: str
    confidence: Confidence
    nodes: str
    since: str
    evidence: tuple[SourceLine, ...]
    cause: str
    proposal: str
    fetch_next: str


@dataclass(frozen=True, slots=True)
class DiagnosisDocument:
    """What logs, events and nodes show, the surest first."""

    findings: tuple[FindingPart, ...]
    unread_lines: int


def diagnosis_document(found: Diagnosis) -> DiagnosisDocument:
    return DiagnosisDocument(tuple(_finding(each) for each in found.findings), found.unread_lines)


def _finding(each: Finding) -> FindingPart:
    return FindingPart(
        id=each.id,
        confidence=each.confidence,
        nodes=each.nodeset,
        since=each.since,
        evidence=each.evidence,
        cause=each.cause,
        proposal=f"{each.proposal}  # risk: {each.risk}" if each.proposal and each.risk else each.proposal,
        fetch_next=each.fetch_next,
    )


def diagnosis_lines(found: Diagnosis) -> Iterator[str]:
    if not found.findings:
        yield "No finding."
    for each in found.findings:
        yield from _lines(each)
        yield ""
    yield from _read(found)


def _lines(each: Finding) -> Iterator[str]:
    where = f" on {each.nodeset}" if each.nodes else ""
    when = f", since {each.since}" if each.since else ""
    yield printable(f"{each.id}  {each.confidence.value}{where}{when}", _LONGEST)
    yield from _paragraph("cause", each.cause)
    for line in each.timeline:
        yield f"    {printable(line, _LONGEST)}"
    for where_ in each.evidence:
        yield f"  {printable(f'{where_.file}:{where_.line}: {where_.text}', _LONGEST)}"
    if each.proposal:
        yield f"  fix:   {printable(each.proposal, 2000)}"
        yield from _paragraph("risk", each.risk)
    if each.fetch_next:
        yield from _paragraph("next", each.fetch_next)


def _paragraph(word: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        printable(text, 4000), _WIDTH, initial_indent=f"  {word}:".ljust(9), subsequent_indent=" " * 9,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _read(found: Diagnosis) -> Iterator[str]:
    for note in found.notes:
        yield printable(f"note: {note}", _LONGEST)
    for reading in found.readings:
        yield printable(
            f"read: {reading.file}: {counted(reading.read, 'line')}, {counted(reading.unread.lines, 'unreadable line')}",
            _LONGEST,
        )
        for note in reading.notes:
            yield f"  note: {printable(note, _LONGEST)}"
        for where in reading.unread.examples:
            yield "  unreadable: " + printable(f"{where.file}:{where.line}: {where.text}", _LONGEST)
