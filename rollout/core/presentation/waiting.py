"""What a run waits for right now, in one sentence for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rollout.core.presentation.remaining import passed_rounds
from rollout.core.presentation.waiting_nodes import data_seen, draining, pulling, without_baseline
from rollout.core.run.budgets import rack_words
from rollout.core.run.capacity import nodes_to_change, pace_allows
from rollout.core.run.facts import IN_MOTION
from rollout.core.run.records import Records
from rollout.core.run.state import (
    ClosedWindow,
    Drained,
    Draining,
    Goal,
    NodeRecord,
    NodeState,
    Phase,
    Rehearsal,
    RunState,
    Unknown,
    Verb,
)
from rollout.core.run.transitions import GRACE
from rollout.core.text.message_folding import for_all, nameless
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, seconds_text

_AGAIN = 15.0
"""Seconds for which unknown gates are not reported: a lease is renewed every ten."""

_MOVING = (Phase.RUNNING, Phase.SOAKING, Phase.HALTING)

_DRAINING = "being drained"
_EMPTY = "drained, to be restarted"
_DOING = {
    NodeState.APPLYING: "applying",
    NodeState.APPLIED: "waiting for gates and confirm",
    NodeState.REVERTING: "reverting",
    NodeState.UNKNOWN: "unknown, to be read again",
}
_ALL_DOING = (_DRAINING, _EMPTY, *_DOING.values())


def waits_for(state: RunState, now: float) -> str:
    """One sentence without a full stop. ``now`` is in the seconds of the state's events."""
    waits = _PHASES[state.phase](state, now)
    if state.halt is not None or state.phase not in _MOVING:
        return waits
    if state.paused is None:
        return waits if state.closed is None else _closed(state.closed, state, waits)
    run = state.order.run
    if state.paused.held:
        return f"on hold: {printable(state.paused.reason)}; gates are still checked; `rollout continue {run}` promotes"
    why = f" ({printable(state.paused.reason)})" if state.paused.reason else ""
    also = f"; {waits}" if in_flight(state) else ""
    return f"paused by {printable(state.paused.who)}{why}: `rollout continue {run}` continues it{also}"


def _closed(closed: ClosedWindow, state: RunState, message: str) -> str:
    moving = f"; {message}" if in_flight(state) else ""
    then = (
        "the run goes on by itself" if closed.opens is not None else f"`rollout abort {state.order.run}` ends the run"
    )
    return f"change window closed: {printable(closed.why, 300)}; {then}{moving}"


def standing(state: RunState) -> str:
    """Where the run is, in one or two words: its phase, or that it is on hold, paused or outside its change window."""
    if state.waits and state.halt is None and state.phase in (Phase.RUNNING, Phase.SOAKING):
        if state.paused is None:
            return "window closed"
        return "on hold" if state.paused.held else "paused"
    return "reverting" if state.phase is Phase.HALTING and state.order.goal is Goal.REVERT else state.phase.value


def silences(state: RunState, now: float) -> tuple[str, ...]:
    """A sentence for nodes that do not answer or have unknown gates, and when they are given up."""
    by_state: dict[str, list[tuple[str, NodeRecord]]] = {}
    for name, record in state.nodes.items():
        quiet = at_its_gates(record) and now - record.since < _AGAIN
        if record.state is NodeState.UNKNOWN and not quiet and state.phase in _MOVING:
            by_state.setdefault(nameless(record.message, name), []).append((name, record))
    return tuple(_silence(state, now, message, nodes) for message, nodes in list(by_state.items())[:4])


def at_its_gates(record: NodeRecord) -> bool:
    """Whether an unknown node has answered, and only a gate is still unknown."""
    at = record.current
    return isinstance(at, Unknown) and not at.reads and record.reference.startswith("gate-")


def _silence(state: RunState, now: float, message: str, nodes: list[tuple[str, NodeRecord]]) -> str:
    since = min(record.since for _, record in nodes)
    left = since + state.order.guard + GRACE - now
    names = printable(fold(name for name, _ in nodes), 60)
    why = f": {printable(for_all(message, [name for name, _ in nodes]), 120)}" if message else ""
    if all(at_its_gates(record) for _, record in nodes):
        return f"{counted(len(nodes), 'node')} with unknown gates for {seconds_text(now - since)}, checked again ({names}{why})"
    end = f"given up in {seconds_text(left)}" if left > 0 else "being given up"
    return f"{counted(len(nodes), 'node')} without an answer for {seconds_text(now - since)}, {end} ({names}{why})"


def _opening(state: RunState, _now: float) -> str:
    return f"{_outstanding(state, Verb.READ)} to be claimed"


def _running(state: RunState, now: float) -> str:
    wave = state.order.waves[min(state.wave, len(state.order.waves) - 1)]
    if state.gate_asked:
        return f"the wave gates before wave {wave.name}: their results are its baseline"
    records = [state.nodes[name] for name in wave.nodes]
    back = sum(record.rehearsal is Rehearsal.BACK for record in records)
    if back:
        return f"the rehearsal: {counted(back, 'node')} of wave {wave.name} to be reverted and applied again"
    brake = _brake(state, now, wave.nodes) if not state.waits else ""
    parts = (in_flight(state), draining(state, now), pulling(state, now), without_baseline(state, now), brake)
    return "; ".join(str(part) for part in parts if part) or "the next clock tick"


def in_flight(state: RunState) -> str:
    """The nodes in flight, by what is done to them, and their rack if it is the same."""
    moving = {name: record for name, record in state.nodes.items() if record.state in IN_MOTION}
    if not moving:
        return ""
    counts = Counter(_doing(record) for record in moving.values())
    parts = [f"{counts[doing]} {doing}" for doing in _ALL_DOING if counts[doing]]
    racks = {state.order.nodes[name].rack for name in moving}
    where = f" of {rack_words(racks.pop())}" if len(racks) == 1 else f" of {len(racks)} racks"
    return f"{counted(len(moving), 'node')}{where}: {', '.join(parts) if len(parts) > 1 else next(iter(counts))}"


def _doing(record: NodeRecord) -> str:
    if isinstance(record.current, Draining | Drained):
        return _EMPTY if isinstance(record.current, Drained) else _DRAINING
    return _DOING[NodeState.APPLIED if at_its_gates(record) else record.state]


def _brake(state: RunState, now: float, names: Iterable[str]) -> str:
    """Why no more nodes are released now; ``""`` when none is pending."""
    pending = [
        name for name in names if (record := state.nodes[name]).state is NodeState.PENDING and not record.postponed
    ]
    if not pending:
        return ""
    limits = state.order.limits
    records = Records.of(state.order, state.nodes, now, state.fewer)
    candidates, capacity = nodes_to_change(records, (records.among(pending),), now)
    waiting = f"{counted(len(pending), 'node')} pending"
    if not capacity:
        return f"{waiting}: at the limit of {limits.in_flight} in flight"
    if candidates:
        return (
            f"{waiting}, pace {limits.pace:g} restarts/s"
            if not pace_allows(state.started, limits, now)
            else f"{waiting}, to be released now"
        )
    racks = {state.order.nodes[name].rack for name in pending}
    full = f"{rack_words(next(iter(racks)))} is at its" if len(racks) == 1 else f"{len(racks)} racks are at their"
    return f"{waiting}: {full} concurrency limit{_settling(state, now)}"


def extended(state: RunState, name: str) -> str:
    """Why a drain continues beyond its time limit; ``""``: it does not."""
    at = state.nodes[name].current
    if not isinstance(at, Draining) or state.now < at.since + state.order.nodes[name].drain:
        return ""
    return at.waits


def _settling(state: RunState, now: float) -> str:
    ends = [record.busy_until - now for record in state.nodes.values() if record.busy_until > now]
    return f"; next slot in {seconds_text(min(ends))}" if ends else ""


def _soaking(state: RunState, now: float) -> str:
    wave, data = state.order.waves[state.wave], data_seen(state)
    progress = f"the soak of wave {wave.name}: {passed_rounds(state)} of {state.order.passes} rounds passed"
    return f"{progress}{_round(state, now)}" + (f"; {data.counts}" if data else "")


def _round(state: RunState, now: float) -> str:
    """What its present round waits for, or when the next one begins."""
    asked = sum(state.nodes[name].asked is Verb.MEASURE for name in state.order.waves[state.wave].nodes)
    if asked:
        return f", {counted(asked, 'node')} being measured"
    if state.gate_asked:
        return ", the wave gates are being checked"
    moving = in_flight(state)
    return f"; {moving}" if moving else f", next in {seconds_text(max(0.0, state.round_at - now))}"


def _halting(state: RunState, _now: float) -> str:
    waiting = [record for record in state.nodes.values() if record.to_revert and record.state is NodeState.CONFIRMED]
    parts = [in_flight(state), f"{counted(len(waiting), 'node')} still to be reverted" if waiting else ""]
    what = "reverting" if state.order.goal is Goal.REVERT else "halting"
    return f"{what}: {'; '.join(part for part in parts if part) or 'in-flight nodes to finish'}"


def _closing(state: RunState, _now: float) -> str:
    return f"{_outstanding(state, Verb.CLEAN)} to be cleaned up"


def _outstanding(state: RunState, verb: Verb) -> str:
    asked = sum(record.asked is verb for record in state.nodes.values())
    return f"{asked} of {counted(len(state.nodes), 'node')}"


def _ended(_state: RunState, _now: float) -> str:
    return "nothing: the run has ended"


_PHASES = {
    Phase.OPENING: _opening,
    Phase.RUNNING: _running,
    Phase.SOAKING: _soaking,
    Phase.HALTING: _halting,
    Phase.CLOSING: _closing,
    Phase.ENDED: _ended,
}
