"""The state of a run as JSON text, without its order. Strict in both directions: anything unknown is an error.

A node is a row of values: its names would take most of the room.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import starmap
from typing import Any, get_args, get_type_hints

from rollout.core.run.state import NodeRecord, Order, PostponedFor, RunState, State
from rollout.core.text import json_text
from rollout.core.text.json_text import Converter, Json, ShapeError, converter

_AS_TEXT = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode  # a state is a tree


def encode_state(state: RunState) -> str:
    run = {name: part.encode(getattr(state, name)) for name, part in _of_run().items()}
    nodes = _of_node()
    rows = [[part.encode(getattr(record, name)) for name, part in nodes.items()] for record in state.nodes.values()]
    return _AS_TEXT({"run": run, "columns": list(nodes), "nodes": rows})


def decode_state(text: str, order: Order) -> RunState:
    """The reverse, of a run with this order. ``ValueError``: this version writes no such text."""
    body = json_text.parse(text)
    try:
        run, columns, rows = body["run"], body["columns"], body["nodes"]
    except (LookupError, TypeError):
        raise ShapeError("it is not the state of a run") from None
    parts, nodes = _of_run(), _of_node()
    if not isinstance(run, dict) or run.keys() != parts.keys() or columns != list(nodes) or not isinstance(rows, list):
        raise ShapeError("it has not the parts of a state")
    records = _records(rows, tuple(nodes.values()))
    known = {name: part.decode(run[name], name) for name, part in parts.items()}
    return RunState(order=order, nodes=dict(zip(order.nodes, records, strict=True)), **known)


def _records(rows: list[Json], columns: tuple[Converter, ...]) -> list[NodeRecord]:
    """Column by column: most hold one plain type, which is looked at once for all nodes."""
    if not all(isinstance(row, list) and len(row) == len(columns) for row in rows):
        raise ShapeError("a node is not a row of these parts")
    return list(starmap(NodeRecord, zip(*map(_column, zip(*rows, strict=True), columns), strict=True)))


def _column(values: tuple[Json, ...], column: Converter) -> Sequence[Any]:
    return values if {*map(type, values)} == {column.plain} else [column.decode(value, "a node") for value in values]


@cache
def _of_run() -> Mapping[str, Converter]:
    """Its order is in the journal's header."""
    return {name: part for name, part in _parts(RunState).items() if name not in ("order", "nodes")}


@cache
def _of_node() -> Mapping[str, Converter]:
    return _parts(NodeRecord)


def _parts(kind: type) -> Mapping[str, Converter]:
    return {name: converter(hint) for name, hint in get_type_hints(kind).items()}


# What JSON has no form of: a value of several kinds, and mappings with other keys than texts.


_KINDS = {kind.__name__: kind for kind in get_args(State)}


def _write_current(value: Any) -> Json:
    return {"is": type(value).__name__, **json_text.encode(value)}


def _read_current(data: Json, where: str) -> Any:
    try:
        kind = _KINDS[data.pop("is")]
    except (LookupError, TypeError, AttributeError):
        raise ShapeError(f"{where}: it is in no known state") from None
    return converter(kind).decode(data, where)


def _mapping(key: Callable[[str], Any], values: Converter) -> Converter:
    def write(mapping: Any) -> Json:
        return {str(name): values.encode(value) for name, value in mapping.items()}

    def read(data: Json, where: str) -> Any:
        if not isinstance(data, dict):
            raise ShapeError(f"{where} is not an object")
        return {key(name): values.decode(value, where) for name, value in data.items()}

    return Converter(write, read)


json_text.has_form(State, Converter(_write_current, _read_current))
json_text.has_form(Mapping[int, str], _mapping(int, converter(str)))
json_text.has_form(Mapping[PostponedFor, float], _mapping(PostponedFor, converter(float)))
