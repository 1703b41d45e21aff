"""One top-level key of a JSON file (dockerd's daemon.json), order and spacing kept: only its value's bytes are replaced.

Proven by reading again: the pairs, in order, must be the old ones with ours. A duplicate key is refused: readers
differ in which one they use.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from rollout.kubelet.node.layout import LayoutError

_BLANK = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class _Member:
    """``"name": value``; characters ``begin`` (of the name) to ``end`` (exclusive), the value from ``start``."""

    name: str
    value: Any
    begin: int
    start: int
    end: int


def read(text: str, path: str) -> dict[str, Any]:
    """The file's object; an empty file is an empty object, as in dockerd. ``LayoutError`` for anything else."""
    return {member.name: member.value for member in _members(text, path)} if text.strip() else {}


def assign(text: str, key: str, value: int, path: str) -> str:
    """``text`` with ``key`` set, proven."""
    if not text.strip():
        return "{\n  " + f"{json.dumps(key)}: {value}" + "\n}\n"
    members = _members(text, path)
    old = next((member for member in members if member.name == key), None)
    if old is not None and old.value == value and not isinstance(old.value, bool):
        return text
    after = _replaced(text, old, value) if old is not None else _added(text, members, key, value)
    wanted = {**{member.name: member.value for member in members}, key: value}
    if list(read(after, path).items()) != list(wanted.items()):
        raise LayoutError("json-unprovable", f"{path} as edited would not read back as the old file with the new key")
    return after


def _replaced(text: str, old: _Member, value: int) -> str:
    return f"{text[: old.start]}{value}{text[old.end :]}"


def _added(text: str, members: tuple[_Member, ...], key: str, value: int) -> str:
    """Adds the member at the end, with the spacing of the member before it."""
    member = f"{json.dumps(key)}: {value}"
    if not members:
        end = "" if "\n" in text[text.index("{") :] else "\n"
        return text.replace("{", "{\n  " + member + end, 1)
    last = members[-1]
    begin = len(text[: last.begin].rstrip(" \t\r\n"))
    return f"{text[: last.end]},{text[begin : last.begin]}{member}{text[last.end :]}"


def _members(text: str, path: str) -> tuple[_Member, ...]:
    try:
        found = tuple(_scan(text))
    except (ValueError, RecursionError, IndexError) as error:
        raise LayoutError("json-unreadable", f"{path} is not readable JSON: {error or 'it ends too early'}") from None
    names = [member.name for member in found]
    if len(set(names)) < len(names):
        raise LayoutError("json-unreadable", f"{path} contains a key twice")
    return found


def _scan(text: str) -> list[_Member]:
    decoder = json.JSONDecoder(object_pairs_hook=_once)
    at = _expect(text, 0, "{")
    found: list[_Member] = []
    while text[at] != "}":
        if found:
            at = _expect(text, at, ",")
        if text[at] != '"':
            raise ValueError(f"a key was expected at character {at}")
        begin = at
        name, at = decoder.raw_decode(text, begin)
        start = _expect(text, _blank(text, at), ":")
        value, end = decoder.raw_decode(text, start)
        found.append(_Member(name, value, begin, start, end))
        at = _blank(text, end)
    if _blank(text, at + 1) != len(text):
        raise ValueError("something follows the object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _expect(text: str, at: int, mark: str) -> int:
    """The position after ``mark`` and the blanks that follow it."""
    at = _blank(text, at)
    if text[at] != mark:
        raise ValueError(f"{mark} was expected at character {at}")
    return _blank(text, at + 1)
