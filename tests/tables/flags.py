"""Kubelet flags of a source tree: those that are registered with a kind, and every name that is written near them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.tables import go_source

_OPTIONS = ("cmd/kubelet/app/options", "pkg/kubelet/config")
_NEAR = (*_OPTIONS, "staging/src/k8s.io/component-base")
_NOT_LINUX = ("_test.go", "_windows.go", "_other.go", "_others.go")
_TYPED = re.compile(r'\bfs\.(\w+?)Var\(&(\w+)\.([\w.]+),\s*"([\w-]+)"')
_NAME = re.compile(r'"([a-z][a-z0-9_-]*)"')
_KINDS = {
    "Bool": "bool",
    "String": "string",
    "Duration": "duration",
    "Int32": "int32",
    "Int64": "int64",
    "StringSlice": "stringslice",
}


def registered(source: Path, go_names: Mapping[str, str]) -> Mapping[str, tuple[str, str]]:
    """Flag → its kind and the top-level field that it sets (``""``: none), without flags of custom types."""
    found: dict[str, tuple[str, str]] = {}
    for text in _texts(source, _OPTIONS):
        for kind, owner, name, flag in _TYPED.findall(text):
            if kind in _KINDS:
                found[f"--{flag}"] = (_KINDS[kind], go_names.get(name.partition(".")[0], "") if owner == "c" else "")
    return found


def written(source: Path) -> frozenset[str]:
    """Every text that could be a flag's name: a flag that is not here was removed."""
    names = (name for text in _texts(source, _NEAR) for name in _NAME.findall(text))
    return frozenset(f"--{name.replace('_', '-')}" for name in names)


def _texts(source: Path, folders: tuple[str, ...]) -> list[str]:
    paths = [path for folder in folders for path in sorted((source / folder).rglob("*.go"))]
    return [go_source.read(path) for path in paths if not path.name.endswith(_NOT_LINUX)]
