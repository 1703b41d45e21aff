"""The soak: K passes in a row of a wave's gates. While a wave holds or the run is paused, further rounds follow."""

from __future__ import annotations

from dataclasses import replace

from rollout.core.model.playbook import RevertScope
from rollout.core.run import postponed, shown
from rollout.core.run.events import Answered, Trigger
from rollout.core.run.facts import Count
from rollout.core.run.layout import place_of
from rollout.core.run.run_moves import enter, following_wave, halt, next_wave
from rollout.core.run.soak_data import gathered
from rollout.core.run.state import Ending, NodeRecord, NodeState, Pause, Phase, Verb
from rollout.core.run.state_builder import StateBuilder, ask, judge_wave
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted

MOST_ROUNDS = 4
"""A soak ends after at most this many times K rounds."""

WATCH_EVERY = 60.0
"""Seconds between two rounds of the gates while a wave that has passed is held, or the run is paused."""

WATCH_EACH = 0.2
"""The same, at least this much per node, so that a long hold of a large wave does not fill the journal."""


def begin_soak(builder: StateBuilder) -> None:
    """The first round comes after ``soak / K`` seconds; the time for its data begins now."""
    order, now = builder.state.order, builder.now
    wave = order.waves[builder.state.wave]
    enter(builder, Phase.SOAKING, round=0, gate_passes=0, round_at=now + wave.soak / order.passes)
    wait_for_data(builder)


def wait_for_data(builder: StateBuilder) -> None:
    """The wave has its full time for its data from now on."""
    waves, at = builder.state.order.waves, builder.state.wave
    data = waves[at].data if at < len(waves) else None
    builder.set(data_by=0.0 if data is None else builder.now + data.within)


def note_measured(builder: StateBuilder, event: Answered) -> None:
    """A pass of a confirmed node's gates; and what a node is known to have done since its change, which only grows."""
    record = builder.record(event.node)
    changes: dict[str, int] = {}
    if event.trigger is Trigger.GATES_PASSED and record.state is NodeState.CONFIRMED:
        changes["passes"] = record.passes + 1
    if event.pod_starts is not None:
        changes["pod_starts"] = max(record.pod_starts or 0, event.pod_starts)
    if event.pulls_done is not None:
        changes["pulls_done"] = max(record.pulls_done or 0, event.pulls_done)
    if changes:
        builder.put(event.node, **changes)


def soaking(builder: StateBuilder) -> None:
    """K passes in a row of every confirmed node of the wave and of the wave gates, a round every ``soak / K`` seconds.

    A wave without a confirmed node has nothing to measure: it is over, except for its hold.
    """
    order, state = builder.state.order, builder.state
    wave = order.waves[state.wave]
    if state.gate_asked or builder.is_asked(state.wave):
        return
    nodes, here = builder.nodes, place_of(state.wave)
    if nodes.count(Count.BUSY, here):
        return
    gates_short = order.wave_gates and nodes.count(Count.CONFIRMED, here) and state.gate_passes < order.passes
    if not nodes.count(Count.SHORT, here) and not gates_short:
        _steady(builder)
    elif state.round >= MOST_ROUNDS * order.passes and not state.waits:
        halt(builder, Ending.HALTED, "never-steady", _never_steady(builder, _short(builder)))
    elif state.now >= state.round_at:
        _round(builder, _short(builder), every=wave.soak / order.passes)


def _confirmed(builder: StateBuilder) -> list[str]:
    wave = builder.state.order.waves[builder.state.wave]
    return [name for name in wave.nodes if builder.record(name).state is NodeState.CONFIRMED]


def _short(builder: StateBuilder) -> list[str]:
    passes = builder.state.order.passes
    return [name for name in _confirmed(builder) if builder.record(name).passes < passes]


def _never_steady(builder: StateBuilder, short: list[str]) -> str:
    """The message includes the last gate result of the first of these nodes, for example that it could not be checked."""
    times = builder.state.order.passes
    if not short:
        return f"the wave gates never passed {times} times in a row"
    said = next((f"; {name}: {why}" for name in short if (why := builder.record(name).message)), "")
    return f"{counted(len(short), 'node')} never passed their gates {times} times in a row{said}"


def _steady(builder: StateBuilder) -> None:
    """The wave has passed. While it is held or paused, its gates are still checked."""
    state = builder.state
    wave, confirmed = state.order.waves[state.wave], builder.nodes.count(Count.CONFIRMED, place_of(state.wave))
    if not state.waits and _shows_nothing(builder):
        return
    missing = "" if state.waits else _missing_data(builder)
    if missing:
        _without_data(builder, missing)
    elif wave.hold and state.promoted < state.wave and state.paused is None:
        builder.set(paused=Pause("the playbook", f"holds after wave {wave.name}", state.now, held=True))
        builder.set(round_at=state.now + watch_every(confirmed))
    elif not state.waits:
        next_wave(builder)
    elif confirmed and state.now >= state.round_at:
        _round(builder, _confirmed(builder), every=watch_every(confirmed))


def _missing_data(builder: StateBuilder) -> str:
    """What the wave's confirmed nodes have not done yet; ``""``: nothing. A node with an unknown number adds nothing."""
    data, names = builder.state.order.waves[builder.state.wave].data, _confirmed(builder)
    if data is None or not names:
        return ""
    counts = gathered(data, [builder.record(name) for name in names])
    return " and ".join(str(each) for each in counts if each.missing)


def _short_of_pulls(builder: StateBuilder) -> bool:
    """Whether the wave still waits for image pulls: only then they are counted, a request for each node."""
    data = builder.state.order.waves[builder.state.wave].data
    if data is None or not data.pulls:
        return False
    known = gathered(replace(data, pod_starts=0), [builder.record(name) for name in _confirmed(builder)])
    return any(each.missing for each in known)


def _without_data(builder: StateBuilder, missing: str) -> None:
    """Its gates are checked until it has its data, or until the time for that is over. Nodes keep their change then."""
    state = builder.state
    wave = state.order.waves[state.wave]
    if wave.data is not None and state.now >= state.data_by:
        why = f"wave {wave.name}: {missing} since the change after {wave.data.within:g} s of soak"
        halt(builder, Ending.HALTED, "not-enough-data", why, RevertScope.NODE)
    elif state.now >= state.round_at:
        builder.set(round=0)  # these rounds do not count as rounds without a pass
        every = max(wave.soak / state.order.passes, watch_every(len(wave.nodes)))
        _round(builder, _confirmed(builder), every=min(every, max(1.0, state.data_by - state.now)))


def _shows_nothing(builder: StateBuilder) -> bool:
    """Halt before more nodes of a kind are changed if no node of that kind has shown the effect of the change."""
    names = shown.unshown(builder.state.order, builder.nodes, builder.state.wave, following_wave(builder))
    if names:
        _halt_unshown(builder, names)
    return bool(names)


def has_lost_its_canaries(builder: StateBuilder) -> bool:
    """The same when a run is resumed, for the waves that have passed: others may have ended what their nodes showed."""
    passed = [name for wave in builder.state.order.waves[: builder.state.wave] for name in wave.nodes]
    if not any(shown.shows_no_more(builder.record(name)) for name in passed):
        return False
    names = shown.unshown(builder.state.order, builder.nodes, len(builder.state.order.waves), builder.state.wave)
    if names:
        _halt_unshown(builder, names)
    return bool(names)


def _halt_unshown(builder: StateBuilder, names: list[str]) -> None:
    waves = builder.state.order.waves
    wave = waves[min(builder.state.wave, len(waves) - 1)].name
    lost = [name for name in names if shown.shows_no_more(builder.record(name))]
    if lost:
        names = lost
        why = f"{counted(len(lost), 'node')} {_what_for(builder, lost)}; no node of that kind has the change"
    elif any(builder.record(name).shown for name in names):
        why = f"{counted(len(names), 'node')} not rehearsed ({_what_for(builder, names)}), and no other node of the same kind was changed"
    else:
        why = f"{counted(len(names), 'node')} left unchanged ({_what_for(builder, names)}), and no other node of the same kind was changed"
    halt(builder, Ending.HALTED, "nothing-shown", f"wave {wave}: {fold(names)}: {why}", RevertScope.NODE)


def _what_for(builder: StateBuilder, names: list[str]) -> str:
    return " or ".join(sorted({_why_alone(builder.record(name)) for name in names}))


def _why_alone(record: NodeRecord) -> str:
    if shown.was_reverted_by_others(record):
        return "reverted by another run"
    if shown.has_lost_its_receipt(record):
        return "without the receipt of the change"
    if shown.has_left(record):
        return "no longer in the fleet"
    if shown.was_skipped(record):
        return "not drained"
    if shown.was_not_approved(record):
        return "approvals used up"
    if shown.was_frozen(record):
        return "frozen"
    return "no baseline" if postponed.skipped_without_baseline(record) else "pulling images"


def watch_every(nodes: int) -> float:
    """Seconds between two rounds over a wave of this many nodes that has passed and waits."""
    return max(WATCH_EVERY, nodes * WATCH_EACH)


def _round(builder: StateBuilder, names: list[str], *, every: float) -> None:
    builder.set(round=builder.state.round + 1, round_at=builder.state.now + every)
    count_pulls = _short_of_pulls(builder)
    for name in names:
        ask(builder, name, Verb.MEASURE, count_pulls=count_pulls)
    if builder.state.order.wave_gates:
        judge_wave(builder)
