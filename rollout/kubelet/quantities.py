"""Kubernetes quantities (apimachinery ``pkg/api/resource/quantity.go``): ``100m``, ``1Gi``, ``1e3``, ``0.5``."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from math import ceil

_WRITTEN = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([eE][+-]?\d{1,2}|[numkMGTPE]|[KMGTPE]i)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {f"{letter}i": 10 * power for power, letter in enumerate("KMGTPE", 1)}


@lru_cache(maxsize=4096)
def quantity(text: str) -> Decimal:
    """The number a quantity stands for, or ``ValueError``."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a quantity")
    number, suffix = Decimal(found[1]), found[2] or ""
    if suffix in _BINARY:
        return number * (1 << _BINARY[suffix])
    power = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:] or 0)
    return number.scaleb(power)


def milli(text: str) -> int:
    """In thousandths, rounded up as ``Quantity.MilliValue`` does."""
    return ceil(quantity(text) * 1000)


def whole(text: str) -> int:
    """Rounded up as ``Quantity.Value`` does."""
    return ceil(quantity(text))
