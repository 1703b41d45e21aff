"""A diagnosis for people and as a document."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import counted, printable
from rollout.features.diagnose.rules.diagnosis import Diagnosis
from rollout.features.diagnose.rules.facts import SourceLine, without_secrets_in
from rollout.features.diagnose.rules.finding import Confidence, Finding, time_text
from rollout.features.diagnose.rules.pod_timelines import PodTimeline, timeline_lines

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
class NotReadPart:
    """``nodes`` is a nodeset; ``""``: it is not of one node."""

    what: str
    nodes: str
    why: str
    fetch_next: str


@dataclass(frozen=True, slots=True)
class PodStepPart:
    """``at`` is a time, or an age where a table of events has ages only. ``seconds``: since the first step."""

    at: str
    seconds: float
    what: str


@dataclass(frozen=True, slots=True)
class TimelinePart:
    """The end of one pod. ``node``: ``""`` if no line names it."""

    pod: str
    node: str
    steps: tuple[PodStepPart, ...]


@dataclass(frozen=True, slots=True)
class DiagnosisDocument:
    """What logs, events and nodes show, the surest first.

    ``not_read`` is ``None`` if no nodes and no API server were read, ``timelines`` if no pod was asked for.
    """

    findings: tuple[FindingPart, ...]
    unread_lines: int
    not_read: tuple[NotReadPart, ...] | None
    timelines: tuple[TimelinePart, ...] | None


def diagnosis_document(found: Diagnosis) -> DiagnosisDocument:
    return DiagnosisDocument(
        findings=tuple(
            FindingPart(
                id=each.id,
                confidence=each.confidence,
                nodes=each.nodeset,
                since=each.since,
                evidence=without_secrets_in(each.evidence),
                cause=without_secrets(each.cause),
                proposal=f"{each.proposal}  # risk: {each.risk}" if each.proposal and each.risk else each.proposal,
                fetch_next=each.fetch_next,
            )
            for each in found.findings
        ),
        unread_lines=found.unread_lines,
        not_read=None
        if found.not_read is None
        else tuple(NotReadPart(each.what, each.nodeset, each.why, each.fetch_next) for each in found.not_read),
        timelines=None if found.timelines is None else tuple(_timeline(each) for each in found.timelines),
    )


def _timeline(each: PodTimeline) -> TimelinePart:
    steps = (PodStepPart(time_text(step.at), round(step.seconds, 1), step.what) for step in each.steps)
    return TimelinePart(each.pod, each.node, tuple(steps))


def diagnosis_lines(found: Diagnosis) -> Iterator[str]:
    if not found.findings:
        yield "No finding."
    for each in found.findings:
        yield from _lines(each)
        yield ""
    for timeline in found.timelines or ():
        yield from timeline_lines(timeline)
        yield ""
    for missing in found.not_read or ():
        where = f" of {missing.nodeset} ({counted(len(missing.nodes), 'node')})" if missing.nodes else ""
        yield printable(f"not read: {missing.what}{where}: {missing.why}", _LONGEST)
        yield from _paragraph("next", missing.fetch_next)
    for note in found.notes:
        yield printable(f"note: {note}", _LONGEST)
    for reading in found.readings:
        yield printable(
            f"read: {reading.file}: {counted(reading.read, reading.unit)}, {counted(reading.unread.lines, 'unreadable line')}",
            _LONGEST,
        )
        for note in reading.notes:
            yield f"  note: {printable(note, _LONGEST)}"
        for unread in reading.unread.examples:
            yield "  unreadable: " + printable(f"{unread.file}:{unread.line}: {without_secrets(unread.text)}", _LONGEST)


def _lines(each: Finding) -> Iterator[str]:
    where = f" on {each.nodeset}" if each.nodes else ""
    when = f", since {each.since}" if each.since else ""
    yield printable(f"{each.id}  {each.confidence.value}{where}{when}", _LONGEST)
    yield from _paragraph("cause", without_secrets(each.cause))
    for line in each.timeline:
        yield f"    {printable(line, _LONGEST)}"
    for where_ in each.evidence:
        yield f"  {printable(f'{where_.file}:{where_.line}: {without_secrets(where_.text)}', _LONGEST)}"
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
