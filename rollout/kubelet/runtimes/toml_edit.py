"""Sets one key of another owner's TOML file; every other byte stays.

tomlkit keeps what it reads. ``tomllib``, another parser, proves each edit: read again, the file must have its old
content with our key. In bytes the edit is one replaced value, or lines added in one place. Every other result is
refused: inline tables on the way, a file that tomlkit does not return byte for byte, TOML that one of the parsers does
not read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AbstractTable, Table

from rollout.core.model.settings import Value
from rollout.kubelet.node.layout import LayoutError

KeyPath = tuple[str, ...]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SENTINEL = 8_070_605_040_302_010


@lru_cache(maxsize=4096)
def read(text: str, path: str) -> Mapping[str, Any]:
    """The content of the file of this ``path``; ``LayoutError`` when it is not TOML."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise LayoutError("toml-unreadable", f"{path} is not readable TOML: {error}") from None


def value_at(document: Mapping[str, Any], keys: KeyPath) -> Any:  # any value of TOML
    """The value of a key, or ``None`` where it or a table on the way is missing."""
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


@lru_cache(maxsize=4096)
def assign(text: str, keys: KeyPath, value: str | int, path: str) -> str:
    """``text`` with the key set to ``value``, proven; ``path`` is for messages."""
    before = read(text, path)
    if value_at(before, keys) == value:
        return text
    try:
        after = _assigned(text, keys, value, path)
    except (TOMLKitError, RecursionError, TypeError, KeyError, ValueError) as error:
        raise LayoutError("toml-unprovable", f"{path} cannot be edited safely: {error}") from None
    _prove(text, after, _with(before, keys, value), path)
    return after


def _assigned(text: str, keys: KeyPath, value: str | int, path: str) -> str:
    document = tomlkit.parse(text)
    if tomlkit.dumps(document) != text:
        raise LayoutError("toml-unprovable", f"{path} does not come back byte for byte from its parser")
    table = _table(document, keys[:-1])
    if table is None:
        return _with_table(text, document, keys, value)
    if keys[-1] in table:
        table[keys[-1]] = value
        return tomlkit.dumps(document)
    last = _last_value(table)
    if last is None:
        table[keys[-1]] = value
        return tomlkit.dumps(document)
    return _after_line(text, _value_end(text, (*keys[:-1], last)), _line(keys[-1], value))


def _with_table(text: str, document: tomlkit.TOMLDocument, keys: KeyPath, value: str | int) -> str:
    """``text`` with a new table at its end; with one more dotted key where such keys are the table, which has no header then."""
    added = text + _new_table(text, keys, value)
    try:
        tomllib.loads(added)
    except tomllib.TOMLDecodeError:
        table: Any = document
        for key in keys[:-1]:
            table = table[key]
        table[keys[-1]] = value
        return tomlkit.dumps(document)
    return added


def _table(document: Any, keys: KeyPath) -> Any:  # tomlkit's containers are untyped maps
    """The table at ``keys`` if the file has one with its own header (or is it); ``None`` where one must be added."""
    table = document
    for key in keys:
        if not isinstance(table, Mapping) or key not in table:
            return None
        table = table[key]
    if isinstance(table, Table) and table.is_super_table():
        return None
    if not isinstance(table, Mapping):
        raise ValueError(f"{'.'.join(keys)} is not a table")
    return table


def _last_value(table: Any) -> str | None:
    plain = [str(key) for key, item in table.items() if not isinstance(item, AbstractTable | list)]
    return plain[-1] if plain else None


def _value_end(text: str, keys: KeyPath) -> int:
    """An offset on the line where the value of this key ends: found by setting it to a mark and comparing."""
    document = tomlkit.parse(text)
    table = _table(document, keys[:-1])
    table[keys[-1]] = _SENTINEL
    _, end = _difference(text, tomlkit.dumps(document))
    return end


def _difference(before: str, after: str) -> tuple[int, int]:
    """The span of ``before`` that ``after`` replaced, without common bytes at both ends."""
    most = min(len(before), len(after))
    start = next((at for at in range(most) if before[at] != after[at]), most)
    rest = most - start
    tail = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    return start, len(before) - tail


def _after_line(text: str, at: int, line: str) -> str:
    """``line`` added after the line of ``at``, with its indentation."""
    begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    above = text[begin : len(text) if end < 0 else end]
    indent = above[: len(above) - len(above.lstrip(" \t"))]
    if end < 0:
        return f"{text}{_end_of_line(text)}{indent}{line}"
    return f"{text[: end + 1]}{indent}{line}{_end_of_line(text)}{text[end + 1 :]}"


def _new_table(text: str, keys: KeyPath, value: str | int) -> str:
    """The text to append for a table that ``text`` does not have."""
    end = _end_of_line(text)
    gap = "" if not text else end if text.endswith("\n") else end + end
    mark = "'" if ".'" in text else '"'
    header = ".".join(key if _BARE.fullmatch(key) else f"{mark}{key}{mark}" for key in keys[:-1])
    lines = [f"[{header}]"] if header else []
    return gap + end.join([*lines, f"{'  ' if header else ''}{_line(keys[-1], value)}", ""])


def _line(key: str, value: str | int) -> str:
    return f"{key} = {tomlkit.item(value).as_string()}"


def _end_of_line(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _with(document: Mapping[str, Any], keys: KeyPath, value: Value) -> dict[str, Any]:
    head, *rest = keys
    inner = document.get(head)
    if rest:
        value = _with(inner if isinstance(inner, Mapping) else {}, tuple(rest), value)
    return {**document, head: value}


def _prove(before: str, after: str, wanted: Mapping[str, Any], path: str) -> None:
    start, end = _difference(before, after)
    try:
        proven = tomllib.loads(after) == wanted
    except tomllib.TOMLDecodeError:
        proven = False
    if not proven or "\n" in before[start:end]:
        raise LayoutError("toml-unprovable", f"{path} as edited would not read back as the old file with the new key")
