"""The number in a gate's evidence, where it says one, and what it was held against."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])"
_COMPARED = re.compile(rf"(?:^|[ ,]){_NUMBER} \(median of \d+.*?{_NUMBER} \(median of")
_RANGE = re.compile(rf"{_NUMBER} to {_NUMBER}; (?:at (most|least) {_NUMBER})?")
_BEYOND = re.compile(rf"beyond: (?:\{{[^}}]*\}} )?{_NUMBER}.*at (?:most|least) {_NUMBER}")


@dataclass(frozen=True, slots=True)
class Number:
    """``against`` is the control group's median or the threshold; ``None`` where neither is said."""

    value: float
    against: float | None


def number_in(evidence: str) -> Number | None:
    """What the evidence of a query measured; ``None`` where it is not about a number."""
    if found := _COMPARED.search(evidence):
        return Number(float(found[1]), float(found[2]))
    if found := _BEYOND.search(evidence):
        return Number(float(found[1]), float(found[2]))
    if found := _RANGE.search(evidence):
        value = float(found[1] if found[3] == "least" else found[2])
        return Number(value, float(found[4]) if found[4] else None)
    return None
