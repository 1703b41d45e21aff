"""A configuration as ``/configz`` shows it: v1beta1 JSON, by the tags and pointers of one minor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout.kubelet.configuration import schema
from rollout.kubelet.configuration.decoding import Object, zero
from rollout.kubelet.configuration.schema import FieldType, Form, WhenShown


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
