"""A copy of a value with some fields changed, for what every event copies: the state of a run and its nodes' records.
``dataclasses.replace`` is slower: its ``__init__`` sets every field again.
"""

from __future__ import annotations

from typing import Any, TypeVar

Value = TypeVar("Value")


def altered(value: Value, **changes: Any) -> Value:
    """``value``, a frozen dataclass without slots or ``__post_init__``, with these fields changed; ``TypeError``: no such field."""
    new = object.__new__(type(value))
    new.__dict__.update(value.__dict__)
    if not changes.keys() <= new.__dict__.keys():
        message = f"{type(value).__name__} has no {', '.join(sorted(changes.keys() - new.__dict__.keys()))}"
        raise TypeError(message)
    new.__dict__.update(changes)
    return new
