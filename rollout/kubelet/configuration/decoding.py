"""Decodes JSON into a KubeletConfiguration, by the types of one minor, and shows one as JSON; names are case sensitive
(kubernetes #64612).

The object is a mapping by JSON names. A field that is missing is nil or zero. Durations are kept as Go prints them, so
a written ``60s`` equals a default of ``1m0s``. ``null`` is "not written", except for a duration that is no
pointer: Go reads the text ``""``, which is no duration.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.core.text.durations import go_format_nanoseconds
from rollout.kubelet.configuration import quantities, schema
from rollout.kubelet.configuration.go_values import GoValueError, duration, quoted
from rollout.kubelet.configuration.schema import FieldType, Form, WhenShown
from rollout.kubelet.configuration.yaml_document import Json, Path

# The kubelet's errors for a value of the wrong type.
#
# Up to 1.22 json-iterator decodes (``readUint32: unexpected character``). From 1.23 on sigs.k8s.io/json decodes, with
# the errors of encoding/json. json-iterator also shows the Go names of fields and the bytes around the mistake; these
# texts have the path as it is written in the file.


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
    """A value's place in the object: its dotted path, and the Go type that has the field."""

    path: str
    owner: str


def wrong_type(value: Json, kind: FieldType, where: Where, minor: int) -> str:
    """The kubelet's error for ``value`` where a ``kind`` is expected."""
    if kind.form is Form.DURATION_OR_NANOSECONDS:
        return _no_duration(value)
    if minor >= STANDARD_SINCE:
        return f"json: cannot unmarshal {_json_type(value, kind)} into Go struct field {where.owner}.{where.path} of type {_named(kind, where) or go_name(kind, minor)}"
    if kind.form is Form.DURATION:
        return (
            f"v1beta1.{where.owner}.{where.path}: json: cannot unmarshal {_kind_of(value)} into Go value of type string"
        )
    return f"v1beta1.{where.owner}.{where.path}: {_iterator(value, kind)}"


_VERBOSITY_SINCE = 25
"""From this minor on a verbosity, the only uint32, has a type of its own (component-base ``logs/api/v1/types.go``)."""


def go_name(kind: FieldType, minor: int) -> str:
    """A type as Go prints it."""
    if kind.form is Form.LIST and kind.element and kind.element.type_name == "VModuleItem":
        return f"{_package('VModuleItem', minor)}.VModuleConfiguration"
    if kind.form is Form.LIST and kind.element:
        return f"[]{go_name(kind.element, minor)}"
    if kind.form is Form.MAP and kind.element:
        return f"map[string]{go_name(kind.element, minor)}"
    if kind.form is Form.UINT32 and minor >= _VERBOSITY_SINCE:
        return "v1.VerbosityLevel"
    return _GO_NAMES.get(kind.form) or f"{_package(kind.type_name, minor)}.{kind.type_name}"


_LOGGING = frozenset({"FormatOptions", "JSONOptions", "LoggingConfiguration", "TextOptions", "VModuleItem"})
_OF_V1 = frozenset({"Taint", "TracingConfiguration"})


def _package(type_name: str, minor: int) -> str:
    """The package of a type: the kubelet's own, that of the core, or component-base's (two of them, before and since 1.25)."""
    if type_name in _LOGGING:
        return "v1" if minor >= _VERBOSITY_SINCE else "v1alpha1"
    return "v1" if type_name in _OF_V1 else "v1beta1"


_NAMED_TYPES: Mapping[tuple[str, str], str] = {
    ("KubeletAuthorization", "mode"): "v1beta1.KubeletAuthorizationMode",
    ("KubeletConfiguration", "configMapAndSecretChangeDetectionStrategy"): "v1beta1.ResourceChangeDetectionStrategy",
    (
        "KubeletConfiguration",
        "imagePullCredentialsVerificationPolicy",
    ): "v1beta1.ImagePullCredentialsVerificationPolicy",
    ("KubeletConfiguration", "memoryReservationPolicy"): "v1beta1.MemoryReservationPolicy",
    ("MemoryReservation", "limits"): "v1.ResourceList",
    ("Taint", "effect"): "v1.TaintEffect",
}
"""Texts and a map with a type of their own, by the type that has the field (``kubelet/config/v1beta1/types.go``)."""


def _named(kind: FieldType, where: Where) -> str:
    name = _NAMED_TYPES.get((where.owner, where.path.rpartition(".")[2]), "")
    return name if kind.form in {Form.STRING, Form.MAP} else ""


def _kind_of(value: Json) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _json_type(value: Json, kind: FieldType) -> str:
    type_name = _kind_of(value)
    return f"number {value}" if type_name == "number" and kind.form in _NUMBERS else type_name


def _no_duration(value: Json) -> str:
    """``TimeOrMetaDuration`` has a decoder of its own (component-base ``logs/api/v1/types.go``, 1.28 to 1.36)."""
    written = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    kind = f"number {written}" if _kind_of(value) == "number" else _kind_of(value)
    return f"invalid duration {quoted(written)}: json: cannot unmarshal {kind} into Go value of type time.Duration"


def _iterator(value: Json, kind: FieldType) -> str:
    first = _first_character(value)
    if kind.form is Form.BOOL:
        return f"ReadBool: expect t or f, but found {first}"
    if kind.form in _NUMBERS:
        if isinstance(value, float):
            return "assertInteger: can not decode float as int"
        if isinstance(value, int) and not isinstance(value, bool):
            return f"ReadInt32: overflow: {value}"
        return "readUint32: unexpected character: \ufffd"
    if kind.form is Form.LIST:
        return f"decode slice: expect [ or n, but found {first}"
    if kind.form is Form.MAP:
        return f"ReadMapCB: expect {{ or n, but found {first}"
    if kind.form is Form.OBJECT:
        return f"readObjectStart: expect {{ or n, but found {first}"
    return f'ReadString: expects " or n, but found {first}'


def _first_character(value: Json) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, int | float):
        return str(value)[0]
    if isinstance(value, str):
        return '"'
    return "[" if isinstance(value, list) else "{"


# What to write instead, in our own words.


_A_DURATION = "a duration is a text with units, such as `30s`, `5m` or `1h30m`; there are no days"
_A_LIST = "write a list, such as `[a, b]`"
_A_MAP = "write keys with values, such as `{key: value}`"
_HINTS: Mapping[Form, str] = {
    Form.DURATION: _A_DURATION,
    Form.DURATION_OR_NANOSECONDS: _A_DURATION,
    Form.QUANTITY: "a quantity is a number with a unit, such as `500m`, `100Mi` or `1.5Gi`",
    Form.NANOSECONDS: "this minor reads a whole number of nanoseconds",
    Form.LIST: _A_LIST,
    Form.MAP: _A_MAP,
    Form.OBJECT: _A_MAP,
}


def _form_hint(value: Json, form: Form) -> str:
    """For a value of the wrong type."""
    if form in _HINTS:
        return _HINTS[form]
    if form is Form.STRING and isinstance(value, bool | int | float):
        return "write the value in quotes"
    if form is Form.BOOL:
        return "write `true` or `false`, without quotes"
    return "write a number without quotes" if isinstance(value, str) else ""


Object = dict[str, Any]
"""A KubeletConfiguration by its JSON names."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)", re.ASCII)
_SPANS = {
    Form.INT32: (-(2**31), 2**31),
    Form.INT64: (-(2**63), 2**63),
    Form.NANOSECONDS: (-(2**63), 2**63),
    Form.UINT32: (0, 2**32),
}


@dataclass(frozen=True, slots=True)
class Mistake:
    """A value that the kubelet cannot decode: it does not start. ``text`` is the kubelet's; ``hint`` is ours."""

    path: Path
    text: str
    hint: str = ""


@dataclass(slots=True)
class Decoded:
    """``unknown`` are the paths of fields that no type has, ``mistakes`` are the values of a wrong type."""

    value: Object
    unknown: list[Path] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)


def decode(document: Json, minor: int) -> Decoded:
    """A KubeletConfiguration 1.``minor``; keys are sorted, as Go writes a map."""
    decoded = Decoded({})
    if isinstance(document, dict):
        decoded.value = _Decoder(minor, decoded).object(document, schema.ROOT, ())
    return decoded


def dotted(path: Path) -> str:
    """``a.b[0].c``, as the kubelet names a field."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


class _Decoder:
    def __init__(self, minor: int, into: Decoded) -> None:
        self._minor = minor
        self._into = into

    def object(self, entries: dict[str, Any], type_name: str, path: Path) -> Object:
        known = schema.fields_of(type_name, self._minor)
        fields: Object = {}
        for name in sorted(entries):
            kind = known.get(name)
            if kind is None:
                self._into.unknown.append((*path, name))
                continue
            value = self._field(entries[name], kind, (*path, name), type_name)
            if value is not None:
                fields[name] = value
        return fields

    def _field(self, value: Json, kind: FieldType, path: Path, owner: str) -> Any:
        if value is None:
            return self._null(kind, path)
        return self._value(value, kind, path, owner)

    def _null(self, kind: FieldType, path: Path) -> None:
        if kind.form is Form.DURATION and not kind.pointer:
            self._into.mistakes.append(Mistake(path, 'time: invalid duration ""', _HINTS[kind.form]))

    def _value(self, value: Json, kind: FieldType, path: Path, owner: str) -> Any:
        form = kind.form
        if form is Form.OBJECT and isinstance(value, dict):
            return self.object(value, kind.type_name, path)
        if form is Form.MAP and isinstance(value, dict) and kind.element:
            return {key: self._element(value[key], kind.element, (*path, key), owner) for key in sorted(value)}
        if form is Form.LIST and isinstance(value, list) and kind.element:
            return [self._element(entry, kind.element, (*path, at), owner) for at, entry in enumerate(value)]
        try:
            return _scalar(value, form)
        except GoValueError as error:
            self._into.mistakes.append(Mistake(path, str(error), _HINTS.get(form, "")))
        except TypeError:
            where = Where(dotted(self._named(path)), owner)
            self._into.mistakes.append(
                Mistake(path, wrong_type(value, kind, where, self._minor), _form_hint(value, form))
            )
        return None

    def _named(self, path: Path) -> Path:
        """The part of a path that an error names: encoding/json knows fields, and neither keys of maps nor places."""
        if self._minor < STANDARD_SINCE:
            return tuple(part for part in path if isinstance(part, str))
        names: list[str | int] = []
        kind: FieldType | None = FieldType(Form.OBJECT, schema.ROOT)
        for part in path:
            if kind is not None and kind.form is Form.OBJECT:
                names.append(part)
                kind = schema.fields_of(kind.type_name, self._minor).get(str(part))
            else:
                kind = kind.element if kind is not None else None
        return tuple(names)

    def _element(self, value: Json, element: FieldType, path: Path, owner: str) -> Any:
        """A ``null`` in a list or a map is the zero value of the element."""
        if value is None:
            self._null(element, path)
            return zero(element)
        return self._value(value, element, path, owner)


def zero(kind: FieldType) -> Any:
    """Go's zero value of a kind, as JSON."""
    if kind.form is Form.BOOL:
        return False
    if kind.form in _SPANS or kind.form is Form.FLOAT64:
        return 0
    if kind.form is Form.OBJECT:
        return {}
    if kind.form in {Form.LIST, Form.MAP, Form.TIME}:
        return None
    return {Form.DURATION: "0s", Form.DURATION_OR_NANOSECONDS: "0s", Form.QUANTITY: "0"}.get(kind.form, "")


def _scalar(value: Json, form: Form) -> Any:
    """The value as kept; ``TypeError`` when it is of another type, ``GoValueError`` when its text is invalid."""
    if form is Form.QUANTITY and (isinstance(value, bool) or not isinstance(value, str | int | float)):
        quantities.parse(json.dumps(value))  # Quantity's own UnmarshalJSON reads any JSON but null as text
    if isinstance(value, bool):
        return _fitting(value, form is Form.BOOL)
    if isinstance(value, str):
        if form in {Form.DURATION, Form.DURATION_OR_NANOSECONDS}:
            return go_format_nanoseconds(duration(value))
        if form is Form.QUANTITY:
            return quantities.shown(value.strip())
        if form is Form.TIME and not _TIME.fullmatch(value):
            raise GoValueError(f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "{value}"')
        return str(_fitting(value, form in {Form.STRING, Form.TIME}))
    if isinstance(value, int) and form in _SPANS:
        least, beyond = _SPANS[form]
        return _fitting(value, least <= value < beyond)
    if isinstance(value, int | float):
        if form is Form.DURATION_OR_NANOSECONDS:
            return _fitting(value, isinstance(value, int) and -(2**63) <= value < 2**63)
        if form is Form.QUANTITY:
            return quantities.shown(str(value))
        return _fitting(value, form is Form.FLOAT64)
    raise TypeError(value)


def _fitting(value: Any, fits: bool) -> Any:  # noqa: FBT001 (a condition, said once)
    if not fits:
        raise TypeError(value)
    return value


# A configuration as ``/configz`` shows it: v1beta1 JSON, by the tags and pointers of one minor.


def shown(configuration: Mapping[str, Any], minor: int) -> Object:
    """Every field that ``/configz`` shows; ``kind`` and ``apiVersion`` where the defaults have them (1.35)."""
    return _object(configuration, schema.ROOT, minor)


def _object(fields: Mapping[str, Any], type_name: str, minor: int) -> Object:
    return {
        name: _value(fields.get(name), kind, minor)
        for name, kind in schema.fields_of(type_name, minor).items()
        if _is_shown(fields, name, kind)
    }


def _is_shown(fields: Mapping[str, Any], name: str, kind: FieldType) -> bool:
    if kind.shown is WhenShown.ALWAYS:
        return True
    if name not in fields or kind.shown is WhenShown.NEVER:
        return False
    return kind.shown is WhenShown.SET or bool(fields[name])


def _value(value: Any, kind: FieldType, minor: int) -> Any:
    if kind.form is Form.OBJECT:
        return _object(value or {}, kind.type_name, minor)
    if value is None:
        return zero(kind)
    element = kind.element
    if kind.form is Form.LIST and element and element.form is Form.OBJECT:
        return [_value(entry, element, minor) for entry in value]
    if kind.form is Form.MAP and element:
        return {key: _value(value[key], element, minor) for key in sorted(value)}
    return value
