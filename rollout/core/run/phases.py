"""How a run moves on from phase to phase, once the nodes stand where they stand."""

from __future__ import annotations

from rollout.core.model.playbook import Cause
from rollout.core.run.budgets import spent
from rollout.core.run.capacity import pace_allows, who_may_go, who_may_return
from rollout.core.run.draft import Draft
from rollout.core.run.events import FENCES, Trigger
from rollout.core.run.state import Ending, Goal, NodeRecord, NodeState, Pause, Phase, Rehearsal, Verb
from rollout.core.run.transitions import Sharp

_IN_FLIGHT = frozenset({NodeState.APPLYING, NodeState.APPLIED, NodeState.REVERTING, NodeState.UNKNOWN})
_AT_REST = frozenset(
    {NodeState.SKIPPED, NodeState.REFUSED, NodeState.REVERTED, NodeState.FAILED, NodeState.UNREACHABLE}
)
"""Nodes of which nothing is asked any more, but to be left as found."""

MOST_CLAIMS = 3
"""How often a run raises its token to claim its nodes."""

MOST_ROUNDS = 4
"""A soak ends at the latest after this many times K rounds."""

WATCH_EVERY = 60.0
"""Seconds between two rounds of the gates while a wave that has passed is held, or the run is paused."""

WATCH_EACH = 0.2
"""The same, at least this much a node: a night over a large wave is not to fill the journal."""


def advance(draft: Draft, *, ticked: bool) -> None:
    """Move the run on as far as it can go. Releases, retries and rounds happen on ticks only."""
    _charge_budgets(draft)
    before = None
    while before is not draft.state.phase:
        before, wave = draft.state.phase, draft.state.wave
        _PHASES[before](draft)
        if draft.state.wave != wave:
            _charge_budgets(draft)  # who was lost before its wave began counts in it, before any of it is released
    if ticked:
        _retries(draft)
        _releases(draft)


def _charge_budgets(draft: Draft) -> None:
    if draft.state.phase in (Phase.RUNNING, Phase.SOAKING):
        message = spent(draft.state.order, draft.nodes, draft.state.wave)
        if message:
            draft.halt(Ending.HALTED, "budget-spent", message)


def _opening(draft: Draft) -> None:
    if _outstanding(draft):
        return
    foreign = {name: record for name, record in draft.nodes.items() if record.reference in FENCES}
    if foreign:
        _claim_again(draft, foreign_live=any(record.reference == "claimed" for record in foreign.values()))
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


def _claim_again(draft: Draft, *, foreign_live: bool) -> None:
    """A higher token was seen: take one above it and claim every node again, unless a live run holds some."""
    if foreign_live or draft.state.claims >= MOST_CLAIMS:
        name = next(name for name, record in draft.nodes.items() if record.reference in FENCES)
        draft.halt(Ending.CLAIMED, draft.nodes[name].reference, f"{name}: {draft.nodes[name].message}")
        return
    draft.set(counter=max(draft.state.highest, draft.state.counter) + 1, claims=draft.state.claims + 1)
    for name, record in tuple(draft.nodes.items()):
        if record.state not in _AT_REST:
            draft.put(name, reference="", message="")
            draft.ask(name, Verb.READ)


def _too_sick(draft: Draft) -> bool:
    """Preflight: nothing was touched yet, and too many nodes do not answer their claim."""
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


def _accept_the_unreachable(draft: Draft) -> None:
    """Who cannot be reached when a rollback opens was not made unreachable by it: owed, and no limit shrinks for it."""
    for name, record in tuple(draft.nodes.items()):
        if record.state is NodeState.UNKNOWN and record.reads:
            draft.put(
                name, state=NodeState.UNREACHABLE, cause=Cause.UNREACHABLE, owed=True, accepted=True, since=draft.now
            )


def _running(draft: Draft) -> None:
    order, state = draft.state.order, draft.state
    if state.wave >= len(order.waves):
        draft.first_open_wave()  # of a wave that has passed, a resume may find a node that does not speak
        if draft.state.wave >= len(order.waves):
            draft.set(phase=Phase.CLOSING)
        return
    wave = order.waves[state.wave]
    nodes = draft.nodes
    records = [nodes[name] for name in wave.nodes]
    if _is_to_open(draft) and any(record.state not in _AT_REST for record in records):
        draft.open_wave()
    if draft.state.gate_asked or any(record.state in _IN_FLIGHT or record.asked for record in records):
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


def _is_to_open(draft: Draft) -> bool:
    """Whether the wave gates' baseline is still to be taken; nothing of the wave is released before."""
    state = draft.state
    return state.order.wave_gates and state.opened != state.wave and not state.gate_asked


def _rehearse(draft: Draft, names: tuple[str, ...]) -> list[str]:
    """Send the first wave's nodes back once for real, each once, before any other wave; those that are still to go."""
    if not draft.state.order.rehearsal or draft.state.reached > 0:
        return []
    confirmed = [name for name in names if draft.nodes[name].state is NodeState.CONFIRMED]
    waiting = [name for name in confirmed if draft.nodes[name].rehearsal is not Rehearsal.DONE]
    for name in waiting:
        if draft.nodes[name].rehearsal is Rehearsal.NONE and draft.state.paused is None:
            draft.put(name, rehearsal=Rehearsal.BACK, want_back=True)
    return waiting


def _check_for_room(draft: Draft, pending: list[str]) -> None:
    """Nothing moves, and nothing will: the racks of all nodes that are to go have no room left for good."""
    if any(
        record.asked or record.state in _IN_FLIGHT or draft.now < record.busy_until for record in draft.nodes.values()
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


def _soaking(draft: Draft) -> None:
    """K passes in a row of every confirmed node of the wave and of the wave gates, a round every ``soak / K`` seconds.

    A wave of which no node is confirmed has nothing to tell: it is over, but for its hold.
    """
    order, state = draft.state.order, draft.state
    wave = order.waves[state.wave]
    if state.gate_asked or any(draft.nodes[name].asked or draft.nodes[name].state in _IN_FLIGHT for name in wave.nodes):
        return
    confirmed = [name for name in wave.nodes if draft.nodes[name].state is NodeState.CONFIRMED]
    short = [name for name in confirmed if draft.nodes[name].passes < order.passes]
    gates_short = order.wave_gates and confirmed and state.gate_passes < order.passes
    if not short and not gates_short:
        _steady(draft, confirmed)
    elif state.round >= MOST_ROUNDS * order.passes and state.paused is None:
        draft.halt(
            Ending.HALTED, "never-steady", f"{len(short)} nodes never passed their gates {order.passes} times in a row"
        )
    elif state.now >= state.round_at:
        _round(draft, short, every=wave.soak / order.passes)


def _steady(draft: Draft, confirmed: list[str]) -> None:
    """The wave has passed. Held or paused, its gates go on being asked: a night is long."""
    state = draft.state
    wave = state.order.waves[state.wave]
    if wave.hold and state.promoted < state.wave and state.paused is None:
        draft.set(paused=Pause("the playbook", f"holds after wave {wave.name}", state.now, held=True))
        draft.set(round_at=state.now + watch_every(len(confirmed)))
    elif state.paused is None:
        draft.next_wave()
    elif confirmed and state.now >= state.round_at:
        _round(draft, confirmed, every=watch_every(len(confirmed)))


def watch_every(nodes: int) -> float:
    """Seconds between two rounds over a wave of so many nodes that has passed and waits."""
    return max(WATCH_EVERY, nodes * WATCH_EACH)


def _round(draft: Draft, names: list[str], *, every: float) -> None:
    draft.set(round=draft.state.round + 1, round_at=draft.state.now + every)
    for name in names:
        draft.ask(name, Verb.MEASURE)
    if draft.state.order.wave_gates:
        draft.judge_wave()


def _halting(draft: Draft) -> None:
    waiting = (
        record.state in _IN_FLIGHT or record.asked or _is_to_return(draft, record) for record in draft.nodes.values()
    )
    ending = draft.state.halt.ending if draft.state.halt else Ending.DONE
    if ending in (Ending.CLAIMED, Ending.PREFLIGHT) or not any(waiting):
        draft.set(phase=Phase.CLOSING)


def _is_to_return(draft: Draft, record: NodeRecord) -> bool:
    """Healthy, and to be taken back for others' sake or the operator's; not any more once he has interrupted that."""
    interrupted = draft.state.halt is not None and draft.state.halt.ending is Ending.INTERRUPTED
    return record.want_back and record.state is NodeState.CONFIRMED and not interrupted


def _closing(draft: Draft) -> None:
    """Every claimed node is asked once to be left as found; who does not answer keeps its claim and is told so."""
    if draft.state.ending is None:
        halt = draft.state.halt
        draft.set(ending=halt.ending if halt else Ending.DONE)
        for name, record in tuple(draft.nodes.items()):
            if record.asked is None and not _out_of_reach(draft, record):
                draft.ask(name, Verb.CLEAN)
    if draft.state.wave_is_opening or draft.state.lifting:
        return  # what is being silenced is to be lifted too
    if draft.state.silences:
        draft.lift_silences()
    elif not _outstanding(draft):
        draft.set(phase=Phase.ENDED)


def _out_of_reach(draft: Draft, record: NodeRecord) -> bool:
    """Nodes that do not answer; and when another run has some of ours, those, and what is left to their guards."""
    if draft.state.ending is Ending.CLAIMED and (record.reference in FENCES or record.state in _IN_FLIGHT):
        return True
    return record.state in (NodeState.UNREACHABLE, NodeState.UNKNOWN)


def _ended(draft: Draft) -> None:
    """Nothing more to do."""


_PHASES = {
    Phase.OPENING: _opening,
    Phase.RUNNING: _running,
    Phase.SOAKING: _soaking,
    Phase.HALTING: _halting,
    Phase.CLOSING: _closing,
    Phase.ENDED: _ended,
}


def _outstanding(draft: Draft) -> bool:
    return any(record.asked for record in draft.nodes.values())


def _retries(draft: Draft) -> None:
    """Read again who does not speak; give up whose guard must long have fired."""
    for name, record in tuple(draft.nodes.items()):
        if record.state is not NodeState.UNKNOWN or record.asked or draft.state.phase in (Phase.CLOSING, Phase.ENDED):
            continue
        if record.reference in FENCES and draft.state.phase is Phase.OPENING:
            continue  # it did speak: all are claimed again, with a higher token, once all have been heard
        if draft.now > record.since + draft.patience:
            draft.meet(name, Sharp.GIVEN_UP, record.reference, record.message)
        elif draft.now >= record.retry_at:
            draft.ask(name, Verb.READ)


def _releases(draft: Draft) -> None:
    """Restarts, as the pace allows: first the sick that go back, then the healthy that go back, then the wave."""
    if draft.state.phase in (Phase.OPENING, Phase.CLOSING, Phase.ENDED):
        return
    allowed = pace_allows(draft.state.started, draft.state.order.limits, draft.now)
    sick = [name for name, record in draft.nodes.items() if record.state is NodeState.REVERTING and not record.asked]
    for name in sick[:allowed]:
        draft.ask(name, Verb.REVERT)
    allowed -= len(sick[:allowed])
    allowed -= _return_the_healthy(draft, allowed)
    if draft.state.phase is Phase.RUNNING and allowed > 0 and draft.state.paused is None:
        _release_the_wave(draft, allowed)


def _return_the_healthy(draft: Draft, allowed: int) -> int:
    """A rehearsal keeps the limits of a change: only a way back in earnest may bend them."""
    healthy = [name for name, record in draft.nodes.items() if _is_to_return(draft, record) and not record.asked]
    if not healthy or allowed <= 0 or draft.state.paused is not None:
        return 0
    rehearsing = [name for name in healthy if draft.nodes[name].rehearsal is Rehearsal.BACK]
    who = who_may_go if rehearsing else who_may_return
    candidates, capacity = who(draft.state.order, draft.nodes, rehearsing or healthy, draft.now)
    going = candidates[: min(capacity, allowed)]
    for name in going:
        draft.meet(name, Trigger.TAKE_BACK)
        draft.ask(name, Verb.REVERT)
    return len(going)


def _release_the_wave(draft: Draft, allowed: int) -> None:
    if draft.state.gate_asked or _is_to_open(draft):
        return  # nothing of a wave is touched before its baseline was taken
    wave = draft.state.order.waves[draft.state.wave]
    pending = [n for n in wave.nodes if draft.nodes[n].state is NodeState.PENDING and not draft.nodes[n].asked]
    if not pending:
        return
    candidates, capacity = who_may_go(draft.state.order, draft.nodes, pending, draft.now)
    for name in candidates[: min(capacity, allowed)]:
        draft.meet(name, Trigger.RELEASED)
