"""What may reach a screen: no escape sequence, no control character, nothing that turns the direction of text."""

from __future__ import annotations

import re

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""A character that changes how others are shown, or cannot be shown: everything but tab, newline and text."""

_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
_BLANKS = re.compile(r"[\t\r\n]+")


def printable(text: str, limit: int = 200) -> str:
    """One line of at most ``limit`` characters of ``text``, from a node or a file, that is safe to show."""
    head = text[: limit * 8 + 256]  # escapes are longer than what they hide; the rest is never shown
    shown = CONTROL.sub("", _BLANKS.sub(" ", _SEQUENCE.sub("", head))).strip()
    if len(shown) > limit:
        return shown[: max(limit - 1, 0)] + "…"
    return shown if len(head) == len(text) else shown[: max(limit - 1, 0)] + "…"


def counted(number: int, word: str) -> str:
    """``1 node``, ``2,000 nodes``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
