"""The two pictures of the page: waves over time, and the nodes rack by rack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from rollout.core.model.inventory import NO_RACK
from rollout.core.presentation.pages.markup import LEFT, RIGHT, WIDTH, Axis, Html, Idle, clock, picture, raw, tag
from rollout.core.presentation.pages.story import Story, StorySpan, WaveSample
from rollout.core.presentation.summary_text import counts_text
from rollout.core.run.budgets import rack_words
from rollout.core.run.state import NodeRecord, Phase
from rollout.core.run.state import NodeState as S
from rollout.core.text.terminal import counted, printable, seconds_text

# Rack by rack: one square per node. A sign shows the state to people who cannot see colours.


SIDE = 15
STEP = 17
ACROSS = 10

SIGNS: dict[S, str] = {
    S.CONFIRMED: "",
    S.REVERTED: "↩",
    S.REVERTING: "◂",
    S.FAILED: "✗",
    S.REFUSED: "!",
    S.UNREACHABLE: "?",
    S.UNKNOWN: "?",
    S.APPLYING: "▸",
    S.APPLIED: "▸",
    S.SKIPPED: "–",
    S.GONE: "×",
    S.PENDING: "·",
}

CHARGED = "✗"
"""For a node that was reverted because it failed itself, not with others."""


def racks(story: Story) -> Html:
    """Every rack of the run in the order of its plan."""
    members: dict[str, list[str]] = {}
    for name, node in story.past.order.nodes.items():
        members.setdefault(node.rack, []).append(name)
    return tag("div", (_rack(story, rack, members[rack]) for rack in sorted(members)), class_="racks")


def _rack(story: Story, rack: str, names: list[str]) -> Html:
    nodes = story.state.nodes
    counts = {str(kind): count for kind in S if (count := sum(nodes[name].state is kind for name in names))}
    rows = -(-len(names) // ACROSS)
    width, height = ACROSS * STEP - (STEP - SIDE), rows * STEP - (STEP - SIDE)
    squares = (
        _square(story, name, nodes[name], at % ACROSS * STEP, at // ACROSS * STEP)
        for at, name in enumerate(sorted(names))
    )
    wrong = " bad" if any(nodes[name].cause is not None for name in names) else ""
    name = rack_words(rack) if rack == NO_RACK else rack
    label = f"{name}: {counts_text(counts)}"
    return tag(
        "figure",
        tag("figcaption", tag("b", printable(name, 40)), " ", tag("span", counts_text(counts))),
        tag("svg", squares, view_box=f"0 0 {width} {height}", width=width, height=height, role="img", aria_label=label),
        class_=f"rack{wrong}",
    )


def _square(story: Story, name: str, record: NodeRecord, x: int, y: int) -> Html:
    wave = story.past.order.waves[story.past.order.nodes[name].wave].name
    why = f": {record.message}" if record.message else ""
    reference = f" [{record.reference}]" if record.reference else ""
    owed = ", pending recovery" if record.owed else ""
    title = tag("title", f"{name} (wave {wave}): {record.state}{owed}{why}{reference}")
    charged = " charged" if record.cause is not None else ""
    box = tag("rect", x=x, y=y, width=SIDE, height=SIDE, rx=2, class_=f"n s-{state_class(record.state)}{charged}")
    sign = CHARGED if record.cause is not None and record.state is S.REVERTED else SIGNS[record.state]
    text = tag("text", sign, x=x + SIDE / 2, y=y + 11.5, class_="sign") if sign else Html("")
    return tag("g", title, raw(box, text))


def state_class(state: S) -> str:
    """The class of its colour."""
    if state in (S.FAILED, S.REFUSED, S.UNREACHABLE):
        return "wrong"
    if state in (S.SKIPPED, S.GONE):
        return "skipped"
    return "moving" if state in (S.APPLYING, S.APPLIED) else state.value


def legend() -> Html:
    """What the signs mean, for both pictures."""
    shown = (
        S.CONFIRMED,
        S.REVERTED,
        S.FAILED,
        S.REFUSED,
        S.UNREACHABLE,
        S.UNKNOWN,
        S.APPLYING,
        S.SKIPPED,
        S.GONE,
        S.PENDING,
    )
    return tag("p", (_key(state) for state in shown), class_="legend")


def _key(state: S) -> Html:
    box = tag("rect", x=0, y=0, width=SIDE, height=SIDE, rx=2, class_=f"n s-{state_class(state)}")
    sign = tag("text", SIGNS[state], x=SIDE / 2, y=11.5, class_="sign")
    size = {"view_box": f"0 0 {SIDE} {SIDE}", "width": SIDE, "height": SIDE, "aria_hidden": "true"}
    words = "applying or applied" if state is S.APPLYING else state.value
    return tag("span", tag("svg", box, sign, **size), f" {words}", class_="key")


LANE = 46.0
STRIP = 13.0
GAP = 14.0
TOP = 34.0
MOST_COUNTS = 3
NARROW = 46.0
LEAST_FOLD = 13.0
"""Columns of a folded stretch from which on its length is written into it."""

ROW_OF_WORDS = 13.0
MOST_ROWS_OF_WORDS = 6
LETTER = 6.6
"""Columns of a letter, rather too many."""

LAYERS: tuple[tuple[str, str, frozenset[S]], ...] = (
    ("confirmed", "confirmed", frozenset({S.CONFIRMED})),
    ("moving", "applying, or applied and not yet confirmed", frozenset({S.APPLYING, S.APPLIED})),
    ("unknown", "unknown", frozenset({S.UNKNOWN})),
    ("reverting", "reverting", frozenset({S.REVERTING})),
    ("reverted", "reverted", frozenset({S.REVERTED})),
    ("skipped", "skipped, or gone from the inventory", frozenset({S.SKIPPED, S.GONE})),
    ("wrong", "failed, refused or unreachable", frozenset({S.FAILED, S.REFUSED, S.UNREACHABLE})),
)
"""Class, words and states, from the bottom of a lane to its top; pending is the empty part."""

_STRIPS = (
    ("span-soak", "soaking"),
    ("span-hold", "on hold or paused"),
    ("span-halting", "halting"),
    ("folded", "folded: nothing happened"),
)

_BEHIND = {
    Phase.SOAKING.value: "soak",
    "held": "hold",
    "paused": "hold",
    Phase.HALTING.value: "halting",
}


# Waves over time: a lane for each wave, filled from the bottom by the states of its nodes.


def timeline(story: Story, idle: tuple[Idle, ...] = ()) -> Html:
    """Lanes of waves, spans behind them, a mark where it halted. ``idle`` stretches are folded."""
    axis = Axis(story.began, story.ended, idle)
    waves = story.past.order.waves
    marks = _placed(story, axis)
    first = TOP + ROW_OF_WORDS * max((mark.row for mark in marks), default=0)
    bottom = first + len(waves) * (LANE + GAP) - GAP
    label = (
        f"How the {counted(len(waves), 'wave')} of run {story.past.order.run} went over {seconds_text(axis.seconds)}"
    )
    lanes = (_lane(story, axis, index, first + index * (LANE + GAP)) for index in range(len(waves)))
    drawn = (_mark(mark, first, bottom) for mark in marks)
    return picture(
        bottom + 24, label, axis.draw(first - STRIP, bottom), *lanes, tag("g", drawn), _folds(axis, first, bottom)
    )


def wave_legend() -> Html:
    """The colours of the lanes and of the strips above them."""
    lanes = ((f"s-{name}", words) for name, words, _ in LAYERS)
    pairs = (*lanes, ("s-pending", "pending: the empty part"), *_STRIPS)
    keys = [tag("span", _swatch(name), f" {words}", class_="key") for name, words in pairs]
    words = "A lane fills from the bottom as its nodes are changed; the strip above it shows what the wave waited for."
    return raw(tag("p", keys, class_="legend"), tag("p", words, class_="dim"))


def _swatch(name: str) -> Html:
    box = tag("rect", x=0, y=0, width=SIDE, height=SIDE, rx=2, class_=name)
    return tag("svg", box, view_box=f"0 0 {SIDE} {SIDE}", width=SIDE, height=SIDE, aria_hidden="true")


def _folds(axis: Axis, first: float, bottom: float) -> Html:
    """A band over each folded stretch, with its real length."""
    return raw(*(_fold_mark(axis, stretch, first, bottom) for stretch in axis.idle))


def _fold_mark(axis: Axis, idle: Idle, first: float, bottom: float) -> Html:
    x, end = axis.x(idle.began), axis.x(idle.ended)
    took = seconds_text(idle.ended - idle.began)
    title = tag("title", f"{took} without a change of a node, from {clock(idle.began - axis.began)} on")
    band = tag("rect", title, x=x, y=first - STRIP, width=end - x, height=bottom - first + STRIP, class_="folded")
    if end - x < LEAST_FOLD:
        return band
    place = f"translate({(x + end) / 2 + 3:.1f},{bottom - 4:.1f}) rotate(-90)"
    return raw(band, tag("text", f"≈ {took}", class_="fold", transform=place))


def _lane(story: Story, axis: Axis, index: int, top: float) -> Html:
    wave = story.past.order.waves[index]
    steps = _steps(story.samples, axis, index)
    spans = [_span(span, axis, top) for span in story.spans if span.wave == index and span.kind in _BEHIND]
    areas = [tag("path", d=path, class_=f"s-{name}") for name, path in _areas(steps, top, len(wave.nodes))]
    frame = tag("rect", x=LEFT, y=top, width=WIDTH - LEFT - RIGHT, height=LANE, class_="frame")
    return tag("g", spans, areas, frame, _words(story, index, top))


def _words(story: Story, index: int, top: float) -> Html:
    """The wave's name and its nodes' final states: what the colours show, in words."""
    wave = story.past.order.waves[index]
    last = {str(kind): count for kind, count in story.samples[-1].waves[index].items() if count}
    ranked = sorted(last.items(), key=lambda pair: -pair[1])[:MOST_COUNTS]
    title = tag("title", f"wave {wave.name}, {counted(len(wave.nodes), 'node')}: in the end {counts_text(last)}")
    name = tag("text", title, printable(wave.name, 16), x=LEFT - 10, y=top + 4, class_="lane")
    below = [
        tag("text", f"{count:,} {kind}", x=LEFT - 10, y=top + 18 + at * 13, class_="small")
        for at, (kind, count) in enumerate(ranked)
    ]
    return raw(name, *below)


def _span(span: StorySpan, axis: Axis, top: float) -> Html:
    """The wave's activity, on the strip above the lane."""
    x, end = axis.x(span.began), axis.x(span.ended)
    title = tag("title", f"{span.kind} for {seconds_text(span.ended - span.began)}")
    width = max(end - x, 2.0)
    box = tag("rect", title, x=x, y=top - STRIP, width=width, height=STRIP, class_=f"span-{_BEHIND[span.kind]}")
    if width < NARROW:
        return box
    return raw(box, tag("text", span.kind, x=x + width / 2, y=top - 3, class_="note"))


def _steps(samples: tuple[WaveSample, ...], axis: Axis, index: int) -> list[tuple[float, Mapping[S, int]]]:
    """At most one sample per column, the last one, and only where something changed."""
    steps: list[tuple[float, Mapping[S, int]]] = []
    for sample in samples:
        x, counts = round(axis.x(sample.at), 1), sample.waves[index]
        if steps and steps[-1][0] == x:
            steps[-1] = (x, counts)
        elif not steps or steps[-1][1] != counts:
            steps.append((x, counts))
    return [*steps, (axis.x(axis.ended), samples[-1].waves[index])]


def _areas(steps: list[tuple[float, Mapping[S, int]]], top: float, total: int) -> Iterator[tuple[str, Html]]:
    """Stacked steps: each layer stands on those below it."""
    floor = [0.0] * len(steps)
    for name, _, states in LAYERS:
        heights = [sum(counts.get(state, 0) for state in states) * LANE / max(total, 1) for _, counts in steps]
        if not any(heights):
            continue
        ceiling = [low + height for low, height in zip(floor, heights, strict=True)]
        bottom = top + LANE
        there = _line([(x, bottom - level) for (x, _), level in zip(steps, ceiling, strict=True)])
        back = _line([(x, bottom - level) for (x, _), level in zip(steps, floor, strict=True)][::-1], falling=True)
        yield name, raw(f"M{there}L{back}Z")
        floor = ceiling


def _line(points: list[tuple[float, float]], *, falling: bool = False) -> str:
    """A staircase: a level holds until the next point. Backwards, the corner is on the other side."""
    parts = [f"{points[0][0]:.1f},{points[0][1]:.1f}"]
    for (x, y), (next_x, next_y) in pairwise(points):
        if y != next_y:
            parts.append(f"{x:.1f},{next_y:.1f}" if falling else f"{next_x:.1f},{y:.1f}")
        parts.append(f"{next_x:.1f},{next_y:.1f}")
    return "L".join(parts)


# Marks: a line where it halted or somebody acted, with a word above it. Words that would overprint get rows of their own.


@dataclass(frozen=True, slots=True)
class _Mark:
    """``row``: of its word, from below; ``-1``: there is no room for it."""

    x: float
    kind: str
    word: str
    text: str
    row: int = 0

    @property
    def side(self) -> str:
        return "end" if self.x > WIDTH * 0.8 else "start"

    @property
    def covers(self) -> tuple[float, float]:
        """The columns of its word."""
        width = len(self.word) * LETTER + 8
        return (self.x - width, self.x) if self.side == "end" else (self.x, self.x + width)


def _placed(story: Story, axis: Axis) -> tuple[_Mark, ...]:
    rows: list[list[tuple[float, float]]] = []
    placed = []
    for mark in _marks(story, axis):
        began, ended = mark.covers
        free = [at for at, row in enumerate(rows) if all(ended <= a or b <= began for a, b in row)]
        row = free[0] if free else len(rows)
        if row == len(rows) < MOST_ROWS_OF_WORDS:
            rows.append([])
        if row < len(rows):
            rows[row].append((began, ended))
        placed.append(replace(mark, row=row if row < len(rows) else -1))
    return tuple(placed)


def _marks(story: Story, axis: Axis) -> Iterator[_Mark]:
    """The halt first: its word is always there."""
    if story.halted_in is not None and story.state.halt is not None:
        at = max(story.halted_in.now, story.began)
        yield _Mark(axis.x(at), "halt", f"halted at {clock(at - story.began)}", story.state.halt.message)
    for word in story.said:
        yield _Mark(axis.x(word.at), "said", word.kind, word.text)


def _mark(mark: _Mark, first: float, bottom: float) -> Html:
    y = first - STRIP - 6 - max(mark.row, 0) * ROW_OF_WORDS
    line = tag("line", tag("title", mark.text), x1=mark.x, x2=mark.x, y1=y - 2, y2=bottom, class_=f"mark-{mark.kind}")
    if mark.row < 0:
        return line
    shift = -5 if mark.side == "end" else 5
    return Html(line + tag("text", mark.word, x=mark.x + shift, y=y, class_=f"word-{mark.kind}", text_anchor=mark.side))
