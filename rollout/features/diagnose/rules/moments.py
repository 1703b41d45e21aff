"""Times with a year, as programs print them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime

_TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)([.,]\d+)?(Z|[+-]\d\d:?\d\d|)")


def moment(text: str) -> float | None:
    """RFC 3339 or journald's ``short-iso``; ``None`` if it is neither. Digits after microseconds are dropped."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    zone = "+00:00" if match[3] in ("Z", "") else f"{match[3][:3]}:{match[3][-2:]}"
    fraction = (match[2] or "")[:7]
    with suppress(ValueError):
        seconds = datetime.fromisoformat(match[1] + zone).timestamp()
        return seconds + (float("0" + fraction.replace(",", ".")) if len(fraction) > 1 else 0.0)
    return None
