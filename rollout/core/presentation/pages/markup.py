"""HTML and SVG from values. What is not ``Html`` already is escaped, always: there is no other way to put text in."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from rollout.core.text.terminal import printable

LONGEST = 2_000
"""Characters of one text; more of it helps nobody."""

_VOID = frozenset({"meta", "br", "hr"})
_CASED = {"view_box": "viewBox", "preserve_aspect_ratio": "preserveAspectRatio"}


class Html(str):
    """Text that is markup already: made by ``tag`` and ``raw`` only."""

    __slots__ = ()


Child = str | Iterable[str] | None


def tag(name: str, /, *children: Child, **attributes: object) -> Html:
    """``<name attribute="…">children</name>``. ``class_`` is ``class``, ``stroke_width`` is ``stroke-width``; ``None`` leaves out."""
    words = "".join(f' {_name(word)}="{_value(value)}"' for word, value in attributes.items() if value is not None)
    inner = "".join(_inside(child) for child in children)
    if name in _VOID:
        return Html(f"<{name}{words}>")
    return Html(f"<{name}{words}>{inner}</{name}>")


def raw(*parts: str) -> Html:
    """Markup put together from markup, or text of ours that is none (a style sheet)."""
    return Html("".join(parts))


def lines(rows: Iterable[str]) -> Html:
    """Text with its line ends and blanks as they are, for ``pre``: already made harmless for a screen, escaped here."""
    return Html("\n".join(escape(row) for row in rows))


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
