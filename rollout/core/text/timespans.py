"""Time spans as systemd prints them: ``systemctl show`` prints ``RestartUSec=1min 30s``.

A node writes these texts, so their length and value are bounded, and no pattern repeats a repetition.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import inf

MOST_SECONDS = 366 * 86400.0
"""A longer span counts as infinite."""

_LONGEST_TEXT = 100
_TERM = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(us|ms|s|min|h|d|w|month|y|)", re.ASCII)
_UNITS = {
    "": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
    "month": 2629800.0, "y": 31557600.0,
}  # fmt: skip


@lru_cache(maxsize=1024)
def timespan(text: str) -> float | None:
    """Seconds, ``inf`` for ``infinity`` and for more than ``MOST_SECONDS``; ``None``: not a span.

    A bare number counts microseconds: systemd prints ``0`` for no time.
    """
    if text == "infinity":
        return inf
    if len(text) > _LONGEST_TEXT:
        return None
    terms = [_TERM.fullmatch(term) for term in text.split()]
    if not terms or None in terms:
        return None
    seconds = sum(float(term[1]) * _UNITS[term[2]] for term in terms if term)
    return seconds if seconds <= MOST_SECONDS else inf
