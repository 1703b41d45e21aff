"""The types of KubeletConfiguration in a source tree: names, kinds, pointers, and when ``/configz`` shows a field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.tables import go_source
from tests.tables.go_source import Field

ROOT = "KubeletConfiguration"
_VERSIONED = (
    "staging/src/k8s.io/kubelet/config/v1beta1/types.go",
    "staging/src/k8s.io/component-base/logs/api/v1/types.go",
    "staging/src/k8s.io/component-base/tracing/api/v1/types.go",
)
_INTERNAL = "pkg/kubelet/apis/config/types.go"
_SCALARS = {
    "bool": "bool",
    "string": "string",
    "int32": "int32",
    "int64": "int64",
    "uint32": "uint32",
    "float64": "float64",
    "Duration": "duration",
    "Quantity": "quantity",
    "QuantityValue": "quantity",
    "TimeOrMetaDuration": "durationOrNanoseconds",
    "ResourceList": "map<string,quantity>",
}
_ELSEWHERE = {"Taint": "Taint"}
"""Types of k8s.io/api; the table keeps its values for them."""
_ALWAYS = frozenset({"duration", "quantity", "durationOrNanoseconds"})
"""Structs in Go: ``omitempty`` omits none of them."""


class Types:
    """All of one tree."""

    def __init__(self, source: Path) -> None:
        texts = [go_source.read(source / name) for name in _VERSIONED if (source / name).exists()]
        self._structs = {name: fields for text in texts for name, fields in go_source.structs(text).items()}
        self._named = {name: behind for text in texts for name, behind in go_source.named(text).items()}
        self._internal = go_source.structs(go_source.read(source / _INTERNAL))

    def table(self) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
        """Type → field → kind, pointer, shown, of all types that ``KubeletConfiguration`` is made of."""
        made: dict[str, Mapping[str, Mapping[str, Any]]] = {}
        wanted = [ROOT]
        while wanted:
            name = wanted.pop()
            if name not in made and name in self._structs:
                made[name] = {field.json: self._entry(name, field) for field in self._fields(name)}
                wanted += [_inner(str(entry["kind"])) for entry in made[name].values()]
        return made

    def go_names(self) -> Mapping[str, str]:
        """The Go name of each top-level field → its name in JSON."""
        return {field.name: field.json for field in self._fields(ROOT)}

    def _fields(self, name: str) -> Iterator[Field]:
        for field in self._structs[name]:
            if field.inline and field.go_type in self._structs:
                yield from self._fields(field.go_type)
            elif field.json not in {"", "-"} and not field.inline:
                yield field

    def _entry(self, owner: str, field: Field) -> dict[str, Any]:
        pointer = field.go_type.startswith("*")
        kind = self._kind(field.go_type.removeprefix("*"))
        entry: dict[str, Any] = {"kind": kind, **({"pointer": True} if pointer else {})}
        return {**entry, "shown": self._shown(owner, field, kind, pointer=pointer)}

    def _kind(self, go_type: str) -> str:
        if go_type.startswith("[]"):
            return f"list<{self._kind(go_type[2:])}>"
        if go_type.startswith("map[string]"):
            return f"map<string,{self._kind(go_type[len('map[string]') :])}>"
        if go_type == "time.Duration":
            return "nanoseconds"
        name = go_type.rpartition(".")[2]
        if name in self._structs and name not in _SCALARS:
            return name
        if name in _SCALARS or name in _ELSEWHERE:
            return _SCALARS.get(name, name)
        if name in self._named:
            return self._kind(self._named[name])
        raise ValueError(f"the Go type {go_type} is not known to this generator (tests/tables/types.py)")

    def _shown(self, owner: str, field: Field, kind: str, *, pointer: bool) -> str:
        if not field.omitempty:
            return "always"
        if not pointer:
            return "always" if kind in _ALWAYS or kind in self._structs else "nonempty"
        within = {each.name: each.go_type for each in self._internal.get(owner, ())}
        return "set" if within.get(field.name, "*").startswith("*") else "always"


def _inner(kind: str) -> str:
    """The element type of a list or map."""
    return kind.rstrip(">").rpartition("<")[2].rpartition(",")[2]
