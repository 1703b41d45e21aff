"""Which nodes show the effect of a change, and which were left without it: a wave tests a change before more nodes get it."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.approvals import USED
from rollout.core.model.freeze import FROZEN
from rollout.core.run import drains, postponed
from rollout.core.run.state import NodeRecord, NodeState, Order, Rehearsal

RECEIPT_GONE = "no-transaction"
REVERTED_BY_OTHERS = "taken-back-by-others"
"""Reference: another run has reverted the change of this one."""


def was_skipped(record: NodeRecord) -> bool:
    """Whether it was left alone because of its pods. It did not fail, so a new controller may try again."""
    return record.state is NodeState.REFUSED and record.reference == drains.REFERENCE


def was_not_approved(record: NodeRecord) -> bool:
    """Whether its approvals were used up: by its receipts another run has changed it since the plan, so it was left alone."""
    return record.state is NodeState.REFUSED and record.reference == USED


def was_frozen(record: NodeRecord) -> bool:
    """Whether it refused its change because an operator had frozen it. It did not fail, so a new controller tries again."""
    return record.state is NodeState.REFUSED and record.reference == FROZEN


def has_lost_its_receipt(record: NodeRecord) -> bool:
    """Whether others removed the receipt of its confirmed change: it may have the change, and nothing proves it."""
    return record.state is NodeState.FAILED and record.reference == RECEIPT_GONE


def has_left(record: NodeRecord) -> bool:
    """Whether it left the fleet."""
    return record.state is NodeState.GONE


def has_shown(order: Order, name: str, record: NodeRecord) -> bool:
    """Whether it has shown the change of its kind. A node that left has, if it was confirmed and, where that is due, rehearsed."""
    rehearsed = not order.rehearsal or order.nodes[name].wave > 0 or record.rehearsal is Rehearsal.DONE
    return record.state is NodeState.CONFIRMED or (has_left(record) and record.shown and rehearsed)


def was_reverted_by_others(record: NodeRecord) -> bool:
    """Whether another run has reverted the change of this one: no effect of it can be seen there any more."""
    return record.state is NodeState.REVERTED and record.reference == REVERTED_BY_OTHERS


def shows_no_more(record: NodeRecord) -> bool:
    """Whether others have ended what it showed: its change, or the receipt that proves it."""
    return was_reverted_by_others(record) or has_lost_its_receipt(record)


def unshown(order: Order, nodes: Mapping[str, NodeRecord], wave: int, following: int) -> list[str]:
    """Nodes without the change, of kinds that have no changed node and have nodes to come.

    A wave tests a change before more nodes get it; these kinds are untested. Looked at are the nodes of ``wave`` that were left
    alone, and those of all waves before ``following`` where others have ended what they showed.
    """
    reasons = (
        postponed.skipped_for_pulls, was_skipped, postponed.skipped_without_baseline, has_left, was_not_approved, was_frozen,
    )  # fmt: skip
    here = order.waves[wave].nodes if wave < len(order.waves) else ()
    before = [n for each in order.waves[:following] for n in each.nodes if shows_no_more(nodes[n])]
    skipped = [*before, *(n for n in here if any(skipped_for(nodes[n]) for skipped_for in reasons))]
    if not skipped:
        return []
    shown = {order.nodes[name].kind for name, record in nodes.items() if has_shown(order, name, record)}
    to_come = {order.nodes[name].kind for name, record in nodes.items() if record.state is NodeState.PENDING}
    return [name for name in skipped if order.nodes[name].kind in to_come - shown]
