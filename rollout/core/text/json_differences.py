"""Many values that are almost the same, as JSON: one of them in full, of each other one only what differs.

What differs is a tree with the same keys, down to the values that differ. It is applied to the decoded value, so that the decoded
values share everything else.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from sys import intern
from typing import Any

from rollout.core.text.json_text import Json, ShapeError, converter, name_on_disk


def outline(tree: Json, whole: frozenset[str]) -> Json:
    """The keys of a tree without its values, except those under the keys ``whole``. Trees with one outline differ only in values."""
    if not isinstance(tree, dict):
        return None
    return {key: value if key in whole else outline(value, whole) for key, value in tree.items()}


def difference(base: Json, tree: Json) -> Json:
    """What of ``tree`` differs from ``base``, a tree with the same outline; ``{}``: nothing."""
    if not isinstance(tree, dict):
        return tree
    return {
        key: difference(base[key], value)
        for key, value in tree.items()
        if value is not base[key] and value != base[key]
    }


def applied(kind: Any, value: Any, changes: Json, where: str) -> Any:
    """``value`` of type ``kind`` with these differences. Raises ``ShapeError``, strict like ``json_text.decode``."""
    if not isinstance(changes, dict):
        return converter(kind).decode(changes, where)
    if typing.get_origin(kind) is Mapping:
        return _mapping(typing.get_args(kind)[1], value, changes, where)
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        kind = next(argument for argument in typing.get_args(kind) if argument is not type(None))
    if not dataclasses.is_dataclass(value):
        raise ShapeError(f"{where} has no parts that could differ")
    return _dataclass(kind, value, changes, where)


def _dataclass(kind: Any, value: Any, changes: dict[str, Json], where: str) -> Any:
    fields = _fields(kind)
    unknown = changes.keys() - fields.keys()
    if unknown:
        raise ShapeError(f"{where}: {min(unknown)[:80]!r} is unknown")
    changed = {}
    for key, change in changes.items():
        name, inner = fields[key]
        changed[name] = applied(inner, getattr(value, name), change, f"{where}.{key}")
    return dataclasses.replace(value, **changed)


@cache
def _fields(kind: Any) -> Mapping[str, tuple[str, Any]]:
    """Key on disk → name and type."""
    hints = typing.get_type_hints(kind)
    return {name_on_disk(each): (each.name, hints[each.name]) for each in dataclasses.fields(kind)}


def _mapping(inner: Any, value: Any, changes: dict[str, Json], where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not changes.keys() <= value.keys():
        raise ShapeError(f"{where}: a key is unknown")
    return Overlaid(
        value, {intern(key): applied(inner, value[key], change, f"{where}.{key}") for key, change in changes.items()}
    )


class Overlaid(Mapping[str, Any]):
    """A mapping with other values for some of its keys, without a copy of the rest."""

    __slots__ = ("_base", "_own")

    def __init__(self, base: Mapping[str, Any], own: dict[str, Any]) -> None:
        self._base = base
        self._own = own

    def __getitem__(self, key: str) -> Any:
        return self._own[key] if key in self._own else self._base[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._base)

    def __len__(self) -> int:
        return len(self._base)

    def __repr__(self) -> str:
        return repr(dict(self))
