"""Unquoted words of YAML: the value that every reader gives them, or why readers differ.

YAML 1.1 and 1.2, Go's two libraries and Python's do not agree on ``yes``, ``010`` or ``1:30``. Words that they agree on are
accepted; the rest is refused with a hint how to write it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isinf

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """A word that must be written differently; ``message`` explains how."""

    message: str


_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_OLD_BOOLEANS = {
    form: meaning
    for words, meaning in ((("yes", "on", "y"), "true"), (("no", "off", "n"), "false"))
    for word in words
    for form in (word, word.capitalize(), word.upper())
}
_NUMBER_STARTS = frozenset("+-.0123456789")
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)?(?:\.[0-9]+|(?<=[0-9])\.)?(?:(?<=[0-9.])[eE][-+]?[0-9]+)?")
_ODD_NUMBER = re.compile(
    r"[-+]?(?:0[0-9_]+|0[xX][0-9a-fA-F_]+|0[ob][0-7_]+|[0-9][0-9_]*_[0-9_]*|[0-9]+(?::[0-5]?[0-9])+|0[0-9]+\.[0-9]*|\.(?:inf|Inf|INF|nan|NaN|NAN))"
)
_MOST_DIGITS = 18
_LONGEST_NUMBER = 64  # longer words are text, and are not matched against expressions


def plain_scalar(text: str) -> Scalar | Ambiguous:
    """The value that every reader of YAML gives an unquoted word, or why they differ."""
    if text[:1] in _NUMBER_STARTS:
        return _number(text)
    if text in _WORDS:
        return _WORDS[text]
    if text in _OLD_BOOLEANS:
        return Ambiguous(
            f'`{text}` is a boolean to some readers and text to others; write {_OLD_BOOLEANS[text]} or "{text}"'
        )
    return text


def _number(text: str) -> Scalar | Ambiguous:
    if _INT.fullmatch(text):
        return _integer(text)
    if len(text) > _LONGEST_NUMBER:
        return text
    if _ODD_NUMBER.fullmatch(text):
        return Ambiguous(
            f"YAML readers take `{text}` for different numbers; write it in decimal, or in quotes if it is text"
        )
    return _float(text) if text[-1].isdigit() or text[-1] == "." else text


def _integer(text: str) -> Scalar | Ambiguous:
    if len(text) > _MOST_DIGITS:
        return Ambiguous(f"a number with more than {_MOST_DIGITS} digits; if it is text, write it in quotes")
    return int(text)


def _float(text: str) -> Scalar | Ambiguous:
    if not _FLOAT.fullmatch(text) or not any(character.isdigit() for character in text):
        return text
    number = float(text)
    return Ambiguous(f"`{text}` is too large for a number") if isinf(number) else number
