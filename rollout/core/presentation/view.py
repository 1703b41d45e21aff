"""A run at a glance, for screens: everything a person needs to know of it now, from its state alone. Frozen and folded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from rollout.core.model.inventory import NO_RACK
from rollout.core.presentation.remaining import remaining
from rollout.core.presentation.summary import Rehearsed, Trouble, rehearsed, troubles
from rollout.core.presentation.waiting import at_its_gates, silences, standing, waits_for
from rollout.core.run.budgets import Distance, nearest
from rollout.core.run.facts import BROKEN, IN_MOTION
from rollout.core.run.state import Goal, NodeRecord, NodeState, Phase, RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, seconds_text

MOST_RACKS = 8
MOST_TROUBLES = 5

Counts = tuple[tuple[NodeState, int], ...]


class WaveStanding(StrEnum):
    """Where a wave stands in the run."""

    PASSED = "passed"
    OVER = "over"  # none of its nodes is changed: no gate has seen anything of it
    NOW = "now"
    TO_COME = "to come"
    STOPPED = "stopped"  # the run halted in it or before it


@dataclass(frozen=True, slots=True)
class WaveView:
    name: str
    total: int
    done: int  # nodes that it has finished, healthy or not
    counts: Counts
    standing: WaveStanding


@dataclass(frozen=True, slots=True)
class RackView:
    """A rack that has failed nodes, nodes in flight, or a part of the current wave done."""

    name: str
    total: int
    counts: Counts
    wrong: int


@dataclass(frozen=True, slots=True)
class View:
    """See the module. ``distances`` are the nearest budget of each scope, the nearest of all first."""

    run: str
    cluster: str
    goal: Goal
    phase: Phase
    standing: str
    done: int
    total: int
    counts: Counts
    waves: tuple[WaveView, ...]
    racks: tuple[RackView, ...]
    more_racks: str
    waits: str
    silent: tuple[str, ...]
    left: str
    distances: tuple[Distance, ...]
    rehearsal: Rehearsed | None
    halt: str
    troubles: tuple[Trouble, ...]
    more_troubles: int
    owed: str


def view(state: RunState, now: float) -> View:
    """Fold a state. ``now`` is in the seconds of its events; it is never before the state's own time."""
    now = max(now, state.now)
    racks = _racks(state)
    shown = troubles(state, (name for name, record in state.nodes.items() if not at_its_gates(record)))
    counts = _counts(state, tuple(state.nodes))
    return View(
        run=state.order.run,
        cluster=state.order.cluster,
        goal=state.order.goal,
        phase=state.phase,
        standing=standing(state),
        done=_done(state, counts),
        total=len(state.nodes),
        counts=counts,
        waves=wave_views(state),
        racks=racks[:MOST_RACKS],
        more_racks=_more(racks[MOST_RACKS:]),
        waits=waits_for(state, now),
        silent=silences(state, now),
        left=_left(state),
        distances=nearest(state.order, state.nodes, state.wave),
        rehearsal=rehearsed(state),
        halt=f"{printable(state.halt.message, 400)} [{printable(state.halt.reference, 60)}]" if state.halt else "",
        troubles=shown[:MOST_TROUBLES],
        more_troubles=len(shown[MOST_TROUBLES:]),
        owed=fold(name for name, record in state.nodes.items() if record.owed),
    )


def wave_views(state: RunState) -> tuple[WaveView, ...]:
    return tuple(_wave(state, index) for index in range(len(state.order.waves)))


def _counts(state: RunState, names: tuple[str, ...]) -> Counts:
    counts = Counter(state.nodes[name].state for name in names)
    return tuple((kind, counts[kind]) for kind in NodeState if counts[kind])


def _done(state: RunState, counts: Counts) -> int:
    """Nodes that need no more work, healthy or not."""
    open_ = {NodeState.PENDING, *IN_MOTION}
    if state.order.goal is Goal.REVERT:
        open_.add(NodeState.CONFIRMED)
    return sum(count for kind, count in counts if kind not in open_)


def _wave(state: RunState, index: int) -> WaveView:
    wave = state.order.waves[index]
    counts = _counts(state, wave.nodes)
    return WaveView(wave.name, len(wave.nodes), _done(state, counts), counts, _standing(state, index))


def _standing(state: RunState, index: int) -> WaveStanding:
    if index < state.wave or (state.phase in (Phase.CLOSING, Phase.ENDED) and state.halt is None):
        done = NodeState.REVERTED if state.order.goal is Goal.REVERT else NodeState.CONFIRMED
        has_one = any(state.nodes[name].state is done for name in state.order.waves[index].nodes)
        return WaveStanding.PASSED if has_one else WaveStanding.OVER
    if state.phase is Phase.OPENING or index > state.wave:
        return WaveStanding.TO_COME if state.halt is None else WaveStanding.STOPPED
    return WaveStanding.NOW if state.halt is None else WaveStanding.STOPPED


def _racks(state: RunState) -> tuple[RackView, ...]:
    """The worst first. A rack stays listed until its wave is done there: lines that come and go are hard to read."""
    members: dict[str, list[str]] = {}
    for name, node in state.order.nodes.items():
        members.setdefault(node.rack, []).append(name)
    if members.keys() == {NO_RACK}:  # the waves show the same nodes
        return ()
    quiet = {NodeState.PENDING, NodeState.SKIPPED, NodeState.CONFIRMED, NodeState.REVERTED, NodeState.GONE}
    wave = frozenset(state.order.waves[state.wave].nodes if state.wave < len(state.order.waves) else ())
    shown = []
    for rack, names in members.items():
        records = [state.nodes[name] for name in names]
        wrong = sum(record.cause is not None or record.state in BROKEN for record in records)
        moving = any(record.state not in quiet for record in records)
        if (
            wrong
            or moving
            or _in_the_middle(state, [record for name, record in zip(names, records, strict=True) if name in wave])
        ):
            shown.append(RackView(rack, len(names), _counts(state, tuple(names)), wrong))
    return tuple(sorted(shown, key=lambda rack: (-rack.wrong, rack.name)))


def _in_the_middle(state: RunState, records: list[NodeRecord]) -> bool:
    pending = sum(record.state is NodeState.PENDING for record in records)
    return state.phase is Phase.RUNNING and 0 < pending < len(records)


def _in_motion(rack: RackView) -> int:
    return sum(count for kind, count in rack.counts if kind in IN_MOTION)


def _more(racks: tuple[RackView, ...]) -> str:
    if not racks:
        return ""
    moving, wrong = sum(map(_in_motion, racks)), sum(rack.wrong for rack in racks)
    return f"and {counted(len(racks), 'more rack')}: {moving} in flight, {wrong} failed"


def _left(state: RunState) -> str:
    """``about 12 min left``, with holds and pauses named; ``""`` when there is no estimate."""
    seconds = remaining(state)
    if seconds is None:
        return ""
    holds = [wave.name for index, wave in enumerate(state.order.waves) if wave.hold and index > state.promoted]
    coming = [name for name in holds if state.paused is None or not state.paused.held]
    waits = " once it continues" if state.paused is not None else ""
    hold = f", and a hold after wave {printable(coming[0], 60)}" if coming and state.phase is not Phase.HALTING else ""
    return f"about {seconds_text(_roughly(seconds))} left{waits}{hold}"


def _roughly(seconds: float) -> float:
    """Rounded to the precision of an estimate."""
    step = 60 if seconds > 600 else 10 if seconds > 90 else 1
    return max(1.0, round(seconds / step) * step)
