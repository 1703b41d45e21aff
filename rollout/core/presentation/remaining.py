"""How long a run still takes, estimated from its own nodes so far. For people only; no decision depends on it.

As in ``estimate``, a wave takes ``max(pace-bound, window-bound) + soak``, here for the nodes that are left. One node's time
is what this run has measured: the median of its applies so far, its settle window, and the time for gates and confirm.
Failures make it longer, and the end of a hold cannot be known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil
from statistics import median

from rollout.core.model.areas import rounds
from rollout.core.model.frozen import dataclass
from rollout.core.model.plan import Wave
from rollout.core.model.playbook import Scope
from rollout.core.plans.estimate import NODE_SECONDS
from rollout.core.run.state import Goal, NodeRecord, NodeState, Order, Phase, Rehearsal, RunState

CONFIRM_SECONDS = 2.0
"""Gates and confirm, after an apply."""

_TO_DO = frozenset({NodeState.PENDING, NodeState.APPLYING, NodeState.APPLIED, NodeState.UNKNOWN, NodeState.REVERTING})


def remaining(state: RunState) -> float | None:
    """Seconds until the end if nothing more fails; ``None`` when there is no estimate."""
    if state.phase in (Phase.OPENING, Phase.CLOSING, Phase.ENDED):
        return None
    if state.phase is Phase.HALTING:
        going = [name for name, record in state.nodes.items() if _is_to_revert(state, record)]
        if not going:
            return 0.0
        settle = max(state.order.nodes[name].settle for name in going)
        return _rounds(state.order, going, revert_time(state) + settle)
    times = _Times.of(state)
    return sum(_of_wave(state, index, times) for index in range(state.wave, len(state.order.waves)))


def wave_ends(state: RunState, now: float) -> Mapping[int, float]:
    """Wave → when it is expected to end, in seconds since the epoch, to the minute, up to the next hold.

    Nothing while the run is paused or halts, and nothing of a rollback: its end is not that of a wave.
    """
    if (
        state.phase not in (Phase.RUNNING, Phase.SOAKING)
        or state.waits
        or state.halt
        or state.order.goal is Goal.REVERT
    ):
        return {}
    ends: dict[int, float] = {}
    at, times = max(now, state.now), _Times.of(state)
    for index in range(state.wave, len(state.order.waves)):
        at += _of_wave(state, index, times)
        ends[index] = ceil(at / 60) * 60.0
        if state.order.waves[index].hold and index > state.promoted:
            break
    return ends


@dataclass(frozen=True, slots=True)
class _Times:
    """What one node's steps take in this run. Each reads all nodes, so it is measured once for all waves."""

    apply: float
    revert: float
    drain: float

    @classmethod
    def of(cls, state: RunState) -> _Times:
        drained = (record.drained_seconds for record in state.nodes.values())
        return cls(apply_time(state), revert_time(state), _median(drained, unmeasured=0.0))


def apply_time(state: RunState) -> float:
    """How long one apply takes: the measured median, or the plan's assumption until there is one."""
    return _median(record.apply_seconds for record in state.nodes.values())


def revert_time(state: RunState) -> float:
    """The same for one revert."""
    return _median(record.revert_seconds for record in state.nodes.values())


def _median(times: Iterable[float], unmeasured: float = NODE_SECONDS) -> float:
    measured = [seconds for seconds in times if seconds > 0]
    return median(measured) if measured else unmeasured


def _is_to_revert(state: RunState, record: NodeRecord) -> bool:
    if record.state is NodeState.REVERTING:
        return True
    waits = record.state is NodeState.CONFIRMED or (
        record.state is NodeState.UNKNOWN and state.order.goal is Goal.REVERT
    )
    return waits and record.to_revert


def _of_wave(state: RunState, index: int, times: _Times) -> float:
    wave = state.order.waves[index]
    to_do = [name for name in wave.nodes if state.nodes[name].state in _TO_DO]
    seconds = _soak(state, wave) if index == state.wave and state.phase is Phase.SOAKING else wave.soak
    drain = times.drain if any(state.order.nodes[name].drain for name in to_do) else 0.0
    busy = times.apply + CONFIRM_SECONDS + drain
    each = busy + max((state.order.nodes[name].settle for name in to_do), default=0.0)
    if to_do:
        within_budgets = _most(state.order, to_do) * busy  # a budget limits nodes in flight, not nodes that settle
        seconds += max(_rounds(state.order, to_do, each, at_once=wave.at_once), within_budgets)
    elif not any(state.nodes[name].state is NodeState.CONFIRMED for name in wave.nodes):
        return 0.0  # no node is left to watch
    if index == 0 and _still_to_rehearse(state, wave):
        seconds += times.revert + each
    return seconds


def _still_to_rehearse(state: RunState, wave: Wave) -> bool:
    standing = {state.nodes[name].rehearsal for name in wave.nodes}
    return state.order.rehearsal and state.phase is Phase.RUNNING and Rehearsal.DONE not in standing


def _soak(state: RunState, wave: Wave) -> float:
    """Seconds for the rounds that must still pass in a row, the next one when it is due."""
    passed = passed_rounds(state)
    every = wave.soak / state.order.passes
    return max(0.0, state.round_at - state.now) + max(0, state.order.passes - passed - 1) * every


def passed_rounds(state: RunState) -> int:
    """How many rounds of the present soak every node and the wave gates have passed in a row."""
    names = state.order.waves[state.wave].nodes
    counts = [state.nodes[name].passes for name in names if state.nodes[name].state is NodeState.CONFIRMED]
    if state.order.wave_gates:
        counts.append(state.gate_passes)
    return min([*counts, state.order.passes])


def _rounds(order: Order, names: list[str], each: float, at_once: int = 0) -> float:
    """The longer of two times: by the pace, and by rounds within the limits of racks, zones, wave and fleet."""
    by_fleet = ceil(len(names) / min(order.limits.in_flight, at_once or order.limits.in_flight))
    by_area = rounds((order.nodes[name] for name in names), order)
    return max(len(names) / order.limits.pace + each, max(by_fleet, by_area) * each)


def _most(order: Order, names: list[str]) -> int:
    """The most rounds that a rack needs within its budget."""
    changed = Counter(node.rack for node in order.nodes.values())
    racks = Counter(order.nodes[name].rack for name in names)
    shares = [budget.share for budget in order.budgets if budget.scope is Scope.RACK]
    return max((ceil(count / share.of(changed[rack])) for rack, count in racks.items() for share in shares), default=0)
