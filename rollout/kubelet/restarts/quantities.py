"""Kubernetes quantities as whole numbers, rounded up as the kubelet's admission does."""

from __future__ import annotations

from functools import lru_cache
from math import ceil

from rollout.kubelet.configuration.quantities import parse


@lru_cache(maxsize=4096)
def milli(text: str) -> int:
    """In thousandths, as ``Quantity.MilliValue``; ``ValueError`` for what is no quantity."""
    return ceil(parse(text).amount * 1000)


@lru_cache(maxsize=4096)
def whole(text: str) -> int:
    """As ``Quantity.Value``; ``ValueError`` for what is no quantity."""
    return ceil(parse(text).amount)
