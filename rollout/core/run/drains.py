"""Draining before a change: pods that would not survive it are evicted first, in short rounds.

A node being drained is ``applying``: it takes room from every limit from its first round until its cordon is lifted.
A round answers ``draining`` (asked again), ``drained`` (the pods are gone: the restart waits only for the pace) or ``not drained``
(``refused`` without a charge). Anything that stops releases, also a pause, ends drains: such a node is ``pending`` again.

The cordon is lifted once its node is at rest: confirmed (and rehearsed if needed), reverted, or left alone. A run does not
end before each cordon was lifted, or could not be for two minutes (``MOST_TRIES``) after all other work was done. Then the
node is reported and pending recovery. A node that was given up keeps its cordon (``restart_may_come``): the run ends without it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.run.facts import IN_MOTION
from rollout.core.run.state import (
    NodeRecord,
    NodeState,
    Phase,
    Rehearsal,
    RunState,
    Verb,
)

REFERENCE = "not-drained"

SOONEST = 0.5
"""The least seconds between two rounds, whatever an answer asks for."""

AGAIN_EVERY = 15.0
"""Seconds between two attempts to lift a cordon."""

MOST_TRIES = 9
"""Attempts in a row to lift a cordon before a run may end without it: two minutes."""

_LEFT = "its cordon could not be lifted"

KEPT = "its cordon is kept: its apply may still restart the kubelet"
"""Of a node for which ``restart_may_come``."""


def left(drain: float, since: float, now: float) -> float:
    """Seconds that its pods still have; ``0``: their time is over. ``since``: when it was first asked."""
    return max(0.0, since + drain - now)


def may_go_on(state: RunState) -> bool:
    """Whether nodes are released, and so drained, at all."""
    return state.phase is Phase.RUNNING and not state.waits and state.wave < len(state.order.waves)


def keeps_its_cordon(state: RunState, nodes: Mapping[str, NodeRecord], name: str) -> bool:
    """Whether a node with a cordon of ours still needs it: it is in flight, or will be changed again."""
    record = nodes[name]
    if record.state in IN_MOTION or restart_may_come(record):
        return True
    if not may_go_on(state) or state.order.nodes[name].wave != state.wave:
        return False
    return record.state is NodeState.PENDING or (
        record.state is NodeState.CONFIRMED and _goes_again(state, nodes, name)
    )


def restart_may_come(record: NodeRecord) -> bool:
    """Whether an apply was sent to a node that was given up: it may arrive late, and would restart the kubelet with pods on the node.

    Its cordon stays until somebody has read the node: the read makes it refuse that apply.
    """
    return record.state is NodeState.UNREACHABLE and record.touched


def _goes_again(state: RunState, nodes: Mapping[str, NodeRecord], name: str) -> bool:
    """Whether it must still be rehearsed, with no node waiting for room before it: a node changed twice may be drained twice."""
    if not state.order.rehearsal or state.reached > 0 or nodes[name].rehearsal is Rehearsal.DONE:
        return False
    wave = (nodes[each] for each in state.order.waves[state.wave].nodes)
    return not any(record.state is NodeState.PENDING and not record.cordoned for record in wave)


def is_open(record: NodeRecord) -> bool:
    """Whether the run waits until this node's cordon is lifted."""
    if restart_may_come(record):
        return False
    return record.cordoned and (record.asked is Verb.UNCORDON or record.uncordons < MOST_TRIES)


def kept(record: NodeRecord) -> tuple[str, ...]:
    """The message for a cordon that stays because ``restart_may_come``."""
    return (KEPT,) if record.cordoned and restart_may_come(record) else ()


def left_words(message: str) -> str:
    return f"{_LEFT}: {message}"


def left_behind(record: NodeRecord) -> tuple[str, ...]:
    """The message for a cordon that could not be lifted."""
    return tuple(words for words in record.leftovers if record.cordoned and words.startswith(_LEFT))
