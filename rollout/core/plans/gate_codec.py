"""A gate in a plan: what all gates have, and under the key of its kind the fields of its query.

    {"kind": "http", "scope": "wave", "name": "shop", "timeout": 10.0, "http": {"url": "https://…", "status": 200, "contains": ""},
     "alertmanager": null, "command": [], "prometheus": null}

A query of one field is written as this field. A query without fields, such as that of ``unit``, has no key. Plans have had the keys of four kinds
for every gate since before other kinds could be added; they stay, empty, so that a plan has the same bytes.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from rollout.core.model.gate_kinds import known
from rollout.core.model.gates import Gate, GateQuery, GateScope
from rollout.core.text import json_text
from rollout.core.text.json_text import Converter, Json, ShapeError, converter

_COMMON = frozenset({"kind", "scope", "name", "timeout"})


def _write(gate: Gate) -> Json:
    query: Any = gate.asks
    fields = _fields(query)
    own: dict[str, Json] = {}
    if fields:
        body = json_text.encode(query)
        own = {query.kind: body[fields[0]] if len(fields) == 1 else body}
    common = {"kind": query.kind, "scope": gate.scope.value, "name": gate.name, "timeout": gate.timeout}
    return {**known().always_written, **common, **own}


def _read(data: Json, where: str) -> Gate:
    if not isinstance(data, dict):
        raise ShapeError(f"{where} is not an object")
    kind = data.get("kind")
    kinds = known()
    if not isinstance(kind, str) or kind not in kinds.queries:
        raise ShapeError(f"{where}.kind is not one of {', '.join(kinds.queries)}")
    query = kinds.queries[kind]
    fields = _fields(query)
    own = {kind} if fields else set()
    wrong = data.keys() ^ (_COMMON | kinds.always_written.keys() | own)
    if wrong:
        first = min(wrong)
        raise ShapeError(f"{where}: {first[:80]!r} is {'unknown' if first in data else 'missing'}")
    for key, empty in kinds.always_written.items():
        if key not in own and data[key] != empty:
            raise ShapeError(f"{where}.{key} does not belong to a gate of kind {kind}")
    return Gate(
        _query(query, kind, fields, data.get(kind), f"{where}.{kind}"),
        converter(GateScope).decode(data["scope"], f"{where}.scope"),
        converter(str).decode(data["name"], f"{where}.name"),
        converter(float).decode(data["timeout"], f"{where}.timeout"),
    )


def _query(query: Any, kind: str, fields: tuple[str, ...], body: Json, where: str) -> GateQuery:
    found: GateQuery
    if not fields:
        found = query(kind)
        return found
    found = converter(query).decode({fields[0]: body} if len(fields) == 1 else body, where)
    return found


def _fields(query: Any) -> tuple[str, ...]:
    """Without ``kind``, which is a field where one class has several kinds."""
    return tuple(field.name for field in dataclasses.fields(query) if field.name != "kind")


FORM = Converter(_write, _read)
