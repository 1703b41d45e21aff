"""A KubeletConfiguration file as the kubelet decodes it: unknown fields are lenient, wrong types are fatal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import lru_cache
from typing import Any

import yaml

from rollout.kubelet import fields

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DURATION = re.compile(r"[-+]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+)")  # Go has no days
_API = "kubelet.config.k8s.io/v1beta1"


class FatalError(Exception):
    """The kubelet logs this and exits."""


@dataclass(frozen=True, slots=True)
class DecodedFile:
    """The file's content, and the strict decoder's errors (empty: valid)."""

    values: Mapping[str, object] = dataclass_field(default_factory=dict)
    strict: tuple[str, ...] = ()


@lru_cache(maxsize=512)
def decode(minor: int, content: bytes, path: str) -> DecodedFile:
    """Decode as Kubernetes 1.``minor`` would; ``FatalError`` contains the kubelet's own message."""
    try:
        if not content.strip():
            raise FatalError(f'kubelet config file "{path}" was empty')
        document, duplicates = _parse(content)
        _check_kind(document)
        strict = duplicates + _check_fields(minor, document)
        _validate(document)
    except FatalError as error:
        raise FatalError(f"failed to load Kubelet config file {path}, error failed to decode: {error}") from None
    return DecodedFile(document, tuple(strict))


def _parse(content: bytes) -> tuple[dict[str, object], list[str]]:
    try:
        loader = _LOADER(content)
        node = loader.get_single_node()
        document = loader.construct_document(node) if node is not None else None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise FatalError(f"yaml: {line}{getattr(error, 'problem', None) or error}") from None
    if not isinstance(document, dict):
        raise FatalError("json: cannot unmarshal string into Go value of type struct { APIVersion string }")
    return document, _duplicates(node)


def _duplicates(node: Any) -> list[str]:
    seen: set[str] = set()
    said = []
    for key, _ in node.value:
        if key.value in seen:
            said.append(f'line {key.start_mark.line + 1}: key "{key.value}" already set in map')
        seen.add(key.value)
    return said


def _check_kind(document: Mapping[str, object]) -> None:
    kind, version = document.get("kind"), document.get("apiVersion")
    for name, value in (("Kind", kind), ("apiVersion", version)):
        if not value:
            raise FatalError(f"Object '{name}' is missing in '{dict(document)}'")
    if kind != "KubeletConfiguration" or version != _API:
        raise FatalError(f'no kind "{kind}" is registered for version "{version}" in scheme')


def _check_fields(minor: int, document: Mapping[str, object]) -> list[str]:
    known = fields.known_fields(minor)
    unknown = []
    for name, value in document.items():
        if name in {"kind", "apiVersion"}:
            continue
        if name not in known:
            unknown.append(f'unknown field "{name}"')
        elif value is not None:
            field = fields.field(name)
            check_type(name, field.kind if field else "", value)
    return unknown


def check_type(name: str, kind: str, value: object) -> None:
    """Raise the error of Go's JSON decoder if the value is not of the field's type."""
    if kind == "duration":
        _check_duration(name, value)
        return
    fits = _FITS.get(kind.split("<", maxsplit=1)[0])
    if fits is not None and not fits(value):
        goal = {"int32": "int32", "int64": "int64", "bool": "bool", "string": "string"}.get(kind, kind)
        raise FatalError(
            f"json: cannot unmarshal {_go(value)} into Go struct field KubeletConfiguration.{name} of type {goal}"
        )


def _check_duration(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise FatalError(
            f"json: cannot unmarshal {_go(value)} into Go struct field KubeletConfiguration.{name} of type string"
        )
    problem = duration_problem(value)
    if problem:
        raise FatalError(problem)


def duration_problem(text: str) -> str:
    """The error of Go's ``time.ParseDuration`` for a text; empty if valid."""
    if _DURATION.fullmatch(text):
        return ""
    if text.lstrip("-+").replace(".", "").isdigit():
        return f'time: missing unit in duration "{text}"'
    return f'time: unknown unit in duration "{text}"'


def _validate(document: Mapping[str, object]) -> None:
    for name in ("registryPullQPS", "registryBurst", "eventRecordQPS", "eventBurst", "maxPods"):
        value = document.get(name)
        if isinstance(value, int) and value < 0:
            raise FatalError(f"invalid configuration: {name} {value} must not be a negative number")


def _go(value: object) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "string")


def _integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_FITS: Mapping[str, Callable[[object], bool]] = {
    "string": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int32": _integer,
    "int64": _integer,
    "float64": lambda value: _integer(value) or isinstance(value, float),
    "list": lambda value: isinstance(value, list),
    "map": lambda value: isinstance(value, dict),
    "object": lambda value: isinstance(value, dict),
}
