"""The modules that one value passes in a real call: those with functions that receive the value."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

_DEEP = 7
"""The depth of nested containers that are searched."""


def modules_on_the_way(work: Callable[[], object], marker: str, root: Path) -> tuple[str, ...]:
    """In the order of the first visit: modules under ``root`` with a function that received or returned a value with
    the marker.
    """
    seen: dict[str, None] = {}

    def look(frame: FrameType, event: str, given: Any) -> None:
        file = frame.f_code.co_filename
        if event not in ("call", "return") or not file.startswith(str(root)) or file in seen:
            return
        sys.setprofile(None)
        try:
            values = list(_arguments(frame)) if event == "call" else [given]
            if any(_holds(value, marker, _DEEP) for value in values):
                seen[file] = None
        finally:
            sys.setprofile(look)

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return tuple(".".join(Path(file).relative_to(root.parent).with_suffix("").parts) for file in seen)


def _arguments(frame: FrameType) -> Iterator[object]:
    code = frame.f_code
    return (frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def _holds(value: object, marker: str, deep: int) -> bool:
    if isinstance(value, str | int | float | bytes):
        return marker in (value.decode(errors="replace") if isinstance(value, bytes) else str(value))
    if deep == 0:
        return False
    return any(_holds(part, marker, deep - 1) for part in _parts(value))


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from (*value.keys(), *value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif is_dataclass(value) and not isinstance(value, type):
        yield from (getattr(value, field.name, None) for field in fields(value))
