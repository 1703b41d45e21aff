"""The machine: ``step(state, event) -> (state, commands)``, and ``steps`` for events that arrive together. Pure; the driver,
resume and the simulator all use it.

Theory. The moves of a *node* are in ``transitions``, those of the *run* in ``run_moves``; ``docs/run-machine.md`` has both
as diagrams. After every event the run advances as far as it can. Nothing here does I/O, and the only time is the time in
the event.

A pause (requested, or a hold after a wave) is not a phase: nothing is released and no wave begins until it is lifted.
Nodes in flight continue, and the gates of a wave that has passed are still checked. The same holds while the change
window is closed. The driver evaluates the plan's conditions and journals the answer; nothing here knows a time zone.

Events that change nothing but ``now`` are not journaled (see ``app.driver``), so ticks can be frequent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from rollout.core.model.approvals import Approval
from rollout.core.model.config_map import ConfigMapStanding
from rollout.core.model.fleet_changes import IS_GONE, IS_REPLACED, REPLACED, FewerNodes
from rollout.core.model.verdict import Verdict
from rollout.core.run import drain_rounds, drains
from rollout.core.run.capacity import burst
from rollout.core.run.commands import Command
from rollout.core.run.events import (
    FENCES,
    AbortAsked,
    Answered,
    Approved,
    ConfigMapRead,
    ContinueAsked,
    CordonsLifted,
    Event,
    FleetRead,
    InterruptAsked,
    OperatorRequest,
    PauseAsked,
    Resumed,
    SilencesLifted,
    Ticked,
    Trigger,
    WaveJudged,
    WaveOpened,
    WindowClosed,
    WindowOpened,
)
from rollout.core.run.facts import AT_REST
from rollout.core.run.phases import advance
from rollout.core.run.run_moves import enter, first_open_wave, halt, held_by_another_run
from rollout.core.run.soak import note_measured, wait_for_data
from rollout.core.run.state import (
    ClosedWindow,
    Ending,
    Goal,
    Halt,
    NodeRecord,
    NodeState,
    Order,
    Pause,
    Phase,
    RunState,
    Verb,
    altered,
)
from rollout.core.run.state_builder import StateBuilder, ask, circumstances, did_not_restart, follow, transition
from rollout.core.run.transitions import Heard, IllegalMoveError, first, resumed, waits_anew


def opening(order: Order, counter: int, at: float) -> tuple[RunState, tuple[Command, ...]]:
    """The first state of a run and the claims it starts with."""
    nodes = dict.fromkeys(order.nodes, first(order.goal, at))
    state = RunState(order=order, counter=counter, phase=Phase.OPENING, wave=0, now=at, nodes=nodes)
    builder = StateBuilder(state)
    for name in order.nodes:
        ask(builder, name, Verb.READ)
    return builder.finish()


def step(state: RunState, event: Event) -> tuple[RunState, tuple[Command, ...]]:
    """The next state, and the commands to run."""
    builder = StateBuilder(_by_the_clock_of(event, state))
    _take(builder, event)
    return builder.finish()


def _take(builder: StateBuilder, event: Event) -> None:
    _HANDLERS[type(event)](builder, event)
    advance(builder, ticked=isinstance(event, Ticked))


def steps(state: RunState, events: Iterable[Event]) -> Iterator[tuple[Event, RunState, RunState, tuple[Command, ...]]]:
    """``step`` of each event, one after the other: the event as it must be journaled, the state before and after, commands.

    Answers to closed questions are left out. Many take less time than each alone: only what a step asks for is counted.
    """
    builder = StateBuilder(state)
    for heard in events:
        if isinstance(heard, Answered) and is_closed(builder.get(heard.node), heard):
            continue
        event = _not_before(state, heard)
        builder = _stepped(builder, event)
        before, (state, commands) = state, builder.finish()
        yield event, before, state, commands


def as_journaled(state: RunState, event: Event) -> Event | None:
    """The event as it must be journaled, so that a replay gives the same state (law 10).

    ``None`` for an answer to a closed question: it must change nothing, so it is not journaled. An event that was made before
    the last tick was processed gets that tick's time, because ticks that change nothing are not in the journal.
    """
    if isinstance(event, Answered) and is_closed(state.nodes.get(event.node), event):
        return None
    return _not_before(state, event)


def _not_before(state: RunState, event: Event) -> Event:
    """The event at the time of the last tick, if it was made before that."""
    return replace(event, at=state.now) if event.at < state.now and not isinstance(event, Resumed) else event


def is_closed(record: NodeRecord | None, event: Answered) -> bool:
    """Whether the question that this answers is no longer open. ``record``: that of its node, if the run has it."""
    return record is None or record.asked is None or record.serial != event.serial


def replayed(state: RunState, events: Iterable[Event]) -> RunState:
    """The state after these events of a journal. ``IllegalMoveError``: the journal is not that of this run."""
    builder = StateBuilder(state, replays=True)
    for event in events:
        builder = _stepped(builder, event)
    return builder.finish()[0]


def _stepped(builder: StateBuilder, event: Event) -> StateBuilder:
    """The builder after this event: a new controller's clock may be behind, so it gets one of its own."""
    if isinstance(event, Resumed):
        builder = StateBuilder(_by_the_clock_of(event, builder.finish()[0]), replays=builder.replays)
    else:
        builder.next_step(max(event.at, builder.now))
    _take(builder, event)
    return builder


def _by_the_clock_of(event: Event, state: RunState) -> RunState:
    """Within one controller, time never goes backwards. The next controller's clock may be behind, and then it counts.

    Recorded times are shifted to it, so that settled nodes stay settled.
    """
    behind = state.now - event.at
    if behind <= 0:
        return altered(state, {"now": event.at})
    if not isinstance(event, Resumed):
        return state
    nodes = {
        name: replace(record, since=record.since - behind, busy_until=record.busy_until - behind)
        for name, record in state.nodes.items()
    }
    paused = replace(state.paused, at=state.paused.at - behind) if state.paused else None
    halt = replace(state.halt, at=state.halt.at - behind) if state.halt else None
    closed = replace(state.closed, at=state.closed.at - behind) if state.closed else None
    return replace(state, now=event.at, nodes=nodes, paused=paused, closed=closed, halt=halt)


def _answered(builder: StateBuilder, event: Answered) -> None:
    record = builder.get(event.node)
    if record is None or is_closed(record, event):
        if builder.replays:
            raise IllegalMoveError(f"{event.node} answers {event.verb} number {event.serial}, which is not outstanding")
        return
    builder.seen_counter(event.counter)
    if event.verb in _AFTERWARDS:
        builder.put(event.node, asked=None)
        _AFTERWARDS[event.verb](builder, event)
    elif record.state in AT_REST:
        builder.put(event.node, asked=None)  # it was given up, or its end is known: a resume reads it again
    elif event.newer and not record.tx:
        builder.put(event.node, tx=event.newer)
        ask(builder, event.node, Verb.READ)
    elif event.trigger is Trigger.REFUSED and event.reference in FENCES:
        builder.put(event.node, asked=None)
        held_by_another_run(builder, event.node, event.reference, event.message)
    else:
        _remember(builder, event)
        heard = Heard(event.trigger, event.reference, event.message, event.pulls, event.again)
        transition(builder, event.node, heard)
        if event.trigger is Trigger.GONE and builder.record(event.node).state is NodeState.GONE:
            _one_less(builder, event.node)


def _one_less(builder: StateBuilder, name: str) -> None:
    """Its rack and its zone have a node less than before."""
    order, fewer = builder.state.order, builder.state.fewer
    node = order.nodes[name]
    racks, zones = {**order.racks, **fewer.racks}, {**order.zones, **fewer.zones}
    builder.resize(
        FewerNodes(
            {**fewer.racks, node.rack: max(0, racks[node.rack] - 1)},
            {**fewer.zones, node.zone: max(0, zones.get(node.zone, 1) - 1)},
        )
    )


def _cleaned(builder: StateBuilder, event: Answered) -> None:
    behind = drains.left_behind(builder.record(event.node))
    builder.put(event.node, leftovers=(*event.leftovers, *behind))


_AFTERWARDS = {Verb.CLEAN: _cleaned, Verb.UNCORDON: drain_rounds.uncordoned}
"""Verbs that are also sent to nodes at rest and do not change their state."""


def _remember(builder: StateBuilder, event: Answered) -> None:
    """Records an answer's data before the node's move: passes, times, the API's baseline, its log."""
    if event.trigger in (Trigger.PULLING, Trigger.UNSEEN):
        did_not_restart(builder, event.node)
        return
    if event.log is not None:
        builder.put(event.node, log=event.log)
    note_measured(builder, event)
    if event.verb is Verb.APPLY and event.trigger is Trigger.NOT_DRAINED:
        did_not_restart(builder, event.node)
    elif event.verb is Verb.APPLY:
        took = event.seconds if event.trigger is Trigger.ARMED else builder.record(event.node).apply_seconds
        builder.put(
            event.node, apply_seconds=took, baseline=event.baseline, cancelled=event.pulls, pod_starts=None,
            pulls_done=None,
        )  # fmt: skip
    elif event.verb is Verb.REVERT and event.trigger is Trigger.REVERTED_ON_REQUEST:
        builder.put(event.node, revert_seconds=event.seconds)


def _wave_opened(builder: StateBuilder, event: WaveOpened) -> None:
    """A silence that was set is recorded even if the wave did not open: it must be lifted."""
    builder.set(silences=tuple(dict.fromkeys((*builder.state.silences, *event.silences))), gate_asked=False)
    if builder.state.phase is not Phase.RUNNING or event.wave != builder.state.wave:
        return
    if event.verdict is Verdict.PASS:  # if the wave had already begun, its first baseline counts
        builder.set(opened=event.wave, baselines={event.wave: event.baseline, **builder.state.baselines})
    else:
        halt(builder, Ending.HALTED, f"baseline-{event.verdict}", f"before the wave: {event.evidence}")


def _wave_judged(builder: StateBuilder, event: WaveJudged) -> None:
    builder.set(gate_asked=False)
    if builder.state.phase is not Phase.SOAKING or event.wave != builder.state.wave:
        return
    if event.verdict is Verdict.PASS:
        builder.set(gate_passes=builder.state.gate_passes + 1)
    else:
        halt(builder, Ending.HALTED, f"wave-gate-{event.verdict}", event.evidence)


def _requested(builder: StateBuilder, event: OperatorRequest) -> None:
    """Another terminal's request, each once. A request to a run that has ended or is halting changes nothing."""
    if event.request <= builder.state.heard:
        return
    builder.set(heard=event.request)
    if builder.state.halt is not None or builder.state.phase in (Phase.CLOSING, Phase.ENDED):
        return
    match event:
        case PauseAsked():
            if builder.state.paused is None:
                builder.set(paused=Pause(event.who, event.reason, builder.now))
        case ContinueAsked():
            _continue(builder)
        case AbortAsked():
            _abort(builder, event)


def _continue(builder: StateBuilder) -> None:
    paused = builder.state.paused
    if paused is not None:
        # ``wave`` may be an earlier one again.
        promoted = builder.state.reached if paused.held else builder.state.promoted
        builder.set(paused=None, promoted=promoted)
        _waited(builder)


def _waited(builder: StateBuilder) -> None:
    """A waiting soak gets all its rounds and its time for data again, and pulls their full time: a wait counts against no node."""
    builder.set(round=0)
    wait_for_data(builder)
    for name, record in tuple(builder.nodes.items()):
        builder.keep(name, waits_anew(record))


def _approved(builder: StateBuilder, event: Approved) -> None:
    approval = Approval(event.person, event.key, event.signature)
    builder.set(approved=(*builder.state.approved, approval))


def _window_closed(builder: StateBuilder, event: WindowClosed) -> None:
    """Nothing is released until it opens. What a run does after a halt, and a rollback, do not depend on it."""
    state = builder.state
    over = state.halt is not None or state.phase in (Phase.CLOSING, Phase.ENDED)
    if not over and state.order.goal is Goal.APPLY:
        since = state.closed.at if state.closed else builder.now
        builder.set(closed=ClosedWindow(event.why, since, event.opens))


def _window_opened(builder: StateBuilder, _event: WindowOpened) -> None:
    """A wave that was under way is opened again: its silences may have ended, and its gates must pass before it goes on."""
    state = builder.state
    if state.closed is not None:
        again = state.phase is Phase.RUNNING and not state.gate_asked
        builder.set(closed=None, opened=-1 if again else state.opened)
        _waited(builder)


def _abort(builder: StateBuilder, event: AbortAsked) -> None:
    why = f"aborted by {event.who}" + (f": {event.reason}" if event.reason else "")
    ending = Ending.HALTED if builder.state.order.goal is Goal.APPLY else Ending.INTERRUPTED
    halt(builder, ending, "aborted", why, event.revert)


def _interrupt(builder: StateBuilder, _event: InterruptAsked) -> None:
    builder.set(interrupted=True)
    if builder.state.halt is None and builder.state.phase not in (Phase.CLOSING, Phase.ENDED):
        halt = Halt(
            Ending.INTERRUPTED, "interrupted", "stopped by the operator; in-flight nodes finish first", builder.now
        )
        enter(builder, Phase.HALTING, halt=halt)


def _resumed(builder: StateBuilder, event: Resumed) -> None:
    """A new controller reads every node, then continues from where the run was.

    To resume a halt that had ended is to accept it: its nodes are no longer charged. Nodes that were reverted with others,
    or left alone because of pulls, pods, a freeze or a missing baseline, are tried again. A halt that was still reverting nodes when
    its controller died continues to halt. The wave is opened again, because its silences may have ended.
    """
    halt = builder.state.halt
    halted = halt is not None and halt.ending is Ending.HALTED
    accepted, halting = halted and builder.state.ending is not None, halted and builder.state.ending is None
    enter(
        builder, Phase.OPENING, counter=event.counter, halt=halt if halting else None, ending=None, interrupted=False,
        gate_asked=False, opened=-1, lifting=False, claims=1, highest=0,
        config_map=ConfigMapStanding(sent=builder.state.config_map.sent),
        started=(builder.now,) * burst(builder.state.order.limits),  # as if the last controller had just started as many as it may
    )  # fmt: skip
    again = builder.state.order.goal is Goal.APPLY and not halting
    for name, record in tuple(builder.nodes.items()):
        follow(builder, name, *resumed(record, circumstances(builder, name), again=again, accepted=accepted))
    drain_rounds.count_anew(builder)
    first_open_wave(builder)


def _fleet_read(builder: StateBuilder, event: FleetRead) -> None:
    """Nodes that left are asked nothing. One that is back is read: it may have its change."""
    for name, record in tuple(builder.nodes.items()):
        reference = event.left.get(name)
        if reference is not None:
            why = IS_REPLACED if reference == REPLACED else IS_GONE
            transition(builder, name, Trigger.GONE, reference, why)
        elif record.state is NodeState.GONE:
            transition(builder, name, Trigger.RETURNED)
    before = builder.state.fewer
    builder.resize(FewerNodes(_least(before.racks, event.racks), _least(before.zones, event.zones)))


def _least(before: Mapping[str, int], now: Mapping[str, int]) -> Mapping[str, int]:
    """Of each area the smallest number of nodes that was seen: an area that grows again keeps its smaller limit."""
    return {name: min(before.get(name, size), size) for name, size in {**before, **now}.items()}


def _lifted(builder: StateBuilder, event: SilencesLifted) -> None:
    builder.set(lifting=False, silences=(), leftovers=(*builder.state.leftovers, *event.leftovers))


def _config_map_read(builder: StateBuilder, event: ConfigMapRead) -> None:
    """An answer to an earlier controller comes too late: the new one asks again."""
    if builder.state.config_map.asked:
        standing = replace(
            builder.state.config_map,
            asked=False,
            outcome=event.outcome,
            reference=event.reference,
            message=event.message,
        )
        builder.set(config_map=standing)


def _cordons_lifted(builder: StateBuilder, event: CordonsLifted) -> None:
    """An operator lifted them after the run's end. A run that continues lifts its cordons itself."""
    if builder.state.phase is Phase.ENDED:
        for name in event.nodes:
            if name in builder.nodes:
                drain_rounds.without_cordon(builder, name)


def _ticked(_builder: StateBuilder, _event: Ticked) -> None:
    """Time passed; the phases decide what that means."""


_HANDLERS: Mapping[type, Callable[[StateBuilder, Any], None]] = {
    Ticked: _ticked,
    Answered: _answered,
    WaveOpened: _wave_opened,
    WaveJudged: _wave_judged,
    SilencesLifted: _lifted,
    ConfigMapRead: _config_map_read,
    CordonsLifted: _cordons_lifted,
    InterruptAsked: _interrupt,
    PauseAsked: _requested,
    ContinueAsked: _requested,
    AbortAsked: _requested,
    Resumed: _resumed,
    FleetRead: _fleet_read,
    Approved: _approved,
    WindowClosed: _window_closed,
    WindowOpened: _window_opened,
}
