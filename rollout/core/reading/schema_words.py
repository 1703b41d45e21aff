"""What pydantic cannot derive from our types for JSON Schemas: the form of texts before they are read."""

from __future__ import annotations

from typing import Any

from pydantic import GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema

from rollout.core.model.frozen import dataclass

_TERM = r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_PERCENT = r"^[0-9]{1,3}(\.[0-9]{1,6})? ?%$"


def text(pattern: str, description: str = "", *examples: str) -> WithJsonSchema:
    """Text that matches all of ``pattern``."""
    schema = {"type": "string", "pattern": f"^({pattern})$", "description": description, "examples": [*examples]}
    return WithJsonSchema({key: value for key, value in schema.items() if value})


DURATION = text(rf"[+-]?(0|({_TERM})+)", "A duration in Go's format.", "90s", "1m30s")
PERCENT = WithJsonSchema({"type": "string", "pattern": _PERCENT, "description": "A percentage.", "examples": ["5%"]})
SHARE = WithJsonSchema({
    "description": "A count of nodes, or a percentage that is rounded down but at least one node.",
    "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": _PERCENT}],
})  # fmt: skip
NODESET = WithJsonSchema({
    "description": "A nodeset such as tess-node-[0001-0060], or a list of them.",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
})  # fmt: skip
SETTINGS = WithJsonSchema({
    "description": "Settings under their Kubernetes names: fields as theyAre, flags as --they-are.",
    "type": "object",
    "propertyNames": {"pattern": "^(--)?[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*$"},
    "additionalProperties": {
        "type": ["string", "number", "boolean", "array", "object"],
        "properties": {"ifUnsupported": {"enum": ["refuse", "skip"]}, "pin": {"type": "boolean"}},
    },
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class OrWord:
    """The map can also be written as a bare word."""

    words: tuple[str, ...]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"enum": [*self.words]}, handler(core)]}


@dataclass(frozen=True, slots=True)
class OrName:
    """The map can also be written as the value of its first key."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, handler(core)]}


@dataclass(frozen=True, slots=True)
class OrDuration:
    """The map can also be written as a duration."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [DURATION.json_schema, handler(core)]}


def one_of(*keys: str) -> dict[str, Any]:
    """Exactly one of these keys, for a model's ``json_schema_extra``."""
    return {"oneOf": [{"required": [key]} for key in keys]}


def any_of(*keys: str) -> dict[str, Any]:
    """At least one of these keys, for a model's ``json_schema_extra``."""
    return {"anyOf": [{"required": [key]} for key in keys]}
