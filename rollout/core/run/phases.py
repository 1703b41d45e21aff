"""How a run moves from phase to phase, given the states of its nodes, and what it starts on ticks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from rollout.core.run import drain_rounds, drains
from rollout.core.run.budgets import spent
from rollout.core.run.capacity import nodes_to_change, nodes_to_revert, pace_allows
from rollout.core.run.events import ENDED_HERE, FENCES, Trigger
from rollout.core.run.facts import AT_REST, IN_MOTION, Count, NodeList, is_to_be_claimed
from rollout.core.run.layout import place_of
from rollout.core.run.postponed import in_turn
from rollout.core.run.records import Nodes
from rollout.core.run.run_moves import enter, first_open_wave, halt, is_taken_over
from rollout.core.run.soak import begin_soak, has_lost_its_canaries, soaking
from rollout.core.run.state import Ending, Goal, NodeRecord, NodeState, Phase, Rehearsal, Unknown, Verb
from rollout.core.run.state_builder import (
    StateBuilder,
    ask,
    lift_silences,
    open_wave,
    patience,
    put_config_map,
    restore_config_map,
    transition,
)
from rollout.core.run.transitions import ANOTHER_MACHINE, Decision

# What happens on ticks: nodes that did not answer are read again, and restarts start as pace and limits allow.


def retries(builder: StateBuilder) -> None:
    """Read nodes again that did not answer; give up those with a guard that must long have fired."""
    if builder.state.phase in (Phase.CLOSING, Phase.ENDED):
        return
    for name, record in _listed(builder, NodeList.TO_READ):
        if record.reference in FENCES and builder.state.phase is Phase.OPENING:
            continue  # it did answer: all are claimed again with a higher token, once all have answered
        if record.state is NodeState.UNKNOWN and builder.now > record.since + patience(builder.state.order):
            transition(builder, name, Decision.GIVE_UP, record.reference, record.message)
        elif builder.now >= record.retry_at:
            ask(builder, name, Verb.READ)


def _listed(builder: StateBuilder, what: NodeList) -> Iterator[tuple[str, NodeRecord]]:
    return builder.nodes.those(builder.nodes.listed(what))


def releases(builder: StateBuilder) -> None:
    """Restarts, as the pace allows: unhealthy nodes to revert, healthy nodes to revert, drained nodes, then the wave."""
    if builder.state.phase in (Phase.OPENING, Phase.CLOSING, Phase.ENDED):
        return
    allowed = pace_allows(builder.state.started, builder.state.order.limits, builder.now)
    unhealthy = [name for name, _ in islice(_listed(builder, NodeList.TO_REVERT), allowed)]
    for name in unhealthy:
        ask(builder, name, Verb.REVERT)
    allowed -= len(unhealthy)
    allowed -= _revert_the_healthy(builder, allowed)
    if drains.may_go_on(builder.state):
        allowed -= drain_rounds.change_the_empty(builder, allowed)
        if allowed > 0:
            _release_the_wave(builder, allowed)


def _revert_the_healthy(builder: StateBuilder, allowed: int) -> int:
    """A rehearsal keeps the limits of a change: only a real revert may exceed them."""
    if allowed <= 0 or builder.state.waits or _is_interrupted(builder) or not _is_config_map_as_before(builder):
        return 0
    healthy = builder.nodes.listed(NodeList.MARKED)
    rehearsing = healthy & builder.nodes.listed(NodeList.REHEARSING)
    if rehearsing:
        candidates, capacity = nodes_to_change(builder.nodes, (rehearsing,), builder.now, allowed)
    else:
        candidates, capacity = nodes_to_revert(builder.nodes, healthy, builder.now, allowed)
    going = candidates[: min(capacity, allowed)]
    for name in going:
        transition(builder, name, Trigger.REVERT)
        ask(builder, name, Verb.REVERT)
    return len(going)


def _release_the_wave(builder: StateBuilder, allowed: int) -> None:
    if builder.state.gate_asked or is_to_open(builder):
        return  # no node of a wave is changed before the wave's baseline
    nodes = builder.nodes
    pending = nodes.listed(NodeList.TO_RELEASE) & nodes.of_wave(builder.state.wave)
    wanted = in_turn(pending, nodes, builder.now)
    candidates, capacity = nodes_to_change(nodes, wanted, builder.now, allowed)
    for name in candidates[: min(capacity, allowed)]:
        transition(builder, name, Decision.DRAIN if builder.state.order.nodes[name].drain else Trigger.RELEASED)


def is_to_open(builder: StateBuilder) -> bool:
    """Whether the wave gates' baseline is still to be taken; nothing of the wave is released before."""
    state = builder.state
    return state.order.wave_gates and state.opened != state.wave and not state.gate_asked


def _is_interrupted(builder: StateBuilder) -> bool:
    """Whether healthy nodes that were to be reverted keep their change."""
    return builder.state.halt is not None and builder.state.halt.ending is Ending.INTERRUPTED


MOST_CLAIMS = 3
"""How often a run raises its fencing token to claim its nodes."""


def advance(builder: StateBuilder, *, ticked: bool) -> None:
    """Advance the run as far as it can go. Releases, retries and rounds happen on ticks only."""
    _charge_budgets(builder)
    before = None
    while before is not builder.state.phase:
        before, wave = builder.state.phase, builder.state.wave
        _PHASES[before](builder)
        if (before, wave) != (builder.state.phase, builder.state.wave):
            _charge_budgets(
                builder
            )  # a node lost before its wave began counts in it, before any node of it is released
    if ticked:
        builder.settle()
        retries(builder)
        _charge_budgets(builder)  # nodes that were given up count, too
        drain_rounds.go_round(builder)
        releases(builder)


def _charge_budgets(builder: StateBuilder) -> None:
    if builder.state.phase in (Phase.RUNNING, Phase.SOAKING) and builder.may_have_failed():
        message = spent(builder.nodes, builder.state.wave)
        if message:
            halt(builder, Ending.HALTED, "budget-spent", message)


def _opening(builder: StateBuilder) -> None:
    if builder.is_asked() or any(is_to_be_claimed(record) for _, record in _listed(builder, NodeList.TO_READ)):
        return
    foreign = {name: r for name, r in builder.nodes.items() if r.reference in FENCES and r.state not in AT_REST}
    if foreign and not _goes_on_without(builder, foreign):
        _claim_again(builder, foreign)
        return
    if builder.state.order.goal is Goal.REVERT:
        _accept_the_unreachable(builder)
        if put_config_map(builder):  # before the first revert: nodes that join meanwhile get the old settings
            enter(builder, Phase.HALTING)
    elif builder.state.halt is not None:
        enter(builder, Phase.HALTING)
    elif _too_unhealthy(builder) or has_lost_its_canaries(builder):
        return
    else:
        enter(builder, Phase.RUNNING)


def _goes_on_without(builder: StateBuilder, foreign: Mapping[str, NodeRecord]) -> bool:
    """A rollback has used its claims: the few nodes that still report a higher token are left, pending recovery.

    They were not changed, so they do not reduce any limit.
    """
    apply = builder.state.order.goal is Goal.APPLY
    if apply or builder.state.claims < MOST_CLAIMS or is_taken_over(builder):
        return False
    for name, record in foreign.items():
        transition(builder, name, Decision.LEAVE_TO_OTHERS, record.reference, record.message)
        builder.put(name, accepted=True)
    return True


def _claim_again(builder: StateBuilder, foreign: Mapping[str, NodeRecord]) -> None:
    """A higher token was seen: take one above it and claim every node again, unless a live run holds some.

    A resumed run does not continue on nodes that another run has changed since: its plan is older. A rollback takes claims
    over, so a claim of a live run does not stop it.
    """
    apply = builder.state.order.goal is Goal.APPLY
    others = apply and any(
        record.reference == "claimed" or (record.orphaned and record.reference != ENDED_HERE)
        for record in foreign.values()
    )
    if others or builder.state.claims >= MOST_CLAIMS:
        name, record = next(iter(foreign.items()))
        halt(builder, Ending.CLAIMED, record.reference, f"{name}: {record.message}")
        return
    builder.set(counter=max(builder.state.highest, builder.state.counter) + 1, claims=builder.state.claims + 1)
    for name, record in tuple(builder.nodes.items()):
        if record.state not in AT_REST:
            builder.put(name, reference="", message="")
            ask(builder, name, Verb.READ)


def _too_unhealthy(builder: StateBuilder) -> bool:
    """Preflight: nothing was changed yet, and too many nodes do not answer their claim."""
    begun = (record.accepted or record.touched or record.attempt > 1 for record in builder.nodes.values())
    if any(begun) or any(record.state not in _AT_THE_START for record in builder.nodes.values()):
        return False  # a resumed run is judged by its budgets
    there = [record for record in builder.nodes.values() if record.state is not NodeState.GONE]
    unhealthy = sum(record.state is not NodeState.PENDING for record in there)
    limit = builder.state.order.limits.preflight.of(len(there))
    message = spent(builder.nodes, 0)
    if unhealthy > limit:
        message = f"{unhealthy} of {len(there)} nodes could not be claimed; the preflight limit is {limit}"
    if unhealthy and message:
        halt(builder, Ending.PREFLIGHT, "preflight", f"nothing was touched: {message}")
        return True
    return False


_AT_THE_START = frozenset({NodeState.PENDING, NodeState.UNREACHABLE, NodeState.REFUSED, NodeState.GONE})


def _accept_the_unreachable(builder: StateBuilder) -> None:
    """A node that is unreachable when a rollback opens was not made so by it: it is pending recovery and reduces no limit.

    A node that was reverting when the controller died may have been: it is still read, as before.
    """
    for name, record in tuple(builder.nodes.items()):
        on_its_way = record.owed and record.cause is None
        if isinstance(record.current, Unknown) and record.current.reads and not on_its_way:
            transition(builder, name, Decision.ACCEPT_UNREACHABLE)


def _running(builder: StateBuilder) -> None:
    order, state = builder.state.order, builder.state
    if state.wave >= len(order.waves):
        first_open_wave(builder)  # after a resume, a node of a passed wave may not answer
        if builder.state.wave >= len(order.waves):
            _close(builder)
        return
    wave, here = order.waves[state.wave], place_of(state.wave)
    if is_to_open(builder) and state.closed is None and builder.nodes.count(Count.AT_REST, here) < len(wave.nodes):
        open_wave(builder)
    if builder.state.gate_asked or builder.is_asked(state.wave):
        return
    nodes = builder.nodes
    if nodes.count(Count.BUSY, here):
        return
    if nodes.count(Count.PENDING, here):
        _check_for_room(builder, nodes.listed(NodeList.TO_RELEASE) & nodes.of_wave(state.wave))
        return
    rehearsing = _rehearse(builder, wave.nodes)
    if rehearsing:
        _check_for_room(builder, nodes.among(rehearsing))
    else:
        begin_soak(builder)


def _rehearse(builder: StateBuilder, names: tuple[str, ...]) -> list[str]:
    """Revert the first wave's nodes for real, each once, before any other wave. Returns those still to be changed."""
    if not builder.state.order.rehearsal or builder.state.reached > 0:
        return []
    confirmed = [name for name in names if builder.record(name).state is NodeState.CONFIRMED]
    waiting = [name for name in confirmed if builder.record(name).rehearsal is not Rehearsal.DONE]
    for name in waiting:
        if builder.record(name).rehearsal is Rehearsal.NONE and not builder.state.waits:
            builder.put(name, rehearsal=Rehearsal.BACK, to_revert=True)
    return waiting


def _check_for_room(builder: StateBuilder, waiting: Nodes) -> None:
    """Halt if no node is in flight and none can go: the racks of all these nodes have no room left for good."""
    nodes = builder.nodes.at(builder.now)
    if nodes.count(Count.BUSY) or nodes.listed(NodeList.SETTLING):
        return
    if any(drain_rounds.is_to_free(builder, name) for name, _ in _listed(builder, NodeList.CORDONED)):
        return
    candidates, capacity = nodes_to_change(nodes, (waiting,), builder.now, 1)
    if not candidates or not capacity:
        names = [name for name, _ in nodes.those(waiting)]
        racks = sorted({builder.state.order.nodes[name].rack for name in names})
        halt(
            builder,
            Ending.HALTED,
            "no-room-left",
            f"{len(names)} nodes wait for racks that have no room left: {', '.join(racks)}",
        )


def _is_config_map_as_before(builder: StateBuilder) -> bool:
    """Whether healthy nodes may be reverted: a halted run first restores the ConfigMap, as a rollback does. It is written by a run that ends as done, and by no other."""
    halt = builder.state.halt
    halted = halt is not None and halt.ending is Ending.HALTED
    return not halted or builder.state.order.goal is Goal.REVERT or restore_config_map(builder)


def _halting(builder: StateBuilder) -> None:
    _is_config_map_as_before(builder)  # asked also where no node is reverted
    ending = builder.state.halt.ending if builder.state.halt else Ending.DONE
    waits = builder.nodes.count(Count.BUSY) or (builder.nodes.count(Count.MARKED) and not _is_interrupted(builder))
    if ending in (Ending.CLAIMED, Ending.PREFLIGHT) or not waits:
        _close(builder)


def _close(builder: StateBuilder) -> None:
    drain_rounds.count_anew(builder)
    enter(builder, Phase.CLOSING)


def _closing(builder: StateBuilder) -> None:
    """Every claimed node is asked once to clean up. A node that does not answer keeps its claim, and this is reported."""
    if builder.state.ending is None:
        if drain_rounds.are_open(builder):
            return
        halt = builder.state.halt
        apply = builder.state.order.goal is Goal.APPLY
        if builder.state.config_map.asked or (apply and halt is None and not put_config_map(builder)):
            return
        builder.set(ending=halt.ending if halt else Ending.DONE)
        for name, record in tuple(builder.nodes.items()):
            if record.asked is None and not is_out_of_reach(builder.state.ending, record):
                ask(builder, name, Verb.CLEAN)
    if builder.state.wave_is_opening or builder.state.lifting:
        return  # silences that are being set must be lifted, too
    if builder.state.silences:
        lift_silences(builder)
    elif not builder.is_asked():
        enter(builder, Phase.ENDED)


def is_out_of_reach(ending: Ending | None, record: NodeRecord) -> bool:
    """Nodes that are not asked to clean up: those that do not answer or are gone; and, when another run has nodes of ours, those and the nodes left to their guards.

    A machine that answered under the name of a planned one has our claim: it is asked.
    """
    if ending is Ending.CLAIMED and (record.reference in FENCES or record.state in IN_MOTION):
        return True
    if record.state is NodeState.GONE:
        return record.reference != ANOTHER_MACHINE
    return record.state in (NodeState.UNREACHABLE, NodeState.UNKNOWN)


def _ended(builder: StateBuilder) -> None:
    """Nothing more to do."""


_PHASES = {
    Phase.OPENING: _opening,
    Phase.RUNNING: _running,
    Phase.SOAKING: soaking,
    Phase.HALTING: _halting,
    Phase.CLOSING: _closing,
    Phase.ENDED: _ended,
}
