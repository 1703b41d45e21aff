"""The clock: wall time that never decreases within a process."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Epoch seconds at the start plus monotonic time since: a stepped wall clock has no effect."""

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def now(self) -> float:
        return self._epoch + time.monotonic()

    def wall(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
