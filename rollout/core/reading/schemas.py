"""JSON Schemas of our files, generated from the models that read them, for completion and checks in editors.

A schema checks shapes and spellings. Only ``rollout check`` finds mistakes between keys, such as nodes without a rack.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from rollout.core.reading.inventory_schema import ElsewhereInventory, FoldedInventory, ListedInventory
from rollout.core.reading.playbook_schema import Playbook
from rollout.core.text import durations

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def inventory_schema() -> dict[str, Any]:
    """An inventory file: nodes by nodeset, one by one, or from elsewhere."""
    folded, listed, elsewhere = _schema(FoldedInventory), _schema(ListedInventory), _schema(ElsewhereInventory)
    nodes = {
        "description": "By nodeset, or a list of single nodes.",
        "anyOf": [folded["properties"]["nodes"], listed["properties"]["nodes"]],
    }
    properties = {**folded["properties"], "nodes": nodes, "nodesFrom": elsewhere["properties"]["nodesFrom"]}
    return {
        "$schema": _DIALECT,
        "title": "An inventory of rollout",
        "type": "object",
        "properties": properties,
        "required": ["cluster", "apiServer"],
        "oneOf": [{"required": ["nodes"]}, {"required": ["nodesFrom"]}],
        "additionalProperties": False,
        "$defs": {**folded["$defs"], **listed["$defs"], **elsewhere["$defs"]},
    }


def playbook_schema() -> dict[str, Any]:
    """A playbook file."""
    return file_schema(Playbook, "A playbook of rollout")


def file_schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    """A file that one model reads."""
    return {"$schema": _DIALECT, **_schema(model), "title": title}


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    found: dict[str, Any] = _tidy(model.model_json_schema(by_alias=True))
    return found


def _tidy(part: Any) -> Any:
    """Removes titles that only repeat names and "or null"; a key that does not fit the pattern of keys is refused."""
    if isinstance(part, list):
        return [_tidy(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    made = {key: _tidy(inner) for key, inner in part.items() if not (key == "title" and isinstance(inner, str))}
    if "description" in made and isinstance(made["description"], str):
        made["description"] = made["description"].replace("``", "`")
    if "patternProperties" in made:
        made["additionalProperties"] = False
    # Defaults as a file would write them; an unset value needs no ``null``.
    if "default" not in made:
        return made
    default = made.pop("default")
    if isinstance(default, float) and made.get("type") == "string":
        return {**made, "default": durations.go_format(default)}
    if default is None and len(made.get("anyOf", ())) == 2 and {"type": "null"} in made["anyOf"]:
        return {**made.pop("anyOf")[0], **made}
    return made if default is None or isinstance(default, dict) else {**made, "default": default}
