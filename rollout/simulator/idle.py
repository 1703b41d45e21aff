"""Until when a run has nothing to do but wait for answers: the clock may jump there."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from rollout.app.driver import TICK
from rollout.core.run.state import NodeRecord, NodeState, RunState
from rollout.core.run.state_builder import GRACE


def next_tick(state: RunState, now: float, longest: float) -> float:
    """The tick at which a run acts by itself again, at most ``longest`` seconds from now. Ticks between change nothing."""
    soonest = min((moment for moment in moments(state) if moment > now), default=now + longest)
    ticks = max(1, ceil((min(soonest, now + longest) - now) / TICK - 1e-6))
    return now + ticks * TICK


def moments(state: RunState) -> Iterator[float]:
    """Every time that a tick looks at: rounds, retries, patience, settling, pulls, the pace's window."""
    yield state.round_at
    limits = state.order.limits
    window = max(1, int(limits.pace)) / limits.pace
    yield from (at + window for at in state.started)
    patience = state.order.guard + GRACE
    for record in state.nodes.values():
        yield record.busy_until
        if record.pulling is not None:
            yield record.pulling.again
        if record.unseen is not None:
            yield record.unseen.again
        if record.state is NodeState.UNKNOWN:
            yield from _of_unknown(record, patience)


def _of_unknown(record: NodeRecord, patience: float) -> Iterator[float]:
    yield record.retry_at
    yield record.since + patience
