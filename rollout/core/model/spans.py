"""Times from a begin to an end, in seconds."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[float, float]


def joined(spans: Iterable[Span]) -> list[Span]:
    """Joins overlapping times, in order."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
