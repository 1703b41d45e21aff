"""A diagnosis for people and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import counted, printable
from rollout.kubelet.diagnosis.diagnosis import Diagnosis
from rollout.kubelet.diagnosis.finding import Finding, time_text
from rollout.kubelet.diagnosis.pod_timelines import Timeline, timeline_lines

_WIDTH = 118
_LONGEST = 220


def diagnosis_document(found: Diagnosis) -> dict[str, Any]:
    """``notRead`` is there when nodes or an API server were read, ``timelines`` when a pod was asked for."""
    document: dict[str, Any] = {
        "findings": [_finding(each) for each in found.findings],
        "unreadLines": found.unread_lines,
    }
    if found.not_read is not None:
        document["notRead"] = [
            {"what": each.what, "nodes": each.nodeset, "why": each.why, "fetchNext": each.fetch_next}
            for each in found.not_read
        ]
    if found.timelines is not None:
        document["timelines"] = [_timeline(each) for each in found.timelines]
    return document


def _timeline(each: Timeline) -> dict[str, Any]:
    steps = [{"at": time_text(step.at), "seconds": round(step.seconds, 1), "what": step.what} for step in each.steps]
    return {"pod": each.pod, "node": each.node, "steps": steps}


def _finding(each: Finding) -> dict[str, Any]:
    """The risk is a comment behind the command, so that the proposal can be pasted into a shell."""
    proposal = f"{each.proposal}  # risk: {each.risk}" if each.proposal and each.risk else each.proposal
    return {
        "id": each.id,
        "confidence": each.confidence.value,
        "nodes": each.nodeset,
        "since": each.since,
        "evidence": [
            {"file": line.file, "line": line.line, "text": without_secrets(line.text)} for line in each.evidence
        ],
        "cause": without_secrets(each.cause),
        "proposal": proposal,
        "fetchNext": each.fetch_next,
    }


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
    yield from _read(found)


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


def _read(found: Diagnosis) -> Iterator[str]:
    for note in found.notes:
        yield printable(f"note: {note}", _LONGEST)
    for reading in found.readings:
        yield printable(
            f"read: {reading.file}: {counted(reading.read, reading.unit)}, {counted(reading.unread.lines, 'unreadable line')}",
            _LONGEST,
        )
        for note in reading.notes:
            yield f"  note: {printable(note, _LONGEST)}"
        for where in reading.unread.examples:
            yield "  unreadable: " + printable(f"{where.file}:{where.line}: {without_secrets(where.text)}", _LONGEST)
