"""A baseline that could not be taken before a node's change: an API server that restarts is no fault of the node's.

Such a node was not touched and is ``pending``: it takes no room from any limit, others go first, and its wave does not end
while it waits. After ``WITHIN`` seconds it is ``refused`` without a charge; a resume has another go.
"""

from __future__ import annotations

from rollout.core.run.state import NodeRecord, NodeState, Unseen

ASK_AGAIN = 10.0
"""Seconds after which it is tried again."""

WITHIN = 120.0
"""Seconds for which it is tried."""

REFERENCE = "baseline-unknown"


def still_unseen(record: NodeRecord, now: float) -> Unseen:
    """What is remembered of a node whose baseline could not be taken, now or once more."""
    return Unseen(record.unseen.since if record.unseen else now, now + ASK_AGAIN)


def is_over(unseen: Unseen, now: float) -> bool:
    return now - unseen.since >= WITHIN


def was_skipped(record: NodeRecord) -> bool:
    """Whether it was left alone for want of a baseline: nobody's fault, so a new controller may try again."""
    return record.state is NodeState.REFUSED and record.unseen is not None
