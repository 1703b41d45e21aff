"""A baseline that could not be taken before a node's change: a restart of the API server is not the node's fault.

Such a node is unchanged and ``pending``. It takes no room from any limit, and others go first. Its wave does not end
while it waits. After ``WITHIN`` seconds it is ``refused`` without a charge; a resume tries it again.
"""

from __future__ import annotations

from rollout.core.run.state import NodeRecord, NodeState, Unseen

ASK_AGAIN = 10.0
"""Seconds until the next try."""

WITHIN = 120.0
"""Seconds after which the tries end."""

REFERENCE = "baseline-unknown"


def still_unseen(record: NodeRecord, now: float) -> Unseen:
    """The record of a failed attempt to take a node's baseline, the first or a later one."""
    return Unseen(record.unseen.since if record.unseen else now, now + ASK_AGAIN)


def is_over(unseen: Unseen, now: float) -> bool:
    return now - unseen.since >= WITHIN


def was_skipped(record: NodeRecord) -> bool:
    """Whether it was left alone without a baseline. It did not fail, so a new controller may try again."""
    return record.state is NodeState.REFUSED and record.unseen is not None
