"""The types of KubeletConfiguration by minor: what a kubelet decodes and what its ``/configz`` shows.

The data is ``kubelet_types.json`` in ``rollout/kubelet``; the file describes how it was derived. Minors outside
``known_minors`` of ``rollout.kubelet.fields`` have no types: every function here then returns an empty result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from rollout.core.model.frozen import dataclass

ROOT = "KubeletConfiguration"


class Form(StrEnum):
    """The JSON form of a value; all but the last three are scalars."""

    BOOL = "bool"
    STRING = "string"
    INT32 = "int32"
    INT64 = "int64"
    UINT32 = "uint32"
    FLOAT64 = "float64"
    DURATION = "duration"  # text in Go's duration grammar
    NANOSECONDS = "nanoseconds"  # a whole number (int64)
    DURATION_OR_NANOSECONDS = "durationOrNanoseconds"
    QUANTITY = "quantity"  # text, or a number
    TIME = "time"  # RFC 3339 text
    OBJECT = "object"
    LIST = "list"
    MAP = "map"


class WhenShown(StrEnum):
    """When ``/configz`` prints a field."""

    ALWAYS = "always"
    NONEMPTY = "nonempty"  # not when it is "", 0, false, [] or {}
    SET = "set"  # not when it is not set; a written zero is printed
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class FieldType:
    """``type_name`` names an OBJECT's type; ``element`` is the type of a LIST's or a MAP's values (its keys are texts).

    ``pointer``: the kubelet distinguishes "not written" from a written zero, so a written zero is not replaced by the
    default. For an ``element``, ``pointer`` and ``shown`` have no meaning.
    """

    form: Form
    type_name: str = ""
    element: FieldType | None = None
    pointer: bool = False
    shown: WhenShown = WhenShown.ALWAYS


def fields_of(type_name: str, minor: int) -> Mapping[str, FieldType]:
    """The fields of a type in a kubelet 1.``minor``, by their exact JSON names; none where the minor has no such type.

    ``kind`` and ``apiVersion`` are fields of ``ROOT``. Raises ``KeyError`` for a type that no minor has.
    """
    return _of_minor(minor)[type_name]


@cache
def _data() -> Mapping[str, Any]:
    text = resources.files("rollout.kubelet").joinpath("kubelet_types.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


@cache
def _of_minor(minor: int) -> Mapping[str, Mapping[str, FieldType]]:
    return {
        type_name: {
            name: _field_type(span)
            for name, spans in entries.items()
            for span in spans
            if span["since"] <= minor <= span["last"]
        }
        for type_name, entries in _data()["types"].items()
    }


def _field_type(span: Mapping[str, Any]) -> FieldType:
    kind = _kind(span["kind"])
    return FieldType(kind.form, kind.type_name, kind.element, span.get("pointer", False), WhenShown(span["shown"]))


def _kind(text: str) -> FieldType:
    """``list<T>``, ``map<string,T>``, a scalar's form, or a type's name (these begin with a capital)."""
    if text.startswith("list<"):
        return FieldType(Form.LIST, element=_kind(text[len("list<") : -1]))
    if text.startswith("map<string,"):
        return FieldType(Form.MAP, element=_kind(text[len("map<string,") : -1]))
    if text[0].isupper():
        return FieldType(Form.OBJECT, text)
    return FieldType(Form(text))
