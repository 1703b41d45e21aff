"""A source tree of one minor, compared with the tables of rollout: the differences, and the tables with this minor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.tables import defaults, flags, gates, spans
from tests.tables.types import ROOT, Types

FIELDS, TYPES, DEFAULTS, GATES = "kubelet_fields", "kubelet_types", "kubelet_defaults", "feature_gates"
_META = {"kind": {"kind": "string", "shown": "always"}, "apiVersion": {"kind": "string", "shown": "always"}}
_BY_THE_LOADER = ("evictionHard",)
"""Defaults that are set when the file is loaded, not by the defaulting: they stay unchanged."""

Table = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """One minor by its tree. ``types``: type → field → its properties."""

    minor: int
    types: Mapping[str, Mapping[str, Mapping[str, Any]]]
    gates: Mapping[str, Mapping[str, Any]]
    needs: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, Any]
    flags: Mapping[str, tuple[str, str]]
    names: frozenset[str]


def read(tree: Path, minor: int) -> Source:
    """``OSError`` for a tree without the needed files."""
    types = Types(tree)
    found, needs = gates.read(tree, minor)
    table = {**types.table()}
    table[ROOT] = {**table[ROOT], **_META}
    registered = flags.registered(tree, types.go_names())
    return Source(minor, table, found, needs, defaults.read(tree), registered, flags.written(tree))


def load(folder: Path) -> dict[str, Table]:
    """The four tables by name."""
    return {
        name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in (FIELDS, TYPES, DEFAULTS, GATES)
    }


def with_source(tables: Mapping[str, Table], source: Source) -> dict[str, Table]:
    """The tables with this minor as their newest one."""
    return {
        FIELDS: _fields(tables[FIELDS], source),
        TYPES: _types(tables[TYPES], source),
        DEFAULTS: _defaults(tables[DEFAULTS], source),
        GATES: _gates(tables[GATES], source),
    }


def differences(tables: Mapping[str, Table], source: Source) -> Iterator[str]:
    """A line for each difference between the tables and the tree for this minor."""
    minor = source.minor
    for (table, path), (held, said) in sorted(_both(tables, source).items()):
        if held != said:
            yield f"1.{minor} {table} {path}: the table has {json.dumps(held)}, the tree {json.dumps(said)}"


def _both(tables: Mapping[str, Table], source: Source) -> dict[tuple[str, str], tuple[Any, Any]]:
    """(table, what) → the value in the table and the value by the tree."""
    made = with_source(tables, source)
    return {
        (name, path): (held.get(path), said.get(path))
        for name in tables
        for held, said in [(_flat(name, tables[name], source.minor), _flat(name, made[name], source.minor))]
        for path in {*held, *said}
    }


def _flat(name: str, table: Table, minor: int) -> dict[str, Any]:
    """The values of a table for one minor, by path."""
    if name == FIELDS:
        there = {field: entry for field, entry in table["fields"].items() if entry["since"] <= minor <= entry["last"]}
        known = {flag: entry for flag, entry in table["flags"].items() if entry["since"] <= minor}
        known = {flag: entry for flag, entry in known.items() if entry["removed"] is None or minor < entry["removed"]}
        return {
            **{field: entry["kind"] for field, entry in there.items()},
            **{flag: entry["kind"] for flag, entry in known.items()},
        }
    if name == TYPES:
        every = {f"{kind}.{field}": each for kind, inner in table["types"].items() for field, each in inner.items()}
    else:
        sections = ("gates", "requires") if name == GATES else ("defaults", "legacy", "gated")
        every = {f"{section} {key}": each for section in sections for key, each in table[section].items()}
    return {path: found for path, each in every.items() if (found := spans.at(each, minor)) is not None}


# The tables with an added minor.


def _head(table: Table, source: Source) -> Table:
    first, last = table["minors"]
    said = f"1.{source.minor}: read by `make kubelet-tables` out of a source tree."
    kept = [line for line in table["derivation"] if line != said]
    return {**table, "derivation": [*kept, said], "minors": [first, max(last, source.minor)]}


def _put(section: Mapping[str, list[spans.Span]], minor: int, says: Mapping[str, spans.Span]) -> dict[str, Any]:
    names = sorted({*section, *says})
    made = {name: spans.put(section.get(name, []), minor, says.get(name)) for name in names}
    return {name: found for name, found in made.items() if found}


def _kept(section: Mapping[str, list[spans.Span]], minor: int) -> dict[str, Any]:
    """What cannot be read stays unchanged."""
    held = {name: spans.at(each, minor) or spans.at(each, minor - 1) for name, each in section.items()}
    return {name: found for name, found in held.items() if found is not None}


def _types(table: Table, source: Source) -> Table:
    every = {**table["types"], **{name: {} for name in source.types if name not in table["types"]}}
    made = {
        name: _put(
            every[name], source.minor, source.types[name] if name in source.types else _kept(every[name], source.minor)
        )
        for name in sorted(every)
    }
    return {**_head(table, source), "types": made}


def _gates(table: Table, source: Source) -> Table:
    needs = {name: {"gates": list(needed)} for name, needed in source.needs.items()}
    return {
        **_head(table, source),
        "uncertain": [minor for minor in table["uncertain"] if minor != source.minor],
        "gates": _put(table["gates"], source.minor, source.gates),
        "requires": _put(table["requires"], source.minor, needs),
    }


def _defaults(table: Table, source: Source) -> Table:
    gated = _kept(table["gated"], source.minor)
    said = {name: {"value": value} for name, value in _without(source.defaults, gated).items()}
    held = _kept(table["defaults"], source.minor)
    said |= {name: held[name] for name in _BY_THE_LOADER if name in held}
    return {
        **_head(table, source),
        "defaults": _put(table["defaults"], source.minor, said),
        "legacy": _put(table["legacy"], source.minor, _kept(table["legacy"], source.minor)),
        "gated": _put(table["gated"], source.minor, gated),
    }


def _without(values: Mapping[str, Any], paths: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults without those that depend on a gate."""
    left = dict(values)
    for path in paths:
        name, _, rest = path.partition(".")
        if rest and isinstance(left.get(name), dict):
            left[name] = _without(left[name], {rest: None})
        elif not rest:
            left.pop(name, None)
    return left


def _fields(table: Table, source: Source) -> Table:
    minor, known = source.minor, source.types[ROOT]
    fields = {name: dict(entry) for name, entry in table["fields"].items()}
    for name in sorted({*fields, *known} - {*_META}):
        if name not in known:
            fields[name]["last"] = min(fields[name]["last"], minor - 1)
        else:
            new = {"kind": _top_kind(known[name]["kind"], source), "since": minor, "last": minor, "flags": []}
            entry = fields.setdefault(name, new)
            entry["last"] = max(entry["last"], minor)
    for flag, (_, field) in source.flags.items():
        if field in fields and flag not in table["flags"]:
            fields[field]["flags"] = sorted({*fields[field]["flags"], flag})
    return {**_head(table, source), "fields": dict(sorted(fields.items())), "flags": _flags(table["flags"], source)}


def _top_kind(kind: str, source: Source) -> str:
    """A top-level field's kind as people see it; the parts of an object are in the table of types."""
    for name in source.types:
        kind = "object" if kind == name else kind.replace(f"<{name}>", "<object>")
    return kind


def _flags(table: Mapping[str, Any], source: Source) -> Table:
    made = {name: dict(entry) for name, entry in table.items()}
    for name, entry in made.items():
        if name not in source.names and (entry["removed"] is None or entry["removed"] >= source.minor):
            made[name] = {**entry, "removed": source.minor, "removedText": f"1.{source.minor}"}
    for name, (kind, field) in source.flags.items():
        if name not in made:
            made[name] = {"kind": kind, "since": source.minor, "removed": None, **({"field": field} if field else {})}
    return dict(sorted(made.items()))


# Writing.


def text(table: Table) -> str:
    """The text of a table: a line for each field, flag or gate."""
    return _shown(table, 0) + "\n"


_DEPTH = 3


def _shown(value: Any, depth: int) -> str:
    if isinstance(value, dict) and value and not isinstance(value.get("since"), int) and depth < _DEPTH:
        inner = (f"{'  ' * (depth + 1)}{json.dumps(key)}: {_shown(each, depth + 1)}" for key, each in value.items())
        return "{\n" + ",\n".join(inner) + "\n" + "  " * depth + "}"
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value) and depth == 1:
        return "[\n" + ",\n".join(f"    {json.dumps(each, ensure_ascii=False)}" for each in value) + "\n  ]"
    return json.dumps(value, ensure_ascii=False)
