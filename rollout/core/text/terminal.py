"""Text that is safe for a screen: no escape sequence, no control character, no change of the text direction."""

from __future__ import annotations

import re
import textwrap
from datetime import UTC, datetime

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""A character that changes how others are shown, or cannot be shown: everything but tab, newline and text."""

_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
_BLANKS = re.compile(r"[\t\r\n]+")
_LINE_END = re.compile(r"\r*\n|\r+")
_TAB = 8
_INSTANT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2}:[0-9]{2})Z")


LONGEST_PATH = 4096
"""Characters of a path on Linux (PATH_MAX)."""


def printable(text: str, limit: int = 200) -> str:
    """One line of at most ``limit`` characters of ``text``, from a node or a file, that is safe to show."""
    head = text[: limit * 8 + 256]  # escapes are longer than what they hide; the rest is never shown
    shown = CONTROL.sub("", _BLANKS.sub(" ", _SEQUENCE.sub("", head))).strip()
    if len(shown) > limit:
        return shown[: max(limit - 1, 0)] + "…"
    return shown if len(head) == len(text) else shown[: max(limit - 1, 0)] + "…"


def printable_lines(text: str, longest: int) -> tuple[str, ...]:
    """``text`` of many lines as lines that are safe to show, each of at most ``longest`` characters.

    Indentation is kept and tabs become spaces: tables of programs stay readable.
    """
    lines = _LINE_END.split(text)
    return tuple(_shown(line, longest) for line in (lines if lines[-1] else lines[:-1]))


def _shown(line: str, longest: int) -> str:
    shown = CONTROL.sub("", _SEQUENCE.sub("", line).expandtabs(_TAB)).rstrip()
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def hanging(text: str, width: int, indent: int = 2) -> tuple[str, ...]:
    """``text`` in lines of at most ``width`` characters. What is wrapped is indented ``indent`` deeper than its beginning."""
    deeper = len(text) - len(text.lstrip(" ")) + indent
    if len(text) <= width or deeper > width // 2:
        return (text,)
    return tuple(textwrap.wrap(text, width, subsequent_indent=" " * deeper, break_on_hyphens=False)) or (text,)


def counted(number: int, word: str) -> str:
    """``1 node``, ``2,000 nodes``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def seconds_text(seconds: float) -> str:
    """A length of time for people, rounded to a useful precision: ``0.4 s``, ``14 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f}".removesuffix(".0") + " s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 20:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def wall(at: float) -> str:
    """Seconds since the epoch as people write them: ``2026-11-20 16:00:00 UTC``."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def wall_of(instant: str) -> str:
    """``2026-11-20T16:00:00Z`` of a file in the form of ``wall``; any other text is shown as it is."""
    found = _INSTANT.fullmatch(instant)
    return f"{found[1]} {found[2]} UTC" if found else printable(instant)
