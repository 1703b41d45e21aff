"""What runs have measured of a node's way back, and what it says about taking a whole fleet back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollout.core.playbook import Limits
from rollout.core.state import RunState


@dataclass(frozen=True, slots=True)
class WayBack:
    """Seconds one node took, the slowest of ``nodes`` that were taken back in ``run``; and forth (0: none was)."""

    run: str
    nodes: int
    apply_seconds: float
    revert_seconds: float


def measured(state: RunState) -> WayBack | None:
    """What a run has measured, in its rehearsal or in earnest; ``None`` while no node has gone back."""
    back = [record for record in state.nodes.values() if record.revert_seconds > 0]
    if not back:
        return None
    slowest = max(record.revert_seconds for record in back)
    forth = max((record.apply_seconds for record in state.nodes.values()), default=0.0)
    return WayBack(state.order.run, len(back), forth, slowest)


def way_back_seconds(racks: Mapping[str, int], sizes: Mapping[str, int], limits: Limits, each: float) -> float:
    """How long taking ``racks`` (rack → nodes) back lasts when one node takes ``each`` seconds.

    The slower of the pace and of rounds through the limits, then one node's own time; ``sizes``: rack → all its nodes.
    """
    total = sum(racks.values())
    rounds = max((-(-count // limits.per_rack.of(sizes[rack])) for rack, count in racks.items()), default=0)
    rounds = max(rounds, -(-total // limits.in_flight))
    return max(total / limits.pace + each, rounds * each)
