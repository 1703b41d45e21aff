"""A diagnosis as one self-contained page: each finding with its evidence, and the end of a pod as a timeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rollout.core.presentation.pages.markup import Html, tag
from rollout.core.presentation.pages.page import self_contained
from rollout.core.text.redaction import without_secrets
from rollout.core.text.terminal import counted, printable
from rollout.features.diagnose.rules.diagnosis import Diagnosis
from rollout.features.diagnose.rules.finding import Confidence, Finding, clock_text
from rollout.features.diagnose.rules.pod_timelines import PodTimeline

_LONGEST = 4000
_BANNERS = {Confidence.CERTAIN: "bad", Confidence.LIKELY: "warn", Confidence.UNKNOWN: ""}


def diagnosis_page(found: Diagnosis, cluster: str = "") -> str:
    title = f"Diagnosis of {cluster}" if cluster else "Diagnosis"
    return self_contained(title, tag("h1", title), *_sections(found))


def _sections(found: Diagnosis) -> Iterator[Html]:
    yield tag("p", counted(len(found.findings), "finding") if found.findings else "No finding.")
    for each in found.findings:
        yield tag("section", tag("h2", each.id), *_finding(each))
    for timeline in found.timelines or ():
        yield tag("section", tag("h2", f"End of pod {timeline.pod}"), *_pod(timeline))
    yield tag("section", tag("h2", "What was read"), tag("ul", (tag("li", _plain(line)) for line in _read(found))))


def _finding(each: Finding) -> Iterator[Html]:
    where = f" on {each.nodeset}" if each.nodeset else ""
    when = f", since {each.since}" if each.since else ""
    said = tag("p", f"{each.confidence.value}{where}{when}", class_="dim")
    yield tag("div", said, tag("p", _plain(each.cause)), class_=f"banner {_BANNERS[each.confidence]}".strip())
    if each.timeline:
        yield _steps(_parted(each.timeline))
    if each.evidence:
        yield tag("pre", "\n".join(_plain(f"{line.file}:{line.line}: {line.text}") for line in each.evidence))
    if each.proposal:
        yield tag("p", "The fix:")
        yield tag("pre", _plain(each.proposal))
        yield tag("p", f"Its risk: {_plain(each.risk)}")
    if each.fetch_next:
        yield tag("p", f"Next: {_plain(each.fetch_next)}")


def _pod(timeline: PodTimeline) -> Iterator[Html]:
    if timeline.node:
        yield tag("p", f"on {timeline.node}", class_="dim")
    yield _steps((clock_text(step.at), f"{step.seconds:+.1f}", step.what) for step in timeline.steps)


def _parted(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Clock, seconds and words of each line of a finding's timeline."""
    for line in lines:
        times, _, what = line.partition(" s  ")
        clock, _, seconds = times.partition("  ")
        yield clock, seconds.strip(), what


def _steps(steps: Iterable[tuple[str, str, str]]) -> Html:
    """``+3.1 s``, then what happened and when."""
    return tag(
        "ol",
        (
            tag("li", tag("time", f"{seconds} s"), tag("span", f"{_plain(what)} ({clock})"))
            for clock, seconds, what in steps
        ),
        class_="story",
    )


def _read(found: Diagnosis) -> Iterator[str]:
    for reading in found.readings:
        notes = "".join(f"; {note}" for note in reading.notes)
        yield f"{reading.file}: {counted(reading.read, reading.unit)}, {counted(reading.unread.lines, 'unreadable line')}{notes}"
    yield from found.notes
    for missing in found.not_read or ():
        where = f" of {missing.nodeset}" if missing.nodes else ""
        yield f"not read: {missing.what}{where}: {missing.why}. Next: {missing.fetch_next}"


def _plain(text: str) -> str:
    return printable(without_secrets(text), _LONGEST)
