"""The revert times that runs have measured, and the estimate for a whole fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.model.playbook import Limits

SETTLE = 5.0
"""Seconds for which a reverted node still counts as unavailable; then the next one takes its place."""


@dataclass(frozen=True, slots=True)
class RevertTimes:
    """Seconds to revert one node, the slowest of ``nodes`` reverted in ``run``; and to apply (0: not measured)."""

    run: str
    nodes: int
    apply_seconds: float
    revert_seconds: float


def seconds_to_revert(
    racks: Mapping[str, int],
    sizes: Mapping[str, int],
    limits: Limits,
    each: float,
    zones: Mapping[str, int] | None = None,
    zone_sizes: Mapping[str, int] | None = None,
) -> float:
    """Seconds to revert ``racks`` (rack → nodes) when one node takes ``each`` seconds.

    The longer of two times: the pace plus one node's own time, or rounds within the limits, each with the time to settle.
    ``sizes``: rack → all its nodes; the same for ``zones``, if they have a limit.
    """
    total = sum(racks.values())
    rounds = max((-(-count // limits.per_rack.of(sizes[rack])) for rack, count in racks.items()), default=0)
    rounds = max(rounds, -(-total // limits.in_flight))
    if limits.per_zone is not None and zone_sizes:
        share = limits.per_zone
        rounds = max(rounds, *(-(-count // share.of(zone_sizes[zone])) for zone, count in (zones or {}).items()))
    return max(total / limits.pace + each, rounds * each + max(0, rounds - 1) * SETTLE)
