"""The clock: wall time that never goes back within a process."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Seconds since the epoch at the start, counted on by the monotonic clock: a stepped wall clock changes nothing."""

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def now(self) -> float:
        return self._epoch + time.monotonic()

    def wall(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
