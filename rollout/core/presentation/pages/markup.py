"""HTML and SVG from values. Text that is not ``Html`` is always escaped: there is no other way to insert it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape, unescape

from rollout.core.text.documents import instant
from rollout.core.text.terminal import printable, wall

# A time axis: seconds of a run on the page's columns.


WIDTH = 1000.0
LEFT = 130.0
RIGHT = 16.0

_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_MOST_TICKS = 9
_LEAST_APART = 46.0
"""Columns between two ticks: a folded stretch may bring them closer, and their times would overprint."""


@dataclass(frozen=True, slots=True)
class Idle:
    """A stretch of time in which no node changed. It is folded: drawn as ``shown`` seconds."""

    began: float
    ended: float
    shown: float

    @property
    def folded(self) -> float:
        """Seconds that are not drawn."""
        return self.ended - self.began - self.shown

    def before(self, at: float) -> float:
        """How many of the folded seconds are before ``at``."""
        share = (at - self.began) / (self.ended - self.began)
        return self.folded * min(max(share, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """From ``began`` to ``ended`` (seconds of the events), left to right. ``idle`` stretches are folded."""

    began: float
    ended: float
    idle: tuple[Idle, ...] = ()

    @property
    def seconds(self) -> float:
        return max(self.ended - self.began - sum(stretch.folded for stretch in self.idle), 1.0)

    def x(self, at: float) -> float:
        seconds = at - self.began - sum(stretch.before(at) for stretch in self.idle)
        share = min(max(seconds / self.seconds, 0.0), 1.0)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> Iterator[float]:
        """A few round distances from the start, none inside a folded stretch."""
        every = next((step for step in _STEPS if self.seconds / step <= _MOST_TICKS), self.seconds / _MOST_TICKS)
        for number in range(int((self.ended - self.began) / every) + 1):
            if not any(stretch.began < self.began + number * every < stretch.ended for stretch in self.idle):
                yield number * every

    def draw(self, top: float, bottom: float) -> Iterator[Html]:
        """Lines from ``top`` to ``bottom`` with their times below."""
        last = float("-inf")
        for tick in self.ticks():
            x = self.x(self.began + tick)
            if x - last < _LEAST_APART:
                continue
            last = x
            yield tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid")
            yield tag("text", clock(tick), x=x, y=bottom + 14, class_="tick")


def clock(seconds: float) -> str:
    """``0:00``, ``12:30``, ``1:02:00``: time since the run began."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def picture(height: float, label: str, *children: Html | Iterator[Html]) -> Html:
    """An SVG as wide as its container; ``label`` describes it to those who do not see it."""
    title = tag("title", label)
    box = f"0 0 {WIDTH:g} {height:g}"
    return tag("svg", title, *children, view_box=box, role="img", class_="wide", aria_label=label)


LONGEST = 2_000
"""The most characters of one text; more does not help a reader."""

_TO_FILL_IN = re.compile(r"(?:^| )(?:…|DIR|FILE|NAME)(?= |$)")
"""A word of a proposed command in the place of one that only its reader knows."""

_VOID = frozenset({"meta", "br", "hr", "link", "input", "wbr"})
_CASED = {"view_box": "viewBox", "preserve_aspect_ratio": "preserveAspectRatio"}


class Html(str):
    """Text that is markup already; only ``tag`` and ``raw`` make it."""

    __slots__ = ()


Child = str | Iterable[str] | None


def tag(name: str, /, *children: Child, **attributes: object) -> Html:
    """``<name attribute="…">children</name>``. ``class_`` is ``class``, ``stroke_width`` is ``stroke-width``; ``None`` omits the attribute."""
    words = "".join(f' {_name(word)}="{_value(value)}"' for word, value in attributes.items() if value is not None)
    inner = "".join(_inside(child) for child in children)
    if name in _VOID:
        return Html(f"<{name}{words}>")
    return Html(f"<{name}{words}>{inner}</{name}>")


def raw(*parts: str) -> Html:
    """Markup joined from markup, or from our own text that is not markup (a style sheet)."""
    return Html("".join(parts))


def lines(rows: Iterable[str]) -> Html:
    """Text with its line ends and blanks kept, for ``pre``: control characters are removed before, markup is escaped here."""
    return Html("\n".join(escape(row) for row in rows))


def moment(at: float) -> Html:
    """A time in UTC. The script of the live pages shows it as people here read it, with UTC as its title."""
    return tag("time", wall(at), datetime=instant(at), title=wall(at))


def copied(command: str, before: str = "") -> Html:
    """A command to type, with a button that copies it. ``before``: a few words on it.

    Without the button where the command has a word to fill in, or is too long to be shown whole.
    """
    words = tag("span", before, class_="dim") if before else ""
    is_whole = len(printable(command, LONGEST + 1)) <= LONGEST and not _TO_FILL_IN.search(command)
    button = tag("button", "Copy", type="button", class_="copy", aria_label="Copy the command") if is_whole else ""
    return tag("p", words, tag("code", command, class_="command"), button, class_="run-this")


def nodeset(names: str) -> Html:
    """A nodeset that breaks behind its commas."""
    return Html(tag("span", names, class_="nodes").replace(",", ",<wbr>"))


def linked(text: str, ways: Mapping[str, str]) -> Html:
    """A text in which each name of ``ways`` is a link."""
    if not ways:
        return tag("span", text)
    parts = re.split(rf"(?<![\w-])({'|'.join(re.escape(name) for name in ways)})(?![\w-])", text)
    return tag(
        "span", [tag("a", part, href=ways[part]) if part in ways else tag("span", part) for part in parts if part]
    )


_TEXT = re.compile(r"(?<=>)[^<>]+(?=<|$)")


def with_texts(markup: str, change: Callable[[str], str]) -> Html:
    """``markup`` with each text between two tags as ``change`` returns it: unescaped before, escaped afterwards."""

    def changed(match: re.Match[str]) -> str:
        text = unescape(match[0])
        changed = change(text)
        return match[0] if changed == text else escape(changed)

    return Html(_TEXT.sub(changed, markup))


def _inside(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return _blank(child[:1]) + escape(printable(child, LONGEST)) + (_blank(child[-1:]) if child.strip() else "")
    return "".join(_inside(each) for each in child)


def _blank(character: str) -> str:
    return " " if character == " " else ""


def _name(word: str) -> str:
    return _CASED.get(word) or word.rstrip("_").replace("_", "-")


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    if isinstance(value, Html):
        return value
    return escape(printable(str(value), LONGEST))
