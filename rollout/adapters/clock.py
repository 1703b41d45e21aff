"""The clocks and the zone data of this machine."""

from __future__ import annotations

import time
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, available_timezones

from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem


class SystemClock:
    """Wall time that never decreases within a process: epoch seconds at the start plus monotonic time since. A stepped
    wall clock has no effect.
    """

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def now(self) -> float:
        return self._epoch + time.monotonic()

    def wall(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class SystemZones:
    """The wall clock, and the zones of the system, else of the package ``tzdata``. Cached for the life of the process."""

    def wall_seconds(self) -> float:
        return time.time()

    def zone(self, name: str) -> tzinfo:
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError) as exc:
            known = available_timezones()
            hint = did_you_mean(name, sorted(known)) or ("" if known else "install the zone data, for example tzdata")
            message = f"the zone data of this machine has no readable zone `{printable(name, 60)}`"
            raise InputError((Problem("unknown-zone", message, hint=hint),)) from exc
