"""A diagnosis for people and as a document."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from rollout.core.text.documents import Inline, PrintedKey, Shown
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import counted, printable
from rollout.features.diagnose.rules.diagnosis import Diagnosis, NotRead
from rollout.features.diagnose.rules.facts import without_secrets_in
from rollout.features.diagnose.rules.finding import Finding, time_text
from rollout.features.diagnose.rules.pod_timelines import PodStep, PodTimeline, timeline_lines

_WIDTH = 118
_LONGEST = 220


def _proposal(finding: Finding) -> str:
    return f"{finding.proposal}  # risk: {finding.risk}" if finding.proposal and finding.risk else finding.proposal


_FINDING = Shown(
    "``nodes`` is a nodeset. The risk is a comment behind the command, so that the proposal can be pasted into a shell.",
    (
        "id", "confidence", PrintedKey("nodeset", "nodes"), "since", PrintedKey("evidence", write=without_secrets_in),
        PrintedKey("cause", write=without_secrets), PrintedKey("", "proposal", write=_proposal), "fetch_next",
    ),
)  # fmt: skip

_NOT_READ = Shown(
    '``nodes`` is a nodeset; ``""``: it is not of one node.',
    ("what", PrintedKey("nodeset", "nodes"), "why", "fetch_next"),
)


def _tenths(seconds: float) -> float:
    return round(seconds, 1)


_STEP = Shown(
    "``at`` is a time, or an age where a table of events has ages only. ``seconds``: since the first step.",
    (PrintedKey("at", write=time_text), PrintedKey("seconds", write=_tenths), "what"),
)
_TIMELINE = Shown(
    'The end of one pod. ``node``: ``""`` if no line names it.',
    ("pod", "node", PrintedKey("steps", kind=tuple[Annotated[PodStep, _STEP], ...])),
)
_DIAGNOSIS = Shown(
    "",
    (
        PrintedKey("findings", kind=tuple[Annotated[Finding, _FINDING], ...]), "unread_lines",
        PrintedKey("not_read", kind=tuple[Annotated[NotRead, _NOT_READ], ...] | None),
        PrintedKey("timelines", kind=tuple[Annotated[PodTimeline, _TIMELINE], ...] | None),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DiagnosisDocument:
    """What logs, events and nodes show, the surest first.

    ``not_read`` is ``None`` if no nodes and no API server were read, ``timelines`` if no pod was asked for.
    """

    diagnosis: Inline[Annotated[Diagnosis, _DIAGNOSIS]]


def diagnosis_lines(diagnosis: Diagnosis) -> Iterator[str]:
    if not diagnosis.findings:
        yield "No finding."
    for finding in diagnosis.findings:
        yield from _lines(finding)
        yield ""
    for timeline in diagnosis.timelines or ():
        yield from timeline_lines(timeline)
        yield ""
    for missing in diagnosis.not_read or ():
        where = f" of {missing.nodeset} ({counted(len(missing.nodes), 'node')})" if missing.nodes else ""
        yield printable(f"not read: {missing.what}{where}: {missing.why}", _LONGEST)
        yield from _paragraph("next", missing.fetch_next)
    for note in diagnosis.notes:
        yield printable(f"note: {note}", _LONGEST)
    for reading in diagnosis.readings:
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
