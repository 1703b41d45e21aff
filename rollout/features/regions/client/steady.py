"""The clock that calls to workers expire by: no operator and no time service sets it, and it counts while a machine sleeps."""

from __future__ import annotations

import time


def steady() -> float:
    """Seconds since this machine's boot. Two machines' readings differ by an offset that is measured with each exchange."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
