"""What ``-o json`` prints: frozen dataclasses, their one form in JSON, and the JSON Schema of that form.

A document is a dataclass with a name that ends in ``Document``; the rest of the name is its ``kind``. Its JSON begins with
``apiVersion`` and ``kind``. Keys are the fields' names in camelCase, and every key is always there: ``null`` is "none".
Enums are their values, times are RFC 3339 in UTC with milliseconds, and lengths of time are numbers of seconds.
Keys of mappings stay as they are: they are names of nodes, states and settings. The text is ASCII, so that no character
of a node's output can change a terminal.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, TypeVar

API_VERSION = "rollout/v1"

Json = Any
T = TypeVar("T")


class _Mark(Enum):
    MOMENT = "moment"
    INLINE = "inline"


Moment = Annotated[float, _Mark.MOMENT]
"""Seconds since the epoch, printed as a time. A plain ``float`` is printed as a number."""

Inline = Annotated[T, _Mark.INLINE]
"""A dataclass whose keys stand beside those of the dataclass that has it."""


@dataclasses.dataclass(frozen=True, slots=True)
class PrintedKey:
    """A key of a value in a document. ``field``: a field or property, or a path such as ``place.line``; ``""``: the value itself.

    Behind a ``None`` on the path is ``null``. ``name``: the key, as a field would be named (``""``: the path's last field).
    ``write``: what is printed in its place. ``kind``: the type of what is printed (``None``: what ``write`` returns, else the
    field's own). ``or_null``: an empty text is ``null``.
    """

    field: str
    name: str = ""
    write: Callable[[Any], Any] | None = None
    kind: Any = None
    or_null: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Shown:
    """How a value of the domain is printed: ``Annotated[Limits, Shown("…", ("in_flight", PrintedKey("within", "within_seconds")))]``.

    ``words``: its description in the schema. Only ``keys`` are printed, in their order.
    """

    words: str
    keys: tuple[str | PrintedKey, ...]


def page(document: Any) -> str:
    """The only document of a command, indented."""
    return json.dumps(values(document), indent=2)


def line(document: Any) -> str:
    """One document of a stream."""
    return json.dumps(values(document))


def values(document: Any) -> dict[str, Json]:
    """A document as JSON values."""
    kind: Any = type(document)
    return {"apiVersion": API_VERSION, "kind": kind_of(kind), **_form(kind).write(document)}


def kind_of(document: type) -> str:
    """``StatusDocument`` is of the kind ``Status``. ``TypeError``: not a document."""
    name, suffix, rest = document.__name__.rpartition("Document")
    if not (name and suffix) or rest:
        raise TypeError(f"{document.__name__} is not a document")
    return name


def instant(at: float) -> str:
    """Seconds since the epoch as ``2026-11-20T16:00:00.000Z``."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def seconds_of(instant: str) -> float | None:
    """The reverse, in seconds since the epoch; ``None`` for a text that is no time, or has no zone."""
    try:
        moment = datetime.fromisoformat(instant)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def schema(documents: Iterable[type]) -> dict[str, Json]:
    """The JSON Schema of these documents. Later versions may add keys, so other keys are allowed."""
    forms = {kind_of(document): _document_schema(document) for document in documents}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What rollout prints with `-o json`",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in sorted(forms)],
        "$defs": dict(sorted(forms.items())),
    }


def _document_schema(document: type) -> dict[str, Json]:
    schema = _form(document).schema
    head = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind_of(document)}}
    return {**schema, "properties": {**head, **schema["properties"]}, "required": [*head, *schema["required"]]}


# For each type one form, made once: how a value is written, and the schema of what is written.


@dataclasses.dataclass(frozen=True, slots=True)
class _Form:
    write: Callable[[Any], Json]
    schema: dict[str, Json]


_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


@cache
def _form(kind: Any) -> _Form:
    if kind in _SCALARS:
        return _Form(_same, {"type": _SCALARS[kind]})
    if kind is object:
        return _Form(_same, {})  # a value of YAML or JSON as it is
    if kind == Moment:
        return _Form(instant, {"type": "string", "format": "date-time"})
    if typing.get_origin(kind) is Annotated:
        shown = next(mark for mark in kind.__metadata__ if isinstance(mark, Shown))
        return _object(kind.__origin__, shown)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Form(lambda value: value.value, {"type": "string", "enum": [member.value for member in kind]})
    if dataclasses.is_dataclass(kind):
        return _object(kind)
    return _container(kind)


def _same(value: Json) -> Json:
    return value


def _container(kind: Any) -> _Form:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (tuple, frozenset):
        inner = _form(arguments[0])
        listed = sorted if origin is frozenset else list
        return _Form(
            lambda found: listed(inner.write(each) for each in found), {"type": "array", "items": inner.schema}
        )
    if origin is Mapping:
        inner = _form(arguments[1])
        return _Form(
            lambda found: {str(key): inner.write(each) for key, each in found.items()},
            {"type": "object", "additionalProperties": inner.schema},
        )
    if origin in (types.UnionType, typing.Union) and len(arguments) == 2 and arguments[1] is type(None):
        inner = _form(arguments[0])
        return _Form(lambda found: None if found is None else inner.write(found), _or_null(inner.schema))
    raise TypeError(f"no form in a document for {kind}")


def _or_null(schema: dict[str, Json]) -> dict[str, Json]:
    if "enum" in schema:
        return {"type": [schema["type"], "null"], "enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]} if "type" in schema else schema


def _object(kind: Any, shown: Shown | None = None) -> _Form:
    parts = tuple(_parts(kind) if shown is None else _shown_parts(kind, shown))
    words = _described(kind) if shown is None else _as_keys(shown.words)
    described = [words, *(form.schema.get("description", "") for _, key, form in parts if not key)]
    made: dict[str, Json] = {"type": "object", "description": "\n\n".join(filter(None, described))}
    properties: dict[str, Json] = {}
    for _, key, form in parts:
        properties |= {key: form.schema} if key else form.schema["properties"]
    made |= {"properties": properties, "required": list(properties)}

    def write(value: Any) -> Json:
        found: dict[str, Json] = {}
        for read, key, form in parts:
            written = form.write(read(value))
            if key:
                found[key] = written
            else:
                found |= written
        return found

    return _Form(write, made)


def _described(kind: Any) -> str:
    """Its docstring (``""``: it has none) for readers of JSON: names of fields as keys, and ``null``."""
    words = inspect.cleandoc(kind.__doc__ or "")
    if words.startswith(f"{kind.__name__}("):  # what ``dataclass`` writes
        return ""
    return _as_keys(words)


def _as_keys(words: str) -> str:
    return _NAMED.sub(lambda name: f"`{'null' if name[1] == 'None' else _camel(name[1])}`", words)


_NAMED = re.compile(r"``([^`]+)``")


_Part = tuple[Callable[[Any], Any], str, _Form]
"""How it is read from the value, its key (``""``: its keys stand beside the others), its form."""


def _parts(kind: Any) -> Iterator[_Part]:
    """Each field."""
    hints = typing.get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        hint, read = hints[field.name], attrgetter(field.name)
        if typing.get_origin(hint) is Annotated and _Mark.INLINE in hint.__metadata__:
            marks = [mark for mark in hint.__metadata__ if isinstance(mark, Shown)]
            yield read, "", _form(Annotated[hint.__origin__, marks[0]] if marks else hint.__origin__)
        else:
            yield read, _camel(field.name), _form(hint)


def _shown_parts(kind: Any, shown: Shown) -> Iterator[_Part]:
    for key, name, hint in printed_keys(kind, shown):
        yield _reader(key), _camel(name), _form(hint)


def printed_keys(kind: Any, shown: Shown) -> Iterator[tuple[PrintedKey, str, Any]]:
    """Each key of a value of this type, its name as a field's, and the type of what is printed."""
    for each in shown.keys:
        key = PrintedKey(each) if isinstance(each, str) else each
        hint = key.kind
        if hint is None:
            of_field, may_end = _type_at(kind, _steps(key))
            hint = _returned(key.write) or of_field
            hint = hint | None if may_end or key.or_null else hint
        yield key, key.name or _steps(key)[-1], hint


def _steps(key: PrintedKey) -> Sequence[str]:
    return key.field.split(".") if key.field else ()


def _returned(write: Callable[[Any], Any] | None) -> Any:
    if write is None or isinstance(write, type):
        return write
    return typing.get_type_hints(write, include_extras=True).get("return")


def _type_at(kind: Any, steps: Sequence[str]) -> tuple[Any, bool]:
    """Of the field at the end of a path; whether something before it may be ``None``."""
    may_end = False
    for step in steps:
        if types.NoneType in typing.get_args(kind):
            (kind,), may_end = (each for each in typing.get_args(kind) if each is not types.NoneType), True
        hint = typing.get_type_hints(kind, include_extras=True).get(step)
        kind = hint or typing.get_type_hints(getattr(kind, step).fget, include_extras=True)["return"]
    return kind, may_end


def _reader(key: PrintedKey) -> Callable[[Any], Any]:
    steps, write = _steps(key), key.write

    def read(value: Any) -> Any:
        for step in steps:
            if value is None:
                return None
            value = getattr(value, step)
        if key.or_null:
            return value or None
        return value if write is None else write(value)

    return attrgetter(key.field) if len(steps) == 1 and write is None and not key.or_null else read


def _camel(name: str) -> str:
    """``exit_code`` is ``exitCode``; ``from_`` is ``from``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
