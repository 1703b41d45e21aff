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
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache
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
    found = _form(document).schema
    head = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind_of(document)}}
    return {**found, "properties": {**head, **found["properties"]}, "required": [*head, *found["required"]]}


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
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Form(lambda value: value.value, {"type": "string", "enum": [member.value for member in kind]})
    if dataclasses.is_dataclass(kind):
        parts = tuple(_parts(kind))
        described = [_described(kind), *(form.schema.get("description", "") for _, key, form in parts if not key)]
        made: dict[str, Json] = {"type": "object", "description": "\n\n".join(filter(None, described))}
        properties: dict[str, Json] = {}
        for _, key, form in parts:
            properties |= {key: form.schema} if key else form.schema["properties"]
        made |= {"properties": properties, "required": list(properties)}

        def write(value: Any) -> Json:
            found: dict[str, Json] = {}
            for name, key, form in parts:
                written = form.write(getattr(value, name))
                if key:
                    found[key] = written
                else:
                    found |= written
            return found

        return _Form(write, made)
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


def _or_null(found: dict[str, Json]) -> dict[str, Json]:
    if "enum" in found:
        return {"type": [found["type"], "null"], "enum": [*found["enum"], None]}
    return {**found, "type": [found["type"], "null"]} if "type" in found else found


def _described(kind: Any) -> str:
    """Its docstring (``""``: it has none) for readers of JSON: names of fields as keys, and ``null``."""
    words = inspect.cleandoc(kind.__doc__ or "")
    if words.startswith(f"{kind.__name__}("):  # what ``dataclass`` writes
        return ""
    return _NAMED.sub(lambda name: f"`{'null' if name[1] == 'None' else _camel(name[1])}`", words)


_NAMED = re.compile(r"``([^`]+)``")


def _parts(kind: Any) -> Iterator[tuple[str, str, _Form]]:
    """Each field with its key (``""``: its keys stand beside the others) and its form."""
    hints = typing.get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        if typing.get_origin(hint) is Annotated and _Mark.INLINE in hint.__metadata__:
            yield field.name, "", _form(hint.__origin__)
        else:
            yield field.name, _camel(field.name), _form(hint)


def _camel(name: str) -> str:
    """``exit_code`` is ``exitCode``; ``from_`` is ``from``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
