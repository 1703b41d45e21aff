"""Draining before a change: pods that would not survive it are evicted first, in short rounds.

A node being drained is ``applying``: it takes room from every limit from its first round until its cordon is lifted.
A round answers ``draining`` (asked again), ``drained`` (the pods are gone: the restart waits only for the pace) or ``not drained``
(``refused`` without a charge). Anything that stops releases, also a pause, ends drains: such a node is ``pending`` again.

The cordon is lifted once its node is at rest: confirmed (and rehearsed if needed), reverted, or left alone. A run does not
end before each cordon was lifted, or could not be for two minutes (``MOST_TRIES``) after all other work was done. Then the
node is reported and pending recovery.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.approvals import USED
from rollout.core.model.freeze import FROZEN
from rollout.core.run import postponed
from rollout.core.run.facts import IN_MOTION
from rollout.core.run.state import (
    NodeRecord,
    NodeState,
    Order,
    Phase,
    Rehearsal,
    RunState,
    Verb,
)

REFERENCE = "not-drained"
RECEIPT_GONE = "no-transaction"
REVERTED_BY_OTHERS = "taken-back-by-others"
"""Reference: another run has reverted the change of this one."""

SOONEST = 0.5
"""The least seconds between two rounds, whatever an answer asks for."""

AGAIN_EVERY = 15.0
"""Seconds between two attempts to lift a cordon."""

MOST_TRIES = 9
"""Attempts in a row to lift a cordon before a run may end without it: two minutes."""

_LEFT = "its cordon could not be lifted"


def left(drain: float, since: float, now: float) -> float:
    """Seconds that its pods still have; ``0``: their time is over. ``since``: when it was first asked."""
    return max(0.0, since + drain - now)


def was_skipped(record: NodeRecord) -> bool:
    """Whether it was left alone because of its pods. It did not fail, so a new controller may try again."""
    return record.state is NodeState.REFUSED and record.reference == REFERENCE


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


def may_go_on(state: RunState) -> bool:
    """Whether nodes are released, and so drained, at all."""
    return state.phase is Phase.RUNNING and not state.waits and state.wave < len(state.order.waves)


def keeps_its_cordon(state: RunState, nodes: Mapping[str, NodeRecord], name: str) -> bool:
    """Whether a node with a cordon of ours still needs it: it is in flight, or will be changed again."""
    record = nodes[name]
    if record.state in IN_MOTION:
        return True
    if not may_go_on(state) or state.order.nodes[name].wave != state.wave:
        return False
    return record.state is NodeState.PENDING or (
        record.state is NodeState.CONFIRMED and _goes_again(state, nodes, name)
    )


def _goes_again(state: RunState, nodes: Mapping[str, NodeRecord], name: str) -> bool:
    """Whether it must still be rehearsed, with no node waiting for room before it: a node changed twice may be drained twice."""
    if not state.order.rehearsal or state.reached > 0 or nodes[name].rehearsal is Rehearsal.DONE:
        return False
    wave = (nodes[each] for each in state.order.waves[state.wave].nodes)
    return not any(record.state is NodeState.PENDING and not record.cordoned for record in wave)


def is_open(record: NodeRecord) -> bool:
    """Whether the run waits until this node's cordon is lifted."""
    return record.cordoned and (record.asked is Verb.UNCORDON or record.uncordons < MOST_TRIES)


def left_words(message: str) -> str:
    return f"{_LEFT}: {message}"


def left_behind(record: NodeRecord) -> tuple[str, ...]:
    """The message for a cordon that could not be lifted."""
    return tuple(words for words in record.leftovers if record.cordoned and words.startswith(_LEFT))


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
