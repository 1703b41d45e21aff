"""What happens on ticks: nodes that did not answer are read again, and restarts start as pace and limits allow."""

from __future__ import annotations

from rollout.core.run import drain_rounds, drains
from rollout.core.run.capacity import pace_allows, who_may_go, who_may_return
from rollout.core.run.events import FENCES, Trigger
from rollout.core.run.pulls import in_turn
from rollout.core.run.state import Ending, NodeRecord, NodeState, Phase, Rehearsal, Verb
from rollout.core.run.state_builder import StateBuilder
from rollout.core.run.transitions import ResolvedTrigger


def retries(draft: StateBuilder) -> None:
    """Read nodes again that did not answer; give up those with a guard that must long have fired."""
    for name, record in tuple(draft.nodes.items()):
        if record.state is not NodeState.UNKNOWN or record.asked or draft.state.phase in (Phase.CLOSING, Phase.ENDED):
            continue
        if record.reference in FENCES and draft.state.phase is Phase.OPENING:
            continue  # it did answer: all are claimed again with a higher token, once all have answered
        if draft.now > record.since + draft.patience:
            draft.transition(name, ResolvedTrigger.GIVEN_UP, record.reference, record.message)
        elif draft.now >= record.retry_at:
            draft.ask(name, Verb.READ)


def releases(draft: StateBuilder) -> None:
    """Restarts, as the pace allows: unhealthy nodes to revert, healthy nodes to revert, drained nodes, then the wave."""
    if draft.state.phase in (Phase.OPENING, Phase.CLOSING, Phase.ENDED):
        return
    allowed = pace_allows(draft.state.started, draft.state.order.limits, draft.now)
    sick = [name for name, record in draft.nodes.items() if record.state is NodeState.REVERTING and not record.asked]
    for name in sick[:allowed]:
        draft.ask(name, Verb.REVERT)
    allowed -= len(sick[:allowed])
    allowed -= _return_the_healthy(draft, allowed)
    if drains.may_go_on(draft.state):
        allowed -= drain_rounds.change_the_empty(draft, allowed)
        if allowed > 0:
            _release_the_wave(draft, allowed)


def _return_the_healthy(draft: StateBuilder, allowed: int) -> int:
    """A rehearsal keeps the limits of a change: only a real revert may exceed them."""
    healthy = [name for name, record in draft.nodes.items() if is_to_return(draft, record) and not record.asked]
    if not healthy or allowed <= 0 or draft.state.paused is not None:
        return 0
    rehearsing = [name for name in healthy if draft.nodes[name].rehearsal is Rehearsal.BACK]
    who = who_may_go if rehearsing else who_may_return
    candidates, capacity = who(draft.state.order, draft.nodes, rehearsing or healthy, draft.now)
    going = candidates[: min(capacity, allowed)]
    for name in going:
        draft.transition(name, Trigger.TAKE_BACK)
        draft.ask(name, Verb.REVERT)
    return len(going)


def _release_the_wave(draft: StateBuilder, allowed: int) -> None:
    if draft.state.gate_asked or is_to_open(draft):
        return  # no node of a wave is changed before the wave's baseline
    wave = draft.state.order.waves[draft.state.wave]
    pending = [n for n in wave.nodes if draft.nodes[n].state is NodeState.PENDING and not draft.nodes[n].asked]
    pending = in_turn(pending, draft.nodes, draft.now)
    if not pending:
        return
    candidates, capacity = who_may_go(draft.state.order, draft.nodes, pending, draft.now)
    for name in candidates[: min(capacity, allowed)]:
        draft.transition(name, ResolvedTrigger.TO_DRAIN if draft.state.order.nodes[name].drain else Trigger.RELEASED)


def is_to_open(draft: StateBuilder) -> bool:
    """Whether the wave gates' baseline is still to be taken; nothing of the wave is released before."""
    state = draft.state
    return state.order.wave_gates and state.opened != state.wave and not state.gate_asked


def is_to_return(draft: StateBuilder, record: NodeRecord) -> bool:
    """Healthy, and to be reverted with others or for the operator; not any more once the operator has interrupted that."""
    interrupted = draft.state.halt is not None and draft.state.halt.ending is Ending.INTERRUPTED
    return record.want_back and record.state is NodeState.CONFIRMED and not interrupted
