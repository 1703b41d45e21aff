"""The wall clock and the zone data of this machine: those of the system, else of the package ``tzdata``."""

from __future__ import annotations

import time
from datetime import tzinfo
from zoneinfo import ZoneInfo, available_timezones

from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem


class SystemZones:
    """See the module. Zone data is cached for the life of the process."""

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
