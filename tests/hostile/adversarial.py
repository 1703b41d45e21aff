"""Texts that are made to take a parser's time or memory: general ones, and those of a pattern's own repetitions."""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]  # the parser of patterns has no types
import re._parser as reading  # type: ignore[import-not-found]
from collections.abc import Iterator
from typing import Any

LENGTH = 1 << 16
"""Characters of a long text: what a node's line or a field of a file may have."""


def texts(length: int = LENGTH) -> Iterator[tuple[str, str]]:
    """The name and text of each general case; those that have no harm of their own in a few characters are this long."""
    yield from {
        "empty": "",
        "NUL": "\0",
        "a surrogate": "\ud800",
        "26 digits and a letter": "9" * 26 + "x",
        "400 nines": "9" * 400,
        "5,000 nines": "9" * 5000,
        "many digits": "1" * length,
        "many digits and a letter": "1" * length + "x",
        "digits of other scripts": "٣" * 400,
        "a large exponent": "1e999999999",
        "a large exponent of a quantity": "1E99999999",
        "a small exponent": "1e-999999999",
        "a large power": "9" * 400 + "%",
        "infinity": "inf",
        "no number": "nan",
        "a range": "0-9999999999",
        "a range of long numbers": f"0-{'9' * 400}",
        "many ranges": ",".join(f"{at}00000-{at}99999" for at in range(length // 16)),
        "ranges in brackets": "n[1-9][1-999999999][1-999999999]",
        "many brackets": "[" * length,
        "brackets that close": "[" * (length // 13) + "]" * (length // 13),
        "braces": '{"a":' * (length // 6),
        "parentheses": "(" * length,
        "newlines": "\n" * length,
        "blanks": " " * length,
        "blanks and a letter": " " * length + "x",
        "commas": "," * length,
        "colons": ":" * length,
        "dashes": "-" * length,
        "dots": "." * length,
        "slashes": "/" * length,
        "backslashes": "\\" * length,
        "quotes": '"' * length,
        "apostrophes": "'" * length,
        "equal signs": "=" * length,
        "assignments": "a=b," * (length // 4),
        "flags": "--a=b " * (length // 6),
        "pairs": "a: b\n" * (length // 5),
        "lines of quotes": "'\\\n" * (length // 3),
        "escapes": "\x1b[" * (length // 2),
        "dollars": "${" * (length // 2),
        "templates": "{{" * (length // 2),
        "a year": "9999-99-99T99:99:99Z",
        "base64": "A" * length,
        "one long word": "a" * length,
        "upper and lower": "aA" * (length // 2),
        "durations": "1h" * (length // 2),
        "a percent": "%" * length,
        "words": "a " * (length // 2),
        "lines": "a\n" * (length // 2),
        "different words": " ".join(f"w{at}" for at in range(length // 7)),
        "different lines": "\n".join(f"k{at}: {at}" for at in range(length // 14)),
        "different assignments": "\n".join(f"k{at}={at}" for at in range(length // 14)),
        "different fields": "{" + ",".join(f'"k{at}":{at}' for at in range(length // 16)) + "}",
        "different flags": " ".join(f"--k{at}={at}" for at in range(length // 16)),
    }.items()


NAMES = tuple(name for name, _ in texts(1))
_BREAKERS = ("", "!", "\n", "\0", "x")


def of_pattern(pattern: re.Pattern[str] | re.Pattern[bytes], length: int = LENGTH) -> Iterator[str]:
    """For each repetition without an end: what comes before it, very often what it repeats, and then something else."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = reading.parse(text, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags)
    for ahead, repeated in _repetitions(tree, ""):
        for each in dict.fromkeys((repeated, repeated[:1])):
            for breaker in _BREAKERS:
                yield ahead + each * (length // len(each)) + breaker
        yield (ahead + repeated) * (length // max(1, len(ahead + repeated)))
        if ahead:
            yield ahead * (length // len(ahead))


def _repetitions(items: Any, ahead: str) -> Iterator[tuple[str, str]]:
    for kind, value in items:
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            _, most, inner = value
            if most >= 1000:
                yield ahead, sample(inner) or "a"
            yield from _repetitions(inner, ahead)
        elif kind is sre.SUBPATTERN:
            yield from _repetitions(value[3], ahead)
        elif kind is sre.ATOMIC_GROUP:
            yield from _repetitions(value, ahead)
        elif kind is sre.BRANCH:
            for branch in value[1]:
                yield from _repetitions(branch, ahead)
        elif kind in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _repetitions(value[1], ahead)
        ahead += sample([(kind, value)])


def sample(items: Any) -> str:
    """A short text that these items match, or nearly."""
    made = ""
    for kind, value in items:
        match kind:
            case sre.LITERAL:
                made += chr(value)
            case sre.NOT_LITERAL:
                made += "a" if value != ord("a") else "b"
            case sre.ANY:
                made += "a"
            case sre.IN:
                made += _of_set(value)
            case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
                made += sample(value[2]) * max(value[0], min(1, value[1]))
            case sre.SUBPATTERN:
                made += sample(value[3])
            case sre.BRANCH:
                made += sample(value[1][0])
            case sre.ATOMIC_GROUP:
                made += sample(value)
    return made


_OF_CATEGORY = {sre.CATEGORY_DIGIT: "1", sre.CATEGORY_SPACE: " ", sre.CATEGORY_WORD: "a", sre.CATEGORY_NOT_SPACE: "a"}


def _of_set(members: Any) -> str:
    """One character of a set."""
    if members[0][0] is sre.NEGATE:
        return next((c for c in 'a1 -/."=' if not any(_is_in(ord(c), member) for member in members[1:])), "a")
    kind, value = members[0]
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.RANGE:
        return chr(value[0])
    return _OF_CATEGORY.get(value, "a")


def _is_in(code: int, member: Any) -> bool:
    kind, value = member
    if kind is sre.LITERAL:
        return code == int(value)
    if kind is sre.RANGE:
        return int(value[0]) <= code <= int(value[1])
    character = chr(code)
    return {"CATEGORY_DIGIT": character.isdigit(), "CATEGORY_SPACE": character.isspace(),
            "CATEGORY_WORD": character.isalnum()}.get(str(value), False)  # fmt: skip
