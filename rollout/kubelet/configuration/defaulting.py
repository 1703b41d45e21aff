"""Fills in unset fields: ``SetDefaults_KubeletConfiguration`` of each minor, and the default thresholds of eviction.

A pointer is filled in when it is nil, any other field when it is zero: ``maxPods: 0`` means 110, ``registryPullQPS: 0``
means 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.core.model.settings import Value
from rollout.kubelet.configuration import quantities, schema
from rollout.kubelet.configuration.decoding import Object
from rollout.kubelet.configuration.feature_gates import enabled, set_over
from rollout.kubelet.configuration.schema import FieldType, Form

# The defaults for unset fields, by minor, in the form in which ``/configz`` shows them.
#
# The data is ``kubelet_defaults.json`` in ``rollout/kubelet``; the file describes how it was derived. Source of the
# rules below: ``SetDefaults_KubeletConfiguration`` in ``pkg/kubelet/apis/config/v1beta1/defaults.go`` and
# ``loadConfigFile`` in ``cmd/kubelet/app/server.go``. The table does not contain what depends on other values:
#
# * A field that is no pointer (``schema.FieldType``) takes its default when it is zero, too; a map or list only when
#   it is null.
# * ``nodeStatusReportFrequency`` follows ``nodeStatusUpdateFrequency`` where only that is written.
# * ``podPidsLimit`` below 0 becomes -1.
# * ``serializeImagePulls`` is false where only ``maxParallelImagePulls`` of 2 or more is written (1.27).
# * ``mergeDefaultEvictionSettings`` (1.33) keeps the default thresholds that ``evictionHard`` does not name.
# * Without ``serverTLSBootstrap``, ``tlsCertFile`` and ``tlsPrivateKeyFile`` become ``kubelet.crt`` and
#   ``kubelet.key`` under ``--cert-dir`` where neither is written (``InitializeTLS``).


@dataclass(frozen=True, slots=True)
class GatedDefault:
    """``value`` is the default of the field at ``path`` (``("a", "b")`` is ``a.b``) while ``gate`` is on, else none."""

    path: tuple[str, ...]
    gate: str
    value: Value


def defaults(minor: int) -> Mapping[str, Value]:
    """Top-level field → value (objects are nested mappings) of a kubelet 1.``minor`` given a file that sets nothing.

    Fields with the default "nothing" are not in it, except those that ``/configz`` shows anyway
    (``shutdownGracePeriod`` ``0s``). Defaults that depend on a gate are in ``gated``. Empty for a minor without data.
    Callers must not change the result.
    """
    return _of_minor("defaults", minor)


def legacy(minor: int) -> Mapping[str, Value]:
    """The same for a kubelet without ``--config``: anonymous, AlwaysAllow, no webhook, read-only port 10255.

    From 1.26 on it has no ``evictionHard`` either: the default thresholds apply only with a file. Sources:
    ``applyLegacyDefaults`` in ``cmd/kubelet/app/options/options.go`` and ``loadConfigFile``.
    """
    both = {**defaults(minor), **_of_minor("legacy", minor)}
    return {name: value for name, value in both.items() if value is not None}


def gated(minor: int) -> tuple[GatedDefault, ...]:
    """The defaults of a kubelet 1.``minor`` that depend on feature gates."""
    return tuple(
        GatedDefault(tuple(path.split(".")), span["gate"], span["value"])
        for path, span in _spans("gated", minor).items()
    )


@cache
def _data() -> Mapping[str, Any]:
    text = resources.files("rollout.kubelet").joinpath("kubelet_defaults.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def _spans(table: str, minor: int) -> Mapping[str, Any]:
    return {
        name: span for name, spans in _data()[table].items() for span in spans if span["since"] <= minor <= span["last"]
    }


@cache
def _of_minor(table: str, minor: int) -> Mapping[str, Value]:
    return {name: span["value"] for name, span in _spans(table, minor).items()}


_ZEROS = ("", 0, "0s")
_PARALLEL_SINCE = 27
_LOADER_EVICTS_SINCE = 26


def fill(written: Object, minor: int, gates: Mapping[str, bool]) -> Object:
    """``written`` with every default of a kubelet 1.``minor`` that reads a file; ``gates`` are those of its flags."""
    full = dict(written)
    update = full.get("nodeStatusUpdateFrequency", "0s")
    if full.get("nodeStatusReportFrequency", "0s") == "0s" and update != "0s":
        full["nodeStatusReportFrequency"] = update
    if full.get("podPidsLimit", 0) < 0:
        full["podPidsLimit"] = -1
    if minor >= _PARALLEL_SINCE and "serializeImagePulls" not in full and full.get("maxParallelImagePulls", 0) >= 2:
        full["serializeImagePulls"] = False
    _by_gates(full, minor, gates)
    values = defaults(minor)
    if minor >= _LOADER_EVICTS_SINCE:
        values = {name: value for name, value in values.items() if name != "evictionHard"}
    _fill(full, values, schema.ROOT, minor)
    return full


def _fill(into: Object, values: Mapping[str, Any], type_name: str, minor: int) -> None:
    types = schema.fields_of(type_name, minor)
    for name, value in values.items():
        kind = types.get(name)
        if kind is None:
            continue
        if kind.form is Form.OBJECT and isinstance(value, Mapping) and not (kind.pointer and name not in into):
            inner = dict(into.get(name) or {})
            _fill(inner, value, kind.type_name, minor)
            into[name] = inner
        elif not is_set(into, name, kind):
            into[name] = value


def is_set(fields: Mapping[str, Any], name: str, kind: FieldType) -> bool:
    """Is the field set, as far as the kubelet can detect it?"""
    if name not in fields:
        return False
    if kind.pointer or kind.form in {Form.LIST, Form.MAP, Form.OBJECT}:
        return True
    value = fields[name]
    return isinstance(value, bool) or value not in _ZEROS


def _by_gates(full: Object, minor: int, gates: Mapping[str, bool]) -> None:
    """The gates of the flags are set before any file is read, and the file's are set over them.

    Source: ``SetDefaults_KubeletConfiguration`` (``v1beta1/defaults.go``, 1.32 to 1.36) copies the process's gates.
    """
    written = set_over(gates, full.get("featureGates") or {})
    for rule in gated(minor):
        if enabled(rule.gate, written, minor):
            _put(full, rule.path, rule.value)


def without_file(minor: int) -> Object:
    """A kubelet without ``--config``, before its flags: the legacy defaults, with the gates that are on by default."""
    full = dict(legacy(minor))
    _by_gates(full, minor, {})
    return full


def with_file(minor: int, gates: Object) -> Object:
    """The defaults of a kubelet with a file that sets nothing but these gates."""
    full = dict(defaults(minor))
    _by_gates(full, minor, gates)
    return full


def _put(into: Object, path: tuple[str, ...], value: Any) -> None:
    """Sets the value where none is set yet."""
    name, rest = path[0], path[1:]
    if rest:
        inner = dict(into.get(name) or {})
        _put(inner, rest, value)
        into[name] = inner
    elif into.get(name) in {None, ""}:
        into[name] = value


def fill_file(written: Object, minor: int, gates: Mapping[str, bool]) -> Object:
    """The same for the file that ``--config`` names: its loader adds the thresholds of eviction (``loadConfigFile``).

    Up to 1.25 these were defaults like any other.
    """
    full = fill(written, minor, gates)
    thresholds: Any = defaults(minor).get("evictionHard") or {}
    if "evictionHard" not in full:
        full["evictionHard"] = thresholds
    elif full.get("mergeDefaultEvictionSettings") is True:
        full["evictionHard"] = {**thresholds, **full["evictionHard"]}
    if full.get("reservedMemory"):
        full["reservedMemory"] = [_rounded(entry) for entry in full["reservedMemory"]]
    return full


def _rounded(entry: Object) -> Object:
    """``SetDefaults_ResourceList`` (``pkg/apis/core/v1/defaults.go``, 1.22 to 1.36) rounds limits up to thousandths."""
    limits = {name: quantities.rounded_to_milli(amount) for name, amount in (entry.get("limits") or {}).items()}
    return {**entry, "limits": limits} if limits else entry
