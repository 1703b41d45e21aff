"""Another value with some fields changed, for the state of a run, which every event makes anew: ``dataclasses.replace`` has
``__init__`` set every field again. Not for its nodes' records: they are read far more often than made, which slots make cheaper.
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
