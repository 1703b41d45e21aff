"""The parts of Go that declarations of types and tables need: no comments, bodies by their braces, struct fields with their tags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRUCT = re.compile(r"^type (\w+) struct \{", re.MULTILINE)
_NAMED = re.compile(r"^type (\w+) ([^\s{]+)\s*$", re.MULTILINE)
_FIELD = re.compile(r"^\s*(?:(\w+)\s+)?([^\s`]+)(?:\s+`([^`]*)`)?\s*$")
_JSON = re.compile(r'json:"([^"]*)"')
_PAIRS = {"{": "}", "(": ")"}


@dataclass(frozen=True, slots=True)
class Field:
    """A struct's field: its Go name and type, its name in JSON and whether it may be left out. ``inline``: its fields belong to the struct itself."""

    name: str
    go_type: str
    json: str
    omitempty: bool
    inline: bool


def read(path: Path) -> str:
    """The file without its comments."""
    text = path.read_text(encoding="utf-8")
    return _COMMENT.sub(lambda found: found[0] if found[0][0] in '"`' else "", text)


def body(text: str, start: int) -> str:
    """The text between the brace or bracket at ``start`` and the one that closes it."""
    opened, closes, depth = text[start], _PAIRS[text[start]], 0
    for at in range(start, len(text)):
        depth += (text[at] == opened) - (text[at] == closes)
        if not depth:
            return text[start + 1 : at]
    raise ValueError(f"a {opened} is never closed")


def structs(text: str) -> Mapping[str, tuple[Field, ...]]:
    """Every struct with its fields in order."""
    return {found[1]: tuple(_fields(body(text, found.end() - 1))) for found in _STRUCT.finditer(text)}


def named(text: str) -> Mapping[str, str]:
    """``type Level uint32``: the type behind each such name."""
    return {found[1]: found[2] for found in _NAMED.finditer(text)}


def _fields(text: str) -> Iterator[Field]:
    for line in text.splitlines():
        found = _FIELD.match(line)
        if found is None:
            continue
        tag = _JSON.search(found[3] or "")
        name, _, rest = (tag[1] if tag else "").partition(",")
        own = found[1] or found[2].rpartition(".")[2]
        yield Field(own, found[2], name, "omitempty" in rest, not found[1] or "inline" in rest)
