"""The third picture: the gates' results over time. The sign shows the verdict, the line shows the number if there is one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from rollout.core.model.verdict import Verdict
from rollout.core.presentation.pages.markup import LEFT, RIGHT, WIDTH, Axis, Html, Idle, clock, picture, raw, tag
from rollout.core.presentation.pages.story import Judged, Story
from rollout.core.text.terminal import counted, printable

# The number in a gate's evidence, if it has one, and what it was compared with.


_NUMBER = r"([-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,4})?)(?![\w.])"
_MEDIAN = re.compile(rf"(?:^|[ ,]){_NUMBER} \(median of \d")
_RANGE = re.compile(rf"{_NUMBER} to {_NUMBER}; (?:at (most|least) {_NUMBER})?")
_BEYOND = re.compile(rf"beyond: (?:\{{[^}}]*\}} )?{_NUMBER}.*at (?:most|least) {_NUMBER}")

_MOST = 2000
"""Characters of evidence that are read: each beginning of a number is compared with all that follows it."""


@dataclass(frozen=True, slots=True)
class Number:
    """``against`` is the control group's median or the threshold; ``None`` if the evidence has neither."""

    value: float
    against: float | None


def number_in(evidence: str) -> Number | None:
    """The number that a query measured; ``None`` if its evidence has none."""
    evidence = evidence[:_MOST]
    medians = [float(match[1]) for match in islice(_MEDIAN.finditer(evidence), 2)]
    if len(medians) == 2:
        return Number(*medians)
    if match := _BEYOND.search(evidence):
        return Number(float(match[1]), float(match[2]))
    if match := _RANGE.search(evidence):
        value = float(match[1] if match[3] == "least" else match[2])
        return Number(value, float(match[4]) if match[4] else None)
    return None


ROW = 46.0
TOP = 14.0
BINS = 160
SIGN = 17.0
"""Columns of a sign."""

_DIGITS = re.compile(r"[\d.]+")

NODES_ROW = "nodes' own gates"
_SIGNS = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.UNKNOWN: "?"}


def gates(story: Story, idle: tuple[Idle, ...] = ()) -> Html | None:
    """A row for each wave gate and one for all nodes' own gates; ``None`` when nothing was measured. ``idle``: folded."""
    axis = Axis(story.began, story.ended, idle)
    rows = by_gate(story)
    if not rows and not story.measured:
        return None
    titles = [*rows, *([NODES_ROW] if story.measured else [])]
    bottom = TOP + len(titles) * ROW
    drawn = [_row(axis, title, rows[title], TOP + at * ROW) for at, title in enumerate(rows)]
    if story.measured:
        drawn.append(_nodes(story, axis, bottom - ROW))
    label = f"Results of {counted(len(titles), 'gate')} over time"
    return picture(bottom + 24, label, axis.draw(TOP, bottom), *drawn)


def by_gate(story: Story) -> dict[str, list[Judged]]:
    """Readings by gate, in the order in which gates were first checked."""
    rows: dict[str, list[Judged]] = {}
    for judged in story.judged:
        rows.setdefault(judged.reading.gate, []).append(judged)
    return rows


def _row(axis: Axis, title: str, found: list[Judged], top: float) -> Html:
    middle = top + ROW / 2
    began = axis.began
    return tag(
        "g",
        _frame(title, top),
        _plot(axis, found, top),
        [_sign(axis.x(judged.at), middle, judged, clock(judged.at - began)) for judged in _apart(axis, found)],
    )


def _apart(axis: Axis, found: list[Judged]) -> Iterator[Judged]:
    """The readings with signs that do not overprint. One that passed gives way; one that did not is drawn over all."""
    bad = [judged for judged in found if judged.reading.verdict is not Verdict.PASS]
    taken = [axis.x(judged.at) for judged in bad]
    for judged in found:
        x = axis.x(judged.at)
        if judged.reading.verdict is Verdict.PASS and all(abs(x - each) >= SIGN for each in taken):
            taken.append(x)
            yield judged
    yield from bad


def _frame(title: str, top: float) -> Html:
    name = tag("text", printable(title, 19), tag("title", title), x=LEFT - 10, y=top + ROW / 2 + 4, class_="lane")
    line = tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=top + ROW / 2, y2=top + ROW / 2, class_="grid")
    return Html(name + line)


def _sign(x: float, y: float, judged: Judged, when: str) -> Html:
    verdict = judged.reading.verdict
    words = f"{when} {judged.reading.gate}: {verdict}" + (
        f": {judged.reading.evidence}" if judged.reading.evidence else ""
    )
    shape = {
        Verdict.PASS: tag("circle", cx=x, cy=y, r=7, class_="v-pass"),
        Verdict.FAIL: tag("rect", x=x - 8, y=y - 8, width=16, height=16, class_="v-fail"),
        Verdict.UNKNOWN: tag("path", d=f"M{x:.1f},{y - 10:.1f}l10,10l-10,10l-10,-10Z", class_="v-unknown"),
    }[verdict]
    return tag("g", tag("title", words), shape, tag("text", _SIGNS[verdict], x=x, y=y + 4, class_="verdict"))


def _plot(axis: Axis, found: list[Judged], top: float) -> Html | None:
    """The measured numbers as a line and what they were compared with as a dashed line, on one scale."""
    points = [(axis.x(judged.at), number) for judged in found if (number := number_in(judged.reading.evidence))]
    if len(points) < 2:
        return None
    seen = [number.value for _, number in points] + [n.against for _, n in points if n.against is not None]
    low, high = min(seen), max(seen)
    scale = (ROW - 12) / ((high - low) or 1.0)

    def y(value: float) -> float:
        return top + ROW - 6 - (value - low) * scale

    line = " ".join(f"{x:.1f},{y(number.value):.1f}" for x, number in points)
    held = " ".join(f"{x:.1f},{y(number.against):.1f}" for x, number in points if number.against is not None)
    last = points[-1][1]
    text = f"{last.value:g}" + (f" vs {last.against:g}" if last.against is not None else "")
    return tag(
        "g",
        tag("polyline", points=raw(held), class_="against") if held else None,
        tag("polyline", points=raw(line), class_="measured"),
        tag("text", text, x=LEFT - 10, y=top + ROW / 2 + 17, class_="small"),
    )


def _nodes(story: Story, axis: Axis, top: float) -> Html:
    """How many nodes were measured in each short interval: passed upwards, failed or unknown downwards."""
    width = (WIDTH - LEFT - RIGHT) / BINS
    bins: Counter[tuple[int, Verdict]] = Counter()
    first: dict[int, float] = {}
    for measured in story.measured:
        number = min(BINS - 1, max(0, int((axis.x(measured.at) - LEFT) / width)))
        bins[number, measured.verdict] += 1
        first.setdefault(number, measured.at - axis.began)
    most = max(bins.values())
    bars = [
        _bar(clock(first[number]), number, verdict, count, most, width, top)
        for (number, verdict), count in sorted(bins.items())
    ]
    return tag("g", _frame(NODES_ROW, top), bars)


_TOLD = {Verdict.PASS: "passed", Verdict.FAIL: "failed", Verdict.UNKNOWN: "still unknown"}


def _bar(when: str, number: int, verdict: Verdict, count: int, most: int, width: float, top: float) -> Html:
    height = max(2.0, count / most * (ROW / 2 - 4))
    middle = top + ROW / 2
    title = tag("title", f"{when}: {counted(count, 'measurement')} {_TOLD[verdict]}")
    return tag(
        "rect", title, x=LEFT + number * width, y=middle - height if verdict is Verdict.PASS else middle, width=max(1.0, width - 0.5),
        height=height, class_=f"v-{verdict}",
    )  # fmt: skip


def evidence_rows(story: Story) -> Iterator[tuple[str, str, str, Verdict, str]]:
    """``(gate, wave, when, verdict, evidence)``, folded: texts that differ only in numbers are one row, which shows the last."""
    waves = story.past.order.waves
    for gate, found in by_gate(story).items():
        together: dict[tuple[int, Verdict, str], list[Judged]] = {}
        for judged in found:
            words = _DIGITS.sub("#", judged.reading.evidence)
            together.setdefault((judged.wave, judged.reading.verdict, words), []).append(judged)
        for (wave, verdict, _), same in together.items():
            first, last = clock(same[0].at - story.began), clock(same[-1].at - story.began)
            when = first if len(same) == 1 else f"{len(same)} × from {first} to {last}"
            yield gate, waves[wave].name, when, verdict, same[-1].reading.evidence
