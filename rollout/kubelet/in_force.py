"""``/configz`` compared with the wanted values: fields as a kubelet prints them.

A kubelet leaves out what is empty (``omitempty`` in KubeletConfiguration v1beta1 types.go). So a field that it does not
show is empty: ``readOnlyPort: 0`` is in force if no ``readOnlyPort`` is shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from rollout.core.model.settings import Value
from rollout.kubelet import values

Path = tuple[str, ...]


def holds(shown: Value, wanted: Value, path: Path) -> bool:
    """Is ``wanted`` in force? Of maps only the wanted keys count, everything else counts as a whole. ``None``: not
    shown.
    """
    if wanted is None:
        return shown is None or _empty(shown, path)
    if shown is None:
        return _empty(wanted, path)
    if isinstance(wanted, dict):
        return isinstance(shown, dict) and all(
            holds(shown.get(key), value, (*path, key)) for key, value in wanted.items()
        )
    return values.same(path, shown, wanted)


def at(values: Mapping[str, Value], path: str) -> Value:
    """The value at ``a.b.c``; ``None``: it does not exist."""
    found: Value = dict(values)
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found


def number(effective: Mapping[str, Value], field: str, default: int) -> int:
    """A whole number in force, ``default`` if none is shown."""
    value = effective.get(field)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _empty(wanted: Value, path: Path) -> bool:
    if isinstance(wanted, dict):
        return all(_empty(value, (*path, key)) for key, value in wanted.items())
    return not wanted or values.same(path, "0s", wanted)


def part(shown: Value, wanted: Value) -> Value:
    """The shown part of what is wanted, ``null`` for what is not shown."""
    if isinstance(shown, dict) and isinstance(wanted, dict):
        return {key: part(shown.get(key), value) for key, value in wanted.items()}
    return shown


def canonical(value: Value) -> str:
    """The one JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
