"""``--config-dir``: which files are merged, and the three ways in which kubelets have merged them.

1.28 merges whole configurations including defaults, and a zero never wins (mergo over the internal type). 1.29 to 1.31
patch the internal type: its names differ in letter case, and one differs entirely. From 1.32 on it is a JSON merge
patch of v1beta1, then the defaults again. Source: ``mergeKubeletConfigurations`` in ``cmd/kubelet/app/server.go`` of
1.28, 1.30 and 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rollout.kubelet.configuration import schema
from rollout.kubelet.configuration.config_file import (
    API_VERSION,
    KIND,
    WANTED,
    LoadError,
    decoded,
    document,
    type_meta,
)
from rollout.kubelet.configuration.decoding import Mistake, Object, shown
from rollout.kubelet.configuration.defaulting import fill, is_set
from rollout.kubelet.configuration.outcome import File
from rollout.kubelet.configuration.schema import FieldType, Form
from rollout.kubelet.configuration.yaml_document import Path

SINCE = 28
PATCH_SINCE = 29
VERSIONED_SINCE = 32
ENVIRONMENT = "KUBELET_CONFIG_DROPIN_DIR_ALPHA"
ENVIRONMENT_UNTIL = 29
"""The last minor that needs ``ENVIRONMENT`` to be set."""

_SUFFIX = ".conf"
_INTERNAL_NAMES = {"resolvConf": "ResolverConfig"}


def in_order(paths: Iterable[str]) -> tuple[str, ...]:
    """The files in the folder that a kubelet merges, in its order (``filepath.WalkDir``).

    ``paths`` are relative to the folder. It looks into sub-folders, but does not follow a link to a folder.
    """
    counted = [path for path in paths if path.rpartition("/")[2].endswith(_SUFFIX)]
    return tuple(sorted(counted, key=lambda path: [part.encode() for part in path.split("/")]))


@dataclass(slots=True)
class Patched:
    """A configuration with patches applied; ``unknown`` are the fields of each file that no type has."""

    configuration: Object
    unknown: list[Path] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)


def patch_of(file: File, minor: int) -> Object:
    """The content of a drop-in (1.29 and later), or ``LoadError``. A duplicate key is fatal here."""
    read = document(file)
    meta = type_meta(read.value)
    if not isinstance(read.value, dict) or not meta.kind:
        raise LoadError("no-kind", "Object 'Kind' is missing in '...'", hint=WANTED)
    if read.duplicates:
        twice = read.duplicates[0]
        message = f'strict decoding error: yaml: unmarshal errors:\n  line {twice.line}: key "{twice.path[-1]}" already set in map'
        raise LoadError("duplicate-key", message, twice.path)
    if minor >= VERSIONED_SINCE and (meta.api_version, meta.kind) != (API_VERSION, KIND):
        given = f"{meta.api_version or '/'}, Kind={meta.kind}"
        raise LoadError("unknown-kind", f"unknown apiVersion/kind: {given}", hint=WANTED)
    return {name: value for name, value in read.value.items() if name.casefold() not in {"kind", "apiversion"}}


def apply_patches(base: Mapping[str, Any], patches: Iterable[Object], minor: int, gates: Mapping[str, bool]) -> Patched:
    """Merges all drop-ins into the base and decodes the result once. ``gates`` are those of the flags."""
    if minor >= VERSIONED_SINCE:
        merged = shown(base, minor)
        for patch in patches:
            merged = merge_patch(merged, patch)
        read = _decoded(merged, minor)
        read.configuration = fill(read.configuration, minor, gates)
        return read
    overlay: Object = {}
    for patch in patches:
        overlay = merge_patch(overlay, patch)
    read = _decoded(overlay, minor)
    read.configuration = _over(base, read.configuration, schema.ROOT, minor)
    return read


def typed_names(patch: Object, minor: int) -> dict[str, str]:
    """Each top-level name that the kubelet finds → the field that it sets."""
    exact, folded = _names(schema.fields_of(schema.ROOT, minor), _renamed(minor))
    targets = ((name, exact.get(name) or folded.get(name.casefold())) for name in patch)
    return {name: typed for name, typed in targets if typed}


def _renamed(minor: int) -> Mapping[str, str]:
    return {} if minor >= VERSIONED_SINCE else _INTERNAL_NAMES


def _names(types: Iterable[str], renamed: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    exact = {renamed.get(name, name): name for name in types}
    return exact, {name.casefold(): typed for name, typed in exact.items()}


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> Object:
    """RFC 7386: maps are merged, ``null`` removes a key, any other value replaces."""
    merged = dict(target)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            inner = merged.get(name)
            merged[name] = merge_patch(inner if isinstance(inner, dict) else {}, value)
        else:
            merged[name] = value
    return merged


def _decoded(merged: Object, minor: int) -> Patched:
    """encoding/json finds a field in any letter case, and drops unknown fields without a message."""
    unknown: list[Path] = []
    entries = _names_as_typed(merged, schema.ROOT, minor, (), unknown)
    result = decoded(entries, minor)
    return Patched(result.value, unknown, result.mistakes)


def _names_as_typed(entries: Object, type_name: str, minor: int, path: Path, unknown: list[Path]) -> Object:
    types = schema.fields_of(type_name, minor)
    exact, folded = _names(types, {} if path else _renamed(minor))
    typed_entries: Object = {}
    for name in sorted(entries):
        typed = exact.get(name) or folded.get(name.casefold())
        if typed is None:
            unknown.append((*path, name))
            continue
        value = entries[name]
        if types[typed].form is Form.OBJECT and isinstance(value, dict):
            value = _names_as_typed(value, types[typed].type_name, minor, (*path, name), unknown)
        typed_entries[typed] = (
            {**typed_entries[typed], **value} if _both_maps(typed_entries.get(typed), value) else value
        )
    return typed_entries


def _both_maps(first: Any, second: Any) -> bool:
    return isinstance(first, dict) and isinstance(second, dict)


def _over(base: Mapping[str, Any], patch: Mapping[str, Any], type_name: str, minor: int) -> Object:
    """Decodes into an existing struct: maps gain keys, objects are filled, the rest is replaced."""
    full = dict(base)
    types = schema.fields_of(type_name, minor)
    for name, value in patch.items():
        full[name] = _one_over(full.get(name), value, types[name], minor)
    return full


def _one_over(before: Any, value: Any, kind: FieldType, minor: int) -> Any:
    if not _both_maps(before, value):
        return value
    return _over(before, value, kind.type_name, minor) if kind.form is Form.OBJECT else {**before, **value}


def merge_whole(base: Mapping[str, Any], drop_in: Mapping[str, Any], type_name: str, minor: int) -> Object:
    """1.28: every value of the (defaulted) drop-in that is not zero wins."""
    full = dict(base)
    for name, kind in schema.fields_of(type_name, minor).items():
        value = drop_in.get(name)
        if not value or not is_set(drop_in, name, _as_value(kind)):
            continue
        if kind.form is Form.OBJECT:
            full[name] = merge_whole(full.get(name) or {}, value, kind.type_name, minor)
        else:
            full[name] = {**full.get(name, {}), **value} if kind.form is Form.MAP else value
    return full


def _as_value(kind: FieldType) -> FieldType:
    """mergo dereferences pointers."""
    return FieldType(kind.form, kind.type_name, kind.element)
