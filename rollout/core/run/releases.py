"""What happens on ticks: nodes that did not answer are read again, and restarts start as pace and limits allow."""

from __future__ import annotations

from rollout.core.run import drain_rounds, drains
from rollout.core.run.asking import ask
from rollout.core.run.capacity import pace_allows, who_may_go, who_may_return
from rollout.core.run.events import FENCES, Trigger
from rollout.core.run.moving import patience, transition
from rollout.core.run.pulls import in_turn
from rollout.core.run.state import Ending, NodeRecord, NodeState, Phase, Rehearsal, Verb
from rollout.core.run.state_builder import StateBuilder
from rollout.core.run.transitions import ResolvedTrigger


def retries(builder: StateBuilder) -> None:
    """Read nodes again that did not answer; give up those with a guard that must long have fired."""
    for name, record in tuple(builder.nodes.items()):
        if record.state is not NodeState.UNKNOWN or record.asked or builder.state.phase in (Phase.CLOSING, Phase.ENDED):
            continue
        if record.reference in FENCES and builder.state.phase is Phase.OPENING:
            continue  # it did answer: all are claimed again with a higher token, once all have answered
        if builder.now > record.since + patience(builder):
            transition(builder, name, ResolvedTrigger.GIVEN_UP, record.reference, record.message)
        elif builder.now >= record.retry_at:
            ask(builder, name, Verb.READ)


def releases(builder: StateBuilder) -> None:
    """Restarts, as the pace allows: unhealthy nodes to revert, healthy nodes to revert, drained nodes, then the wave."""
    if builder.state.phase in (Phase.OPENING, Phase.CLOSING, Phase.ENDED):
        return
    allowed = pace_allows(builder.state.started, builder.state.order.limits, builder.now)
    sick = [name for name, record in builder.nodes.items() if record.state is NodeState.REVERTING and not record.asked]
    for name in sick[:allowed]:
        ask(builder, name, Verb.REVERT)
    allowed -= len(sick[:allowed])
    allowed -= _return_the_healthy(builder, allowed)
    if drains.may_go_on(builder.state):
        allowed -= drain_rounds.change_the_empty(builder, allowed)
        if allowed > 0:
            _release_the_wave(builder, allowed)


def _return_the_healthy(builder: StateBuilder, allowed: int) -> int:
    """A rehearsal keeps the limits of a change: only a real revert may exceed them."""
    healthy = [name for name, record in builder.nodes.items() if is_to_return(builder, record) and not record.asked]
    if not healthy or allowed <= 0 or builder.state.paused is not None:
        return 0
    rehearsing = [name for name in healthy if builder.nodes[name].rehearsal is Rehearsal.BACK]
    who = who_may_go if rehearsing else who_may_return
    candidates, capacity = who(builder.state.order, builder.nodes, rehearsing or healthy, builder.now)
    going = candidates[: min(capacity, allowed)]
    for name in going:
        transition(builder, name, Trigger.TAKE_BACK)
        ask(builder, name, Verb.REVERT)
    return len(going)


def _release_the_wave(builder: StateBuilder, allowed: int) -> None:
    if builder.state.gate_asked or is_to_open(builder):
        return  # no node of a wave is changed before the wave's baseline
    wave = builder.state.order.waves[builder.state.wave]
    pending = [n for n in wave.nodes if builder.nodes[n].state is NodeState.PENDING and not builder.nodes[n].asked]
    pending = in_turn(pending, builder.nodes, builder.now)
    if not pending:
        return
    candidates, capacity = who_may_go(builder.state.order, builder.nodes, pending, builder.now)
    for name in candidates[: min(capacity, allowed)]:
        transition(
            builder, name, ResolvedTrigger.TO_DRAIN if builder.state.order.nodes[name].drain else Trigger.RELEASED
        )


def is_to_open(builder: StateBuilder) -> bool:
    """Whether the wave gates' baseline is still to be taken; nothing of the wave is released before."""
    state = builder.state
    return state.order.wave_gates and state.opened != state.wave and not state.gate_asked


def is_to_return(builder: StateBuilder, record: NodeRecord) -> bool:
    """Healthy, and to be reverted with others or for the operator; not any more once the operator has interrupted that."""
    interrupted = builder.state.halt is not None and builder.state.halt.ending is Ending.INTERRUPTED
    return record.want_back and record.state is NodeState.CONFIRMED and not interrupted
