"""Which wave is worked on."""

from __future__ import annotations

from rollout.core.run.state import NodeState, Phase
from rollout.core.run.state_builder import StateBuilder


def next_wave(builder: StateBuilder) -> None:
    """The next wave that has not passed yet, or has work again."""
    following = builder.state.wave + 1
    while following < builder.state.reached and not _has_open(builder, following):
        following += 1
    reached = max(builder.state.reached, following)
    builder.set(wave=following, reached=reached, phase=Phase.RUNNING, round=0, gate_passes=0)


def first_open_wave(builder: StateBuilder) -> None:
    """After a resume: the first wave with work left, at most the current one, which has not passed yet."""
    first = next((index for index in range(builder.state.wave) if _has_open(builder, index)), builder.state.wave)
    builder.set(wave=first, round=0, gate_passes=0)


def _has_open(builder: StateBuilder, wave: int) -> bool:
    return any(builder.nodes[name].state in _OPEN for name in builder.state.order.waves[wave].nodes)


_OPEN = frozenset({NodeState.PENDING, NodeState.APPLYING, NodeState.APPLIED, NodeState.UNKNOWN, NodeState.REVERTING})
