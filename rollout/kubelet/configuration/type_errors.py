"""How a kubelet says that a value is of the wrong type.

Up to 1.22 json-iterator decodes (``readUint32: unexpected character``), from 1.23 on sigs.k8s.io/json, which speaks as
encoding/json does. json-iterator also shows the Go names of fields and the bytes around the mistake; here stands the path
as it is written in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.kubelet.configuration.schema import FieldType, Form
from rollout.kubelet.configuration.yaml_document import Json

STANDARD_SINCE = 23
"""The first minor that decodes with sigs.k8s.io/json."""

_GO_NAMES: Mapping[Form, str] = {
    Form.BOOL: "bool",
    Form.STRING: "string",
    Form.INT32: "int32",
    Form.INT64: "int64",
    Form.UINT32: "uint32",
    Form.FLOAT64: "float64",
    Form.DURATION: "string",
    Form.NANOSECONDS: "int64",
    Form.DURATION_OR_NANOSECONDS: "string",
    Form.QUANTITY: "string",
    Form.TIME: "string",
}
_NUMBERS = frozenset({Form.INT32, Form.INT64, Form.UINT32, Form.NANOSECONDS})


@dataclass(frozen=True, slots=True)
class Where:
    """A value's place in the object: its dotted path, and the Go type whose field holds it."""

    path: str
    owner: str


def wrong_type(value: Json, kind: FieldType, where: Where, minor: int) -> str:
    """The kubelet's complaint about ``value`` where a ``kind`` belongs."""
    if minor >= STANDARD_SINCE:
        return f"json: cannot unmarshal {_said(value, kind)} into Go struct field {where.owner}.{where.path} of type {go_name(kind)}"
    if kind.form is Form.DURATION:
        return (
            f"v1beta1.{where.owner}.{where.path}: json: cannot unmarshal {_kind_of(value)} into Go value of type string"
        )
    return f"v1beta1.{where.owner}.{where.path}: {_iterator(value, kind)}"


def go_name(kind: FieldType) -> str:
    """A type as Go prints it."""
    if kind.form is Form.LIST and kind.element:
        return f"[]{go_name(kind.element)}"
    if kind.form is Form.MAP and kind.element:
        return f"map[string]{go_name(kind.element)}"
    return _GO_NAMES.get(kind.form) or f"v1beta1.{kind.type_name}"


def _kind_of(value: Json) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _said(value: Json, kind: FieldType) -> str:
    said = _kind_of(value)
    return f"number {value}" if said == "number" and kind.form in _NUMBERS else said


def _iterator(value: Json, kind: FieldType) -> str:
    found = _first_character(value)
    if kind.form is Form.BOOL:
        return f"ReadBool: expect t or f, but found {found}"
    if kind.form in _NUMBERS:
        return _no_integer(value)
    if kind.form is Form.LIST:
        return f"decode slice: expect [ or n, but found {found}"
    if kind.form is Form.MAP:
        return f"ReadMapCB: expect {{ or n, but found {found}"
    if kind.form is Form.OBJECT:
        return f"readObjectStart: expect {{ or n, but found {found}"
    return f'ReadString: expects " or n, but found {found}'


def _no_integer(value: Json) -> str:
    if isinstance(value, float):
        return "assertInteger: can not decode float as int"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"ReadInt32: overflow: {value}"
    return "readUint32: unexpected character: \ufffd"


def _first_character(value: Json) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, int | float):
        return str(value)[0]
    if isinstance(value, str):
        return '"'
    return "[" if isinstance(value, list) else "{"
