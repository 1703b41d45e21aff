"""The feature gates that a kubelet's binary registers, by the tables of a source tree, and what each needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.tables import go_source

_STAGING = "staging/src/k8s.io"
_FILES = (
    "pkg/features/kube_features.go",
    f"{_STAGING}/apiserver/pkg/features/kube_features.go",
    f"{_STAGING}/apiextensions-apiserver/pkg/features/kube_features.go",
    f"{_STAGING}/client-go/features/known_features.go",
    f"{_STAGING}/component-base/logs/api/v1/kube_features.go",
    f"{_STAGING}/component-base/metrics/features/kube_features.go",
    f"{_STAGING}/component-base/zpages/features/kube_features.go",
)
_CONSTANT = re.compile(r'^\s*(?:const\s+)?(\w+)\s+(?:featuregate\.)?Feature\s*=\s*"(\w+)"', re.MULTILINE)
_TABLE = re.compile(r"map\[(?:featuregate\.)?Feature\](?:featuregate\.)?(VersionedSpecs|FeatureSpec)\s*\{")
_NEEDS = re.compile(r"map\[featuregate\.Feature\]\[\]featuregate\.Feature\s*\{")
_ENTRY = re.compile(r"([\w.]+):\s*\{")
_VERSION = re.compile(r'MustParse\("1\.(\d+)(?:\.\d+)?"\)')
_STAGE = re.compile(r"PreRelease:\s*(?:featuregate\.)?(\w+)")
_DEFAULT = re.compile(r"\bDefault:\s*true")
_NEEDED = re.compile(r"[\w.]+(?![\w.]*\()")  # not the Feature of Feature(other.Gate)
_STAGES = {"Alpha": "ALPHA", "Beta": "BETA", "GA": "GA", "Deprecated": "DEPRECATED"}
_OF_ALL = {name: {"stage": stage, "default": False} for name, stage in (("AllAlpha", "ALPHA"), ("AllBeta", "BETA"))}


def read(source: Path, minor: int) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, tuple[str, ...]]]:
    """Gate → stage, default, locked in 1.``minor``; and gate → the gates that it needs."""
    texts = [go_source.read(source / name) for name in _FILES if (source / name).exists()]
    constants = {found[1]: found[2] for text in texts for found in _CONSTANT.finditer(text)}
    gates: dict[str, Mapping[str, Any]] = dict(_OF_ALL)
    needs: dict[str, tuple[str, ...]] = {}
    for text in texts:
        for found in _TABLE.finditer(text):
            for name, spec in _entries(text, found.end() - 1):
                made = _of_minor(spec, minor)
                if made is not None:
                    gates[_called(name, constants)] = made
        for found in _NEEDS.finditer(text):
            for name, list_of in _entries(text, found.end() - 1):
                needed = tuple(sorted(_called(word, constants) for word in _NEEDED.findall(list_of)))
                needs |= {_called(name, constants): needed} if needed else {}
    return gates, {name: needed for name, needed in needs.items() if name in gates}


def _entries(text: str, start: int) -> Iterator[tuple[str, str]]:
    """The entries of a composite literal that have values in braces."""
    table, at = go_source.body(text, start), 0
    while found := _ENTRY.search(table, at):
        inner = go_source.body(table, found.end() - 1)
        yield found[1], inner
        at = found.end() + len(inner)


def _called(name: str, constants: Mapping[str, str]) -> str:
    own = name.rpartition(".")[2]
    return constants.get(own, own)


def _of_minor(spec: str, minor: int) -> dict[str, Any] | None:
    """The newest of its stages that 1.``minor`` has; one without a version holds for the tree's own minor."""
    parts = [go_source.body(spec, at) for at, letter in enumerate(spec) if letter == "{"] or [spec]
    since = [(int(found[1]) if (found := _VERSION.search(part)) else 0, part) for part in parts]
    there = [(at, part) for at, part in since if at <= minor]
    if not there:
        return None
    part = max(there, key=lambda entry: entry[0])[1]
    stage = _STAGE.search(part)
    made: dict[str, Any] = {"stage": _STAGES[stage[1]] if stage else "GA", "default": bool(_DEFAULT.search(part))}
    return {**made, **({"locked": True} if re.search(r"LockToDefault:\s*true", part) else {})}
