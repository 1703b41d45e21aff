"""The revert times that a run has measured."""

from __future__ import annotations

from rollout.core.model.rollback_timing import WayBack
from rollout.core.run.state import RunState


def measured(state: RunState) -> WayBack | None:
    """What a run has measured, in its rehearsal or a real revert; ``None`` until a node is reverted."""
    back = [record for record in state.nodes.values() if record.revert_seconds > 0]
    if not back:
        return None
    slowest = max(record.revert_seconds for record in back)
    forth = max((record.apply_seconds for record in state.nodes.values()), default=0.0)
    return WayBack(state.order.run, len(back), forth, slowest)
