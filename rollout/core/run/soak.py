"""The soak: K passes in a row of a wave's gates. While a wave holds or the run is paused, further rounds follow."""

from __future__ import annotations

from rollout.core.model.playbook import RevertScope
from rollout.core.run import baselines, drains
from rollout.core.run.capacity import IN_MOTION
from rollout.core.run.state import Ending, NodeRecord, NodeState, Pause, Verb
from rollout.core.run.state_builder import StateBuilder
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted

MOST_ROUNDS = 4
"""A soak ends after at most this many times K rounds."""

WATCH_EVERY = 60.0
"""Seconds between two rounds of the gates while a wave that has passed is held, or the run is paused."""

WATCH_EACH = 0.2
"""The same, at least this much per node, so that a long hold of a large wave does not fill the journal."""


def soaking(draft: StateBuilder) -> None:
    """K passes in a row of every confirmed node of the wave and of the wave gates, a round every ``soak / K`` seconds.

    A wave without a confirmed node has nothing to measure: it is over, except for its hold.
    """
    order, state = draft.state.order, draft.state
    wave = order.waves[state.wave]
    if state.gate_asked or any(draft.nodes[name].asked or draft.nodes[name].state in IN_MOTION for name in wave.nodes):
        return
    confirmed = [name for name in wave.nodes if draft.nodes[name].state is NodeState.CONFIRMED]
    short = [name for name in confirmed if draft.nodes[name].passes < order.passes]
    gates_short = order.wave_gates and confirmed and state.gate_passes < order.passes
    if not short and not gates_short:
        _steady(draft, confirmed)
    elif state.round >= MOST_ROUNDS * order.passes and state.paused is None:
        draft.halt(Ending.HALTED, "never-steady", _never_steady(draft, short))
    elif state.now >= state.round_at:
        _round(draft, short, every=wave.soak / order.passes)


def _never_steady(draft: StateBuilder, short: list[str]) -> str:
    """The message includes the last gate result of the first of these nodes, for example that it could not be checked."""
    times = draft.state.order.passes
    if not short:
        return f"the wave gates never passed {times} times in a row"
    said = next((f"; {name}: {why}" for name in short if (why := draft.nodes[name].message)), "")
    return f"{counted(len(short), 'node')} never passed their gates {times} times in a row{said}"


def _steady(draft: StateBuilder, confirmed: list[str]) -> None:
    """The wave has passed. While it is held or paused, its gates are still checked."""
    state = draft.state
    wave = state.order.waves[state.wave]
    if state.paused is None and _shows_nothing(draft):
        return
    if wave.hold and state.promoted < state.wave and state.paused is None:
        draft.set(paused=Pause("the playbook", f"holds after wave {wave.name}", state.now, held=True))
        draft.set(round_at=state.now + watch_every(len(confirmed)))
    elif state.paused is None:
        draft.next_wave()
    elif confirmed and state.now >= state.round_at:
        _round(draft, confirmed, every=watch_every(len(confirmed)))


def _shows_nothing(draft: StateBuilder) -> bool:
    """Halt before more nodes of a kind are changed if no node of that kind has shown the effect of the change."""
    names = drains.unshown(draft.state.order, draft.nodes, draft.state.wave)
    if names:
        wave = draft.state.order.waves[draft.state.wave].name
        why = f"{counted(len(names), 'node')} left unchanged ({_what_for(draft, names)}), and no other node of the same kind was changed"
        draft.halt(Ending.HALTED, "nothing-shown", f"wave {wave}: {fold(names)}: {why}", RevertScope.NODE)
    return bool(names)


def _what_for(draft: StateBuilder, names: list[str]) -> str:
    return " or ".join(sorted({_why_alone(draft.nodes[name]) for name in names}))


def _why_alone(record: NodeRecord) -> str:
    if drains.was_skipped(record):
        return "not drained"
    return "no baseline" if baselines.was_skipped(record) else "pulling images"


def watch_every(nodes: int) -> float:
    """Seconds between two rounds over a wave of this many nodes that has passed and waits."""
    return max(WATCH_EVERY, nodes * WATCH_EACH)


def _round(draft: StateBuilder, names: list[str], *, every: float) -> None:
    draft.set(round=draft.state.round + 1, round_at=draft.state.now + every)
    for name in names:
        draft.ask(name, Verb.MEASURE)
    if draft.state.order.wave_gates:
        draft.judge_wave()
