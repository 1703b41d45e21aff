"""Which field a flag sets, and flags applied to a configuration: ``kubeletConfigFlagPrecedence``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout.kubelet import fields
from rollout.kubelet.configuration import schema
from rollout.kubelet.configuration.flags import Flags
from rollout.kubelet.configuration.go_values import duration
from rollout.kubelet.configuration.schema import FieldType, Form

_UNNAMED: Mapping[str, tuple[str, ...]] = {
    "--experimental-kernel-memcg-notification": ("kernelMemcgNotification",),
    "--experimental-logging-sanitization": ("logging", "sanitization"),
    "--log-flush-frequency": ("logging", "flushFrequency"),
    "--log-json-info-buffer-size": ("logging", "options", "json", "infoBufferSize"),
    "--log-json-split-stream": ("logging", "options", "json", "splitStream"),
    "--log-text-info-buffer-size": ("logging", "options", "text", "infoBufferSize"),
    "--log-text-split-stream": ("logging", "options", "text", "splitStream"),
    "--v": ("logging", "verbosity"),
    "--vmodule": ("logging", "vmodule"),
}
"""Flags without a field in the table of flags: they had none in 1.20, or have one in 1.20 alone."""


def target(name: str, minor: int) -> tuple[str, ...]:
    """The path of the field that a flag sets; ``()`` for a flag without a field."""
    flag = fields.flag(name)
    named = tuple(flag.field.split(".")) if flag is not None and flag.field else ()
    path = _UNNAMED.get(name, named)
    return path if path and _kind(path, minor) else ()


def over(configuration: Mapping[str, Any], flags: Flags, minor: int) -> dict[str, Any]:
    """The configuration with the flags applied; feature gates are merged key by key."""
    full = dict(configuration)
    for name, value in flags.values.items():
        path = target(name, minor)
        kind = _kind(path, minor) if path else None
        if kind is not None and value is not None:
            _put(full, path, _as_field(name, value, kind, full))
    return full


def _as_field(name: str, value: Any, kind: FieldType, full: Mapping[str, Any]) -> Any:
    if name == "--feature-gates":
        return {**(full.get("featureGates") or {}), **value}
    if name == "--vmodule":
        pairs = (part.partition("=") for part in value.split(",") if part)
        return [{"filePattern": pattern, "verbosity": int(level)} for pattern, _, level in pairs]
    return duration(value) if kind.form is Form.NANOSECONDS else value


def _kind(path: tuple[str, ...], minor: int) -> FieldType | None:
    """The type of the field at ``path`` in this minor; ``None`` where it has no such field."""
    kind: FieldType | None = FieldType(Form.OBJECT, schema.ROOT)
    for part in path:
        kind = schema.fields_of(kind.type_name, minor).get(part) if kind and kind.type_name else None
    return kind


def _put(fields_of: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    if len(path) == 1:
        fields_of[path[0]] = value
        return
    inner = dict(fields_of.get(path[0]) or {})
    _put(inner, path[1:], value)
    fields_of[path[0]] = inner
