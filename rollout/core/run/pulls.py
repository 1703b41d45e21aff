"""Pulls in flight before a node's change: a restart would cancel them, so the node waits its turn again, for a time.

Such a node was not touched and is ``pending``: it takes no room from any limit, others go first, and its wave does not end
while it waits. After ``Order.pulls.within`` seconds it is ``refused`` without a charge, or changed regardless. The time
begins anew with a new controller and after a pause: nobody asked the node meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rollout.core.model.playbook import Busy
from rollout.core.run.state import NodeRecord, NodeState, Order, Pulling

ASK_AGAIN = 15.0
"""Seconds after which a node that pulled images is asked again."""

REFERENCE = "pulls-in-flight"


def in_turn(names: Iterable[str], nodes: Mapping[str, NodeRecord], now: float) -> list[str]:
    """Of the nodes that are to go those that may be asked now: in their order, but who was asked before comes last."""
    fresh, again = [], []
    for name in names:
        if nodes[name].pulling is None and nodes[name].unseen is None:
            fresh.append(name)
        elif may_be_asked(nodes[name], now):
            again.append(name)
    return fresh + again


def may_be_asked(record: NodeRecord, now: float) -> bool:
    """Whether neither its pulls nor its baseline are to be waited for at this moment."""
    return all(now >= found.again for found in (record.pulling, record.unseen) if found is not None)


def still_pulling(record: NodeRecord, images: tuple[str, ...], now: float) -> Pulling:
    """What is remembered of a node that was found pulling, now or once more."""
    since = record.pulling.since if record.pulling else now
    return Pulling(since, now + ASK_AGAIN, images)


def is_over(pulling: Pulling | None, order: Order, now: float) -> bool:
    """Whether the playbook waits no longer for this node."""
    return now - (pulling.since if pulling else now) >= order.pulls.within


def goes_regardless(record: NodeRecord, order: Order, now: float) -> bool:
    """Whether the next apply is to change the node whatever it pulls."""
    return order.pulls.then is Busy.OVERRIDE and is_over(record.pulling, order, now)


def is_left_alone(record: NodeRecord, order: Order, now: float) -> bool:
    """Whether a node that pulls now, once more, is left as it is."""
    return order.pulls.then is Busy.SKIP and is_over(record.pulling, order, now)


def was_skipped(record: NodeRecord) -> bool:
    """Whether it was left alone for its pulls: nobody's fault, so a new controller may try again."""
    return record.state is NodeState.REFUSED and record.pulling is not None


def words(images: tuple[str, ...]) -> str:
    """What a node pulls, for messages."""
    if images:
        return f"it pulls {', '.join(images)}"
    return "it cannot tell whether it pulls images; with `pullsInFlight: override` it would not be asked"
