"""JSON from outside, with bounded nesting, dataclasses as JSON, and JSON that is written piece by piece."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import types
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any

from rollout.core.text.terminal import printable


def parse(text: str | bytes) -> Any:
    """The value in a JSON text, or ``ValueError``, also for one nested more deeply than Python can follow.

    ``json.loads`` raises ``RecursionError`` there, which is not a ``ValueError`` and so is not caught by its callers. A
    node's file or a journal row with ``[[[[…`` would end the whole run as an internal error.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """``object_pairs_hook`` of ``json``: a map, or ``ValueError`` for a key that is there twice."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"`{printable(twice, 60)}` is a duplicate key")
    return entries


# Frozen dataclasses ↔ plain JSON values, strictly: every key present and known, every type as declared.
#
# Keys are the names that fields have on disk (see ``on_disk``).
#
# One converter is compiled for each type and remembered. Bytes are UTF-8 text if they can be, else ``{"base64":
# …}``.


# The name of a field in journals, plans and snapshots, if its name in code differs.
#
# A field is written under its own name. A renamed field keeps the name that older versions wrote:
# ``reverts: bool = field(default=False, metadata=on_disk("to_revert"))``.


_KEY = "on disk"


def on_disk(name: str) -> Mapping[str, str]:
    """The ``metadata`` of a field that is written as ``name``."""
    return {_KEY: name}


def name_on_disk(field: dataclasses.Field[Any]) -> str:
    key: str = field.metadata.get(_KEY, field.name)
    return key


Json = Any


class ShapeError(ValueError):
    """JSON that is not the expected value; the message begins with the place."""


@dataclasses.dataclass(frozen=True, slots=True)
class Converter:
    """``plain``: the type of a scalar, which JSON has as it is; ``None``: no scalar."""

    encode: Callable[[Any], Json]
    decode: Callable[[Json, str], Any]
    plain: type | None = None


def encode(value: Any) -> Json:
    """A dataclass as JSON values."""
    kind: Any = type(value)
    return converter(kind).encode(value)


def decode(kind: Any, data: Json) -> Any:
    """JSON values as an instance of the dataclass ``kind``, or ``ShapeError``."""
    return converter(kind).decode(data, "")


_OWN: dict[Any, Converter] = {}


def has_form(kind: Any, own: Converter) -> None:
    """A type that is not written as its fields, such as one with a field that may be of several kinds."""
    _OWN[kind] = own


@cache
def converter(kind: Any) -> Converter:
    """The converter of a type, for both directions."""
    if kind in _OWN:
        return _OWN[kind]
    if kind is bytes:
        return Converter(_encode_bytes, _decode_bytes)
    if kind in (str, int, float, bool):
        return _scalar(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum(kind)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind)
    return _container(kind)


def _shown(where: str) -> str:
    """A place in a document that others may have written."""
    return printable(where) or "the root"


def _fail(where: str, wanted: str) -> ShapeError:
    return ShapeError(f"{_shown(where)} is not {wanted}")


def _scalar(kind: type) -> Converter:
    def read(data: Json, where: str) -> Any:
        if kind is float and type(data) is int:
            return float(data)
        if type(data) is not kind:
            raise _fail(where, f"of type {kind.__name__}")
        return data

    return Converter(kind, read, kind)


def _enum(kind: type[Enum]) -> Converter:
    members = {member.value: member for member in kind}
    values = {member: member.value for member in kind}

    def read(data: Json, where: str) -> Any:
        try:
            return members[data]
        except (KeyError, TypeError):
            raise _fail(where, f"one of {', '.join(str(member.value) for member in kind)}") from None

    return Converter(values.__getitem__, read)


def _encode_bytes(value: bytes) -> Json:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def _decode_bytes(data: Json, where: str) -> bytes:
    if isinstance(data, str):
        try:
            return data.encode("utf-8")
        except UnicodeEncodeError:
            raise _fail(where, "text that UTF-8 can hold") from None
    if isinstance(data, dict) and set(data) == {"base64"} and isinstance(data["base64"], str):
        try:
            return base64.b64decode(data["base64"], validate=True)
        except (binascii.Error, ValueError):
            pass
    raise _fail(where, 'text or {"base64": …}')


def _dataclass(kind: Any) -> Converter:
    """Whole before it is used: no thread can meet a part of it. So no type may have itself as a part."""
    hints = typing.get_type_hints(kind)
    names = {entry.name: name_on_disk(entry) for entry in dataclasses.fields(kind)}
    known = frozenset(names.values())
    inner = tuple((name, key, converter(hints[name])) for name, key in names.items())

    def write(value: Any) -> Json:
        return {
            key: part if type(part := getattr(value, name)) is entry.plain else entry.encode(part)
            for name, key, entry in inner
        }

    def read(data: Json, where: str) -> Any:
        if not isinstance(data, dict):
            raise _fail(where, "an object")
        if data.keys() != known:
            wrong = min(data.keys() ^ known)
            raise ShapeError(f"{_shown(where)}: {wrong[:80]!r} is {'unknown' if wrong in data else 'missing'}")
        return kind(
            *[  # most values are scalars, which need no call and no place
                part
                if type(part := data[key]) is entry.plain
                else entry.decode(part, f"{where}.{key}" if where else key)
                for _, key, entry in inner
            ]
        )

    return Converter(write, read)


def _container(kind: Any) -> Converter:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return _sequence(converter(arguments[0]), tuple)
    if origin is frozenset:
        return _sequence(converter(arguments[0]), frozenset)
    if origin is Mapping:
        inner = converter(arguments[1])

        def write(values: Any) -> Json:
            return {key: inner.encode(value) for key, value in values.items()}

        def read(data: Json, where: str) -> Any:
            if not isinstance(data, dict):
                raise _fail(where, "an object")
            return {key: inner.decode(value, f"{where}.{key}") for key, value in data.items()}

        return Converter(write, read)
    if origin in (types.UnionType, typing.Union) and len(arguments) == 2 and arguments[1] is type(None):
        return _optional(converter(arguments[0]))
    raise TypeError(f"no JSON form for {kind}")


def _sequence(inner: Converter, made: type) -> Converter:
    def write(values: Any) -> Json:
        if not values:
            return []
        encoded = [inner.encode(value) for value in values]
        return sorted(encoded) if made is frozenset else encoded

    def read(data: Json, where: str) -> Any:
        if not isinstance(data, list):
            raise _fail(where, "a list")
        if not data:
            return made()
        return made(inner.decode(entry, f"{where}[{at}]") for at, entry in enumerate(data))

    return Converter(write, read)


def _optional(inner: Converter) -> Converter:
    def write(value: Any) -> Json:
        return None if value is None else inner.encode(value)

    def read(data: Json, where: str) -> Any:
        return None if data is None else inner.decode(data, where)

    return Converter(write, read)


# Values of one dataclass as lines of text, one after the other.


def line_writer(kind: Any, also: Mapping[str, str]) -> Callable[[Any], str]:
    """What writes a value of the dataclass ``kind`` as ``json.dumps(encode(value) | also, sort_keys=True)`` does, in half the time.

    The keys are sorted and written once, and so is a default, which most fields of most values are.
    """
    hints = typing.get_type_hints(kind)
    fields = {name_on_disk(field): field for field in dataclasses.fields(kind)}
    shown = dict.fromkeys(fields, "%s") | {key: _any(text).replace("%", "%%") for key, text in also.items()}
    written = [f"{_any(key).replace('%', '%%')}: {shown[key]}" for key in sorted(shown)]
    template = f"{{{', '.join(written)}}}"
    parts = tuple(_part(fields[key], converter(hints[fields[key].name])) for key in sorted(fields))

    def write(value: Any) -> str:
        return template % tuple(
            [
                as_default
                if (part := getattr(value, name)) is default
                else (text(part) if type(part) is plain else other(part))
                for name, default, as_default, plain, text, other in parts
            ]
        )

    return write


_AsText = Callable[[Any], str]


def _part(field: dataclasses.Field[Any], entry: Converter) -> tuple[str, Any, str, type | None, _AsText, _AsText]:
    """Its name, its default and the text of that, what writes a value of the scalar that it is, and what writes any other."""

    def other(part: Any) -> str:
        data = entry.encode(part)
        return _TEXTS.get(type(data), _any)(data)

    default = field.default  # ``MISSING`` is no value's part
    as_default = "" if default is dataclasses.MISSING else other(default)
    return field.name, default, as_default, entry.plain, _TEXTS.get(entry.plain, _any), other


def _float(data: float) -> str:
    return float.__repr__(data) if isfinite(data) else _any(data)


_any = json.JSONEncoder(sort_keys=True, check_circular=False).encode  # a value of ours is a tree
_TEXTS: Mapping[type | None, _AsText] = {str: encode_basestring_ascii, int: int.__repr__, float: _float}
"""As ``_any`` writes them, without what it prepares for each value."""


_SPACE = " \t\n\r"
_READ = json.JSONDecoder().raw_decode


class JsonStream:
    """Reads from the start to the end. All methods raise ``ValueError`` where the text is not what they expect."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def value(self) -> Json:
        """The next value, whole."""
        self._skip()
        try:
            value, self._at = _READ(self._text, self._at)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        return value

    def each_key(self) -> Iterator[str]:
        """The keys of the next object. The caller reads each key's value before it asks for the next key."""
        self._take("{")
        if self._next() == "}":
            self._take("}")
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise ValueError("a key is not a text")
            self._take(":")
            yield key
            if self._next() == "}":
                self._take("}")
                return
            self._take(",")

    def end(self) -> None:
        """Nothing follows."""
        if self._next():
            raise ValueError("more text follows")

    def _next(self) -> str:
        self._skip()
        return self._text[self._at : self._at + 1]

    def _take(self, expected: str) -> None:
        if self._next() != expected:
            raise ValueError(f"{expected} is missing")
        self._at += 1

    def _skip(self) -> None:
        while self._text[self._at : self._at + 1] in _SPACE and self._at < len(self._text):
            self._at += 1
