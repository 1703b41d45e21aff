"""What runs have measured of a node's way back, and what it says about taking a whole fleet back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.model.playbook import Limits


@dataclass(frozen=True, slots=True)
class WayBack:
    """Seconds one node took, the slowest of ``nodes`` that were taken back in ``run``; and forth (0: none was)."""

    run: str
    nodes: int
    apply_seconds: float
    revert_seconds: float


def way_back_seconds(racks: Mapping[str, int], sizes: Mapping[str, int], limits: Limits, each: float) -> float:
    """How long taking ``racks`` (rack → nodes) back lasts when one node takes ``each`` seconds.

    The slower of the pace and of rounds through the limits, then one node's own time; ``sizes``: rack → all its nodes.
    """
    total = sum(racks.values())
    rounds = max((-(-count // limits.per_rack.of(sizes[rack])) for rack, count in racks.items()), default=0)
    rounds = max(rounds, -(-total // limits.in_flight))
    return max(total / limits.pace + each, rounds * each)
