"""A table's spans (``since``, ``last`` and the values for them): what one minor has, and how a minor is added at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Span = Mapping[str, Any]


def at(spans: Sequence[Span], minor: int) -> Span | None:
    """The values for ``minor``, without the bounds."""
    found = next((span for span in spans if span["since"] <= minor <= span["last"]), None)
    return None if found is None else {key: value for key, value in found.items() if key not in {"since", "last"}}


def put(spans: Sequence[Span], minor: int, says: Span | None) -> list[Span]:
    """With ``says`` for ``minor``, the newest one (``None``: nothing there); earlier values for it are replaced."""
    before: list[Span] = [{**span, "last": min(span["last"], minor - 1)} for span in spans if span["since"] < minor]
    if says is None:
        return before
    if before and before[-1]["last"] == minor - 1 and at(before, minor - 1) == says:
        return [*before[:-1], {**before[-1], "last": minor}]
    ahead = {"kind": says["kind"]} if "kind" in says else {}
    return [*before, {**ahead, "since": minor, "last": minor, **says}]
