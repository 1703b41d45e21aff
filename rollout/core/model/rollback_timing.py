"""What runs have measured of a node's way back, and what it says about taking a whole fleet back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.model.playbook import Limits

SETTLE = 5.0
"""Seconds for which a node that is back still counts as away: its place is taken by the next one after them."""


@dataclass(frozen=True, slots=True)
class WayBack:
    """Seconds one node took, the slowest of ``nodes`` that were taken back in ``run``; and forth (0: none was)."""

    run: str
    nodes: int
    apply_seconds: float
    revert_seconds: float


def way_back_seconds(
    racks: Mapping[str, int],
    sizes: Mapping[str, int],
    limits: Limits,
    each: float,
    zones: Mapping[str, int] | None = None,
    zone_sizes: Mapping[str, int] | None = None,
) -> float:
    """How long taking ``racks`` (rack → nodes) back lasts when one node takes ``each`` seconds.

    The slower of the pace, then one node's own time, and of rounds through the limits, each with the time to settle;
    ``sizes``: rack → all its nodes, and the same of ``zones``, where there is a limit to them.
    """
    total = sum(racks.values())
    rounds = max((-(-count // limits.per_rack.of(sizes[rack])) for rack, count in racks.items()), default=0)
    rounds = max(rounds, -(-total // limits.in_flight))
    if limits.per_zone is not None and zone_sizes:
        share = limits.per_zone
        rounds = max(rounds, *(-(-count // share.of(zone_sizes[zone])) for zone, count in (zones or {}).items()))
    return max(total / limits.pace + each, rounds * each + max(0, rounds - 1) * SETTLE)
