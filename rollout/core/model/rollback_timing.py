"""The revert times that runs have measured, and the estimate for a whole fleet."""

from __future__ import annotations

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


def seconds_to_revert(nodes: int, rounds: int, limits: Limits, each: float) -> float:
    """Seconds to revert ``nodes`` when one takes ``each`` seconds and their racks and zones allow them in ``rounds``.

    The longer of two times: the pace plus one node's own time, or rounds within the limits, each with the time to settle.
    """
    rounds = max(rounds, -(-nodes // limits.in_flight))
    return max(nodes / limits.pace + each, rounds * each + max(0, rounds - 1) * SETTLE)
