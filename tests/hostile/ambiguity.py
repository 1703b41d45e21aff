"""Patterns that can match a text in very many ways: a repetition in a repetition with nothing between them that ends it.

``(?:[0-9]+x?)+`` splits a row of digits in each possible way before it gives up: each digit doubles the work. It is safe when each
round has a part that must be there and that no inner repetition can match. Alternatives in a repetition begin differently.
"""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]  # the parser of patterns has no types
import re._parser as reading  # type: ignore[import-not-found]
from collections.abc import Iterator
from typing import Any

Characters = frozenset[str]
_ALL = frozenset(map(chr, [*range(128), 0xE9, 0x663, 0x2003]))
"""All of ASCII, and a letter, a digit and a blank of others."""

_ENDLESS = 1000
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)


def ambiguities(pattern: re.Pattern[str] | re.Pattern[bytes]) -> Iterator[str]:
    """What is wrong with a pattern."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    flags = pattern.flags if isinstance(pattern.pattern, str) else pattern.flags | re.ASCII
    yield from _in_items(reading.parse(text, flags & ~re.LOCALE))


def _in_items(items: Any) -> Iterator[str]:
    for kind, value in items:
        if kind in _REPEATS:
            if value[1] >= _ENDLESS:
                yield from _of_round(value[2])
            yield from _in_items(value[2])
        elif kind is sre.BRANCH:
            for branch in value[1]:
                yield from _in_items(branch)
        else:
            for inner in _parts(kind, value):
                yield from _in_items(inner)


def _of_round(body: Any) -> Iterator[str]:
    """What can be divided in several ways in one round needs a mandatory part of that round that it cannot match."""
    ways = _alternatives(body)
    if _overlap(ways):
        yield f"alternatives of a repetition that begin alike: {_shown(frozenset().union(*map(_any, ways)))}"
    for way in ways:
        for divided in _divided(way):
            if not any(needed.isdisjoint(divided) for needed in _mandatory(way)):
                yield f"a repetition in a repetition without a mandatory other part: {_shown(divided)}"


def _shown(characters: Characters) -> str:
    return repr("".join(sorted(characters))[:20])


def _overlap(branches: Any) -> bool:
    firsts = [_first(branch) for branch in branches]
    return any(one & other for at, one in enumerate(firsts) for other in firsts[at + 1 :])


def _alternatives(items: Any) -> list[list[Any]]:
    """The ways through a sequence of items, where it is a choice as a whole."""
    found = list(items)
    if len(found) == 1 and found[0][0] is sre.BRANCH:
        return [way for branch in found[0][1][1] for way in _alternatives(branch)]
    if len(found) == 1 and found[0][0] is sre.SUBPATTERN:
        return _alternatives(found[0][1][3])
    return [found]


def _divided(items: Any) -> Iterator[Characters]:
    """The characters of each part of no fixed length, and of each choice with alternatives that begin alike."""
    for kind, value in items:
        if kind in _REPEATS and value[0] < value[1]:
            yield _any(value[2])
        elif kind in _REPEATS:
            yield from _divided(value[2])
        elif kind is sre.BRANCH:
            if _overlap(value[1]) or not all(map(len, value[1])):
                yield frozenset().union(*map(_any, value[1]))
            for branch in value[1]:
                yield from _divided(branch)
        else:
            for inner in _parts(kind, value):
                yield from _divided(inner)


def _mandatory(items: Any) -> Iterator[Characters]:
    for kind, value in items:
        if kind in _REPEATS:
            if value[0]:
                yield from _mandatory(value[2])
        elif kind is sre.BRANCH:
            ways = [list(_mandatory(branch)) for branch in value[1]]
            if all(ways):
                yield frozenset().union(*(way[0] for way in ways))
        elif kind is sre.SUBPATTERN:
            yield from _mandatory(value[3])
        elif (characters := _one(kind, value)) is not None:
            yield characters


def _first(items: Any) -> Characters:
    """What a match can begin with."""
    found: Characters = frozenset()
    for kind, value in items:
        if kind in _REPEATS:
            found |= _first(value[2])
            if value[0]:
                return found
        elif kind is sre.BRANCH:
            return found | frozenset().union(*map(_first, value[1]))
        elif kind is sre.SUBPATTERN:
            return found | _first(value[3])
        elif (characters := _one(kind, value)) is not None:
            return found | characters
    return found


def _any(items: Any) -> Characters:
    """Every character of any match."""
    found: Characters = frozenset()
    for kind, value in items:
        if kind in _REPEATS:
            found |= _any(value[2])
        elif kind is sre.BRANCH:
            found |= frozenset().union(*map(_any, value[1]))
        elif kind is sre.SUBPATTERN:
            found |= _any(value[3])
        elif (characters := _one(kind, value)) is not None:
            found |= characters
    return found


def _parts(kind: Any, value: Any) -> list[Any]:
    if kind is sre.SUBPATTERN:
        return [value[3]]
    return [value[1]] if kind in (sre.ASSERT, sre.ASSERT_NOT) else []


def _one(kind: Any, value: Any) -> Characters | None:
    """The characters of an item that is exactly one; ``None``: it is none."""
    if kind is sre.LITERAL:
        return frozenset(chr(value))
    if kind is sre.NOT_LITERAL:
        return _ALL - {chr(value)}
    if kind is sre.ANY:
        return _ALL - {"\n"}
    return frozenset(each for each in _ALL if _holds(value, each)) if kind is sre.IN else None


def _holds(members: Any, character: str) -> bool:
    negated = bool(members) and members[0][0] is sre.NEGATE
    return any(_is(member, character) for member in members[negated:]) is not negated


def _is(member: Any, character: str) -> bool:
    kind, value = member
    if kind is sre.LITERAL:
        return ord(character) == int(value)
    if kind is sre.RANGE:
        return int(value[0]) <= ord(character) <= int(value[1])
    return re.fullmatch(_CATEGORIES[value], character) is not None


_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_SPACE: r"\s", sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w", sre.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
