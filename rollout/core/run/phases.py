"""How a run moves from phase to phase, given the states of its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.playbook import Cause
from rollout.core.run import drain_rounds
from rollout.core.run.budgets import spent
from rollout.core.run.capacity import IN_MOTION, who_may_go
from rollout.core.run.events import FENCES
from rollout.core.run.releases import is_to_open, is_to_return, releases, retries
from rollout.core.run.soak import soaking
from rollout.core.run.state import Ending, Goal, NodeRecord, NodeState, Phase, Rehearsal, Verb
from rollout.core.run.state_builder import StateBuilder
from rollout.core.run.transitions import ResolvedTrigger

_AT_REST = frozenset(
    {NodeState.SKIPPED, NodeState.REFUSED, NodeState.REVERTED, NodeState.FAILED, NodeState.UNREACHABLE}
)
"""Nodes that are asked nothing more, except to clean up."""

MOST_CLAIMS = 3
"""How often a run raises its fencing token to claim its nodes."""


def advance(draft: StateBuilder, *, ticked: bool) -> None:
    """Advance the run as far as it can go. Releases, retries and rounds happen on ticks only."""
    _charge_budgets(draft)
    before = None
    while before is not draft.state.phase:
        before, wave = draft.state.phase, draft.state.wave
        _PHASES[before](draft)
        if (before, wave) != (draft.state.phase, draft.state.wave):
            _charge_budgets(draft)  # a node lost before its wave began counts in it, before any node of it is released
    if ticked:
        retries(draft)
        _charge_budgets(draft)  # nodes that were given up count, too
        drain_rounds.go_round(draft)
        releases(draft)


def _charge_budgets(draft: StateBuilder) -> None:
    if draft.state.phase in (Phase.RUNNING, Phase.SOAKING) and draft.may_have_gone_wrong():
        message = spent(draft.state.order, draft.nodes, draft.state.wave)
        if message:
            draft.halt(Ending.HALTED, "budget-spent", message)


def _opening(draft: StateBuilder) -> None:
    if _outstanding(draft):
        return
    foreign = {name: r for name, r in draft.nodes.items() if r.reference in FENCES and r.state not in _AT_REST}
    if foreign and not _goes_on_without(draft, foreign):
        _claim_again(draft, foreign)
        return
    if draft.state.order.goal is Goal.REVERT:
        _accept_the_unreachable(draft)
        draft.set(phase=Phase.HALTING)
    elif draft.state.halt is not None:
        draft.set(phase=Phase.HALTING)
    elif _too_sick(draft):
        return
    else:
        draft.set(phase=Phase.RUNNING)


def _goes_on_without(draft: StateBuilder, foreign: Mapping[str, NodeRecord]) -> bool:
    """A rollback has used its claims: the few nodes that still report a higher token are left, pending recovery.

    They were not changed, so they do not reduce any limit.
    """
    apply = draft.state.order.goal is Goal.APPLY
    if apply or draft.state.claims < MOST_CLAIMS or draft.is_taken_over():
        return False
    for name, record in foreign.items():
        draft.transition(name, ResolvedTrigger.LEFT_TO_OTHERS, record.reference, record.message)
        draft.put(name, accepted=True)
    return True


def _claim_again(draft: StateBuilder, foreign: Mapping[str, NodeRecord]) -> None:
    """A higher token was seen: take one above it and claim every node again, unless a live run holds some.

    A resumed run does not continue on nodes that another run has changed since: its plan is older. A rollback takes claims
    over, so a claim of a live run does not stop it.
    """
    apply = draft.state.order.goal is Goal.APPLY
    others = apply and any(record.reference == "claimed" or record.orphaned for record in foreign.values())
    if others or draft.state.claims >= MOST_CLAIMS:
        name, record = next(iter(foreign.items()))
        draft.halt(Ending.CLAIMED, record.reference, f"{name}: {record.message}")
        return
    draft.set(counter=max(draft.state.highest, draft.state.counter) + 1, claims=draft.state.claims + 1)
    for name, record in tuple(draft.nodes.items()):
        if record.state not in _AT_REST:
            draft.put(name, reference="", message="")
            draft.ask(name, Verb.READ)


def _too_sick(draft: StateBuilder) -> bool:
    """Preflight: nothing was changed yet, and too many nodes do not answer their claim."""
    if any(record.accepted or record.state not in _AT_THE_START for record in draft.nodes.values()):
        return False  # a resumed run is judged by its budgets
    sick = sum(record.state is not NodeState.PENDING for record in draft.nodes.values())
    limit = draft.state.order.limits.preflight.of(len(draft.nodes))
    message = spent(draft.state.order, draft.nodes, 0)
    if sick > limit:
        message = f"{sick} of {len(draft.nodes)} nodes could not be claimed; the preflight limit is {limit}"
    if sick and message:
        draft.halt(Ending.PREFLIGHT, "preflight", f"nothing was touched: {message}")
        return True
    return False


_AT_THE_START = frozenset({NodeState.PENDING, NodeState.UNREACHABLE, NodeState.REFUSED})


def _accept_the_unreachable(draft: StateBuilder) -> None:
    """A node that is unreachable when a rollback opens was not made so by it: it is pending recovery and reduces no limit.

    A node that was reverting when the controller died may have been: it is still read, as before.
    """
    for name, record in tuple(draft.nodes.items()):
        on_its_way = record.owed and record.cause is None
        if record.state is NodeState.UNKNOWN and record.reads and not on_its_way:
            draft.put(
                name, state=NodeState.UNREACHABLE, cause=Cause.UNREACHABLE, owed=True, accepted=True, since=draft.now
            )


def _running(draft: StateBuilder) -> None:
    order, state = draft.state.order, draft.state
    if state.wave >= len(order.waves):
        draft.first_open_wave()  # after a resume, a node of a passed wave may not answer
        if draft.state.wave >= len(order.waves):
            _close(draft)
        return
    wave = order.waves[state.wave]
    nodes = draft.nodes
    records = [nodes[name] for name in wave.nodes]
    if is_to_open(draft) and any(record.state not in _AT_REST for record in records):
        draft.open_wave()
    if draft.state.gate_asked or any(record.state in IN_MOTION or record.asked for record in records):
        return
    pending = [name for name in wave.nodes if draft.nodes[name].state is NodeState.PENDING]
    if pending:
        _check_for_room(draft, pending)
        return
    rehearsing = _rehearse(draft, wave.nodes)
    if rehearsing:
        _check_for_room(draft, rehearsing)
    else:
        draft.set(phase=Phase.SOAKING, round=0, gate_passes=0, round_at=state.now + wave.soak / order.passes)


def _rehearse(draft: StateBuilder, names: tuple[str, ...]) -> list[str]:
    """Revert the first wave's nodes for real, each once, before any other wave. Returns those still to be changed."""
    if not draft.state.order.rehearsal or draft.state.reached > 0:
        return []
    confirmed = [name for name in names if draft.nodes[name].state is NodeState.CONFIRMED]
    waiting = [name for name in confirmed if draft.nodes[name].rehearsal is not Rehearsal.DONE]
    for name in waiting:
        if draft.nodes[name].rehearsal is Rehearsal.NONE and draft.state.paused is None:
            draft.put(name, rehearsal=Rehearsal.BACK, want_back=True)
    return waiting


def _check_for_room(draft: StateBuilder, pending: list[str]) -> None:
    """Halt if no node is in flight and none can go: the racks of all pending nodes have no room left for good."""
    if any(
        record.asked
        or record.state in IN_MOTION
        or draft.now < record.busy_until
        or drain_rounds.is_to_free(draft, name)
        for name, record in draft.nodes.items()
    ):
        return
    candidates, capacity = who_may_go(draft.state.order, draft.nodes, pending, draft.now)
    if not candidates or not capacity:
        racks = sorted({draft.state.order.nodes[name].rack for name in pending})
        draft.halt(
            Ending.HALTED,
            "no-room-left",
            f"{len(pending)} nodes wait for racks that have no room left: {', '.join(racks)}",
        )


def _halting(draft: StateBuilder) -> None:
    waiting = (
        record.state in IN_MOTION or record.asked or is_to_return(draft, record) for record in draft.nodes.values()
    )
    ending = draft.state.halt.ending if draft.state.halt else Ending.DONE
    if ending in (Ending.CLAIMED, Ending.PREFLIGHT) or not any(waiting):
        _close(draft)


def _close(draft: StateBuilder) -> None:
    drain_rounds.count_from_the_end(draft)
    draft.set(phase=Phase.CLOSING)


def _closing(draft: StateBuilder) -> None:
    """Every claimed node is asked once to clean up. A node that does not answer keeps its claim, and this is reported."""
    if draft.state.ending is None:
        if drain_rounds.are_open(draft):
            return
        halt = draft.state.halt
        draft.set(ending=halt.ending if halt else Ending.DONE)
        for name, record in tuple(draft.nodes.items()):
            if record.asked is None and not _out_of_reach(draft, record):
                draft.ask(name, Verb.CLEAN)
    if draft.state.wave_is_opening or draft.state.lifting:
        return  # silences that are being set must be lifted, too
    if draft.state.silences:
        draft.lift_silences()
    elif not _outstanding(draft):
        draft.set(phase=Phase.ENDED)


def _out_of_reach(draft: StateBuilder, record: NodeRecord) -> bool:
    """Nodes that do not answer; and, when another run has nodes of ours, those and the nodes left to their guards."""
    if draft.state.ending is Ending.CLAIMED and (record.reference in FENCES or record.state in IN_MOTION):
        return True
    return record.state in (NodeState.UNREACHABLE, NodeState.UNKNOWN)


def _ended(draft: StateBuilder) -> None:
    """Nothing more to do."""


_PHASES = {
    Phase.OPENING: _opening,
    Phase.RUNNING: _running,
    Phase.SOAKING: soaking,
    Phase.HALTING: _halting,
    Phase.CLOSING: _closing,
    Phase.ENDED: _ended,
}


def _outstanding(draft: StateBuilder) -> bool:
    return any(record.asked for record in draft.nodes.values())
