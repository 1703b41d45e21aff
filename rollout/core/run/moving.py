"""What moves in a run: a node by the table of transitions, with the reason and its next question; the run to a halt, or
to another wave.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rollout.core.model.playbook import Cause, RevertScope
from rollout.core.run import drains
from rollout.core.run.events import NOT_REVERTED_YET, Trigger
from rollout.core.run.facts import BROKEN, Count, NodeList
from rollout.core.run.layout import place_of
from rollout.core.run.state import Ending, Goal, Halt, NodeRecord, NodeState, Phase, Rehearsal, Verb
from rollout.core.run.state_builder import StateBuilder, ask
from rollout.core.run.transitions import Move, Next, ResolvedTrigger, move, resolve_trigger

MOST_ATTEMPTS = 3
"""How often a node is tried if its connection drops before anything happened."""

READ_EVERY = 2.0
"""Seconds between two reads of a node that does not answer."""

GRACE = 60.0
"""Seconds after the guard's time until a node without an answer is given up: unreachable, pending recovery."""

ENGINE_PATIENCE = 60.0
"""Seconds for which an engine that is away charges no node: as long as a journal that is away is waited for."""

_ASKS = {
    Next.APPLY: Verb.APPLY, Next.DRAIN: Verb.DRAIN, Next.MEASURE: Verb.MEASURE, Next.CONFIRM: Verb.CONFIRM,
    Next.READ: Verb.READ,
}  # fmt: skip


def patience(builder: StateBuilder) -> float:
    """Seconds after which a node is given up that does not answer or cannot be reverted."""
    return builder.state.order.guard + GRACE


def transition(
    builder: StateBuilder, name: str, trigger: Trigger | ResolvedTrigger, reference: str = "", message: str = ""
) -> None:
    """Move a node by the table, record why, and send the next verb. Its last one is answered, or was given up."""
    record = builder.record(name)
    away_at = (record.away_at or builder.now) if trigger is Trigger.AWAY else 0.0
    is_waited_for = trigger is Trigger.AWAY and builder.now - away_at < ENGINE_PATIENCE
    resolved = _resolved(builder, record, trigger, reference)
    if is_waited_for and record.state is NodeState.PENDING:
        resolved = ResolvedTrigger.WAITED_FOR
    found = move(record.state, resolved)
    changes: dict[str, Any] = {
        "asked": None,
        "state": found.to,
        "cause": _charge(record, found),
        "owed": found.owed or (record.owed and _is_open(builder, record, found.to)),
    }
    changes |= _recorded(record, resolved, trigger, reference, message)
    if found.to is not record.state:
        changes |= _entering(builder, name, record, found.to)
    if record.state in BROKEN and record.cordoned:  # others may have got the room of its cordon
        changes["uncordons"] = max(record.uncordons, 1)
    if found.to not in _NOTHING_NEW:
        changes["shown"] = found.to is NodeState.CONFIRMED
    if _counts_anew(record, trigger, found.to):
        changes["since"] = builder.now
    if trigger is Trigger.RESUMED:
        changes["armed_at"] = 0.0
    if trigger is Trigger.VOIDED or resolved is ResolvedTrigger.NOT_APPROVED:
        changes["touched"] = False
    if resolved is ResolvedTrigger.REHEARSED:
        changes["rehearsal"] = Rehearsal.DONE
    changes["away_at"] = away_at
    if resolved in (Trigger.UNREACHED, Trigger.LOST) and record.state is NodeState.UNKNOWN and not is_waited_for:
        changes["reads"] = record.reads + 1
    builder.put(name, **changes)
    _follow(builder, name, found.then)


def _resolved(
    builder: StateBuilder, record: NodeRecord, trigger: Trigger | ResolvedTrigger, reference: str
) -> Trigger | ResolvedTrigger:
    """The trigger as the table knows it. A node that has had its time is given up."""
    found = (
        resolve_trigger(trigger, reference, record, builder.state.order.goal)
        if isinstance(trigger, Trigger)
        else trigger
    )
    if found is ResolvedTrigger.UNFINISHED and record.owed and builder.now > record.since + patience(builder):
        return ResolvedTrigger.GIVEN_UP
    return ResolvedTrigger.STILL_ARMED if _is_still_armed(builder, record, found) else found


def _recorded(
    record: NodeRecord,
    resolved: Trigger | ResolvedTrigger,
    trigger: Trigger | ResolvedTrigger,
    reference: str,
    message: str,
) -> dict[str, Any]:
    """The reference and the message of a move."""
    if resolved is ResolvedTrigger.TAKEN_BACK_BY_OTHERS:
        return {"reference": resolved, "message": "the change was reverted, but not by this run"}
    if resolved is Trigger.UNTOUCHED and record.state is NodeState.CONFIRMED:
        return {
            "reference": drains.RECEIPT_GONE,
            "message": "the node no longer has the receipt of its confirmed change",
        }
    if resolved is ResolvedTrigger.STILL_ARMED:
        return {"reference": resolved, "message": _still_armed(record, trigger)}
    return _why(record, trigger, reference, message)


def _is_open(builder: StateBuilder, record: NodeRecord, to: NodeState) -> bool:
    """Whether something pending is still so: its revert, or its cordon."""
    if to is NodeState.CONFIRMED and record.want_back and _goes_back(builder, record):
        return True
    return to not in _AT_PEACE or bool(drains.left_behind(record))


def _is_still_armed(builder: StateBuilder, record: NodeRecord, found: Trigger | ResolvedTrigger) -> bool:
    """Whether it reports a change that its guard, or a revert, must long have ended."""
    if record.state is NodeState.REVERTING:
        return found in _NOT_REVERTED and builder.now > record.since + patience(builder)
    if record.state is NodeState.UNKNOWN and record.want_back and record.owed and found in _NOT_REVERTED:
        # Each revert was lost. One may last longer than a short guard, so there is time for more than one.
        return builder.now > record.since + MOST_ATTEMPTS * patience(builder)
    armed = found is Trigger.ARMED and record.armed_at > 0
    return armed and builder.now > record.armed_at + patience(builder)


_NOT_REVERTED = frozenset({Trigger.ARMED, Trigger.CONFIRMED, ResolvedTrigger.HELD})


def _still_armed(record: NodeRecord, trigger: Trigger | ResolvedTrigger) -> str:
    before = f"; before: {record.message} [{record.reference}]" if record.message else ""
    return f"it still reports {trigger}, though its guard or a revert must have ended that{before}"


def _entering(builder: StateBuilder, name: str, record: NodeRecord, to: NodeState) -> dict[str, Any]:
    """What else changes when a node enters a state. It is drained, if at all, as long as it is ``applying``."""
    if record.draining is not None:
        return {"draining": None, **_entering(builder, name, replace(record, draining=None), to)}
    settle = builder.now + builder.state.order.nodes[name].settle
    if to is NodeState.APPLIED or (to is NodeState.REVERTED and record.state is not NodeState.PENDING):
        known = record.armed_at if record.state is NodeState.UNKNOWN else 0.0
        armed_at = (known or builder.now) if to is NodeState.APPLIED else 0.0
        orphaned = record.orphaned and to is NodeState.APPLIED
        return {"busy_until": settle, "orphaned": orphaned, "reads": 0, "armed_at": armed_at}
    if to is NodeState.PENDING and record.rehearsal is Rehearsal.BACK:
        return {"busy_until": settle}
    if to is NodeState.APPLYING:
        # From here on this controller is responsible for it.
        return {"orphaned": False, "accepted": False, "armed_at": 0.0}
    if to is NodeState.REVERTING:
        return {"want_back": True}
    if to is NodeState.CONFIRMED:
        return {
            "orphaned": False,
            "reads": 0,
            "passes": 0,
            "want_back": record.want_back and _goes_back(builder, record),
        }
    if to is NodeState.UNKNOWN:
        return {"reads": 0}
    if to is NodeState.GONE:
        return {"want_back": False, "rehearsal": not_begun(record.rehearsal), "pulling": None, "unseen": None}
    return {}


def _goes_back(builder: StateBuilder, record: NodeRecord) -> bool:
    """Whether a confirmed node that was to be reverted still must be: not because of a halt that was accepted."""
    applying = builder.state.order.goal is Goal.APPLY and builder.state.halt is None
    unhealthy = record.cause not in (None, Cause.UNREACHABLE)
    return not applying or unhealthy or record.rehearsal is Rehearsal.BACK


def _follow(builder: StateBuilder, name: str, then: Next) -> None:
    """Does nothing when another run has nodes of ours: armed nodes are left to their guards."""
    if builder.state.halt is not None and builder.state.halt.ending is Ending.CLAIMED:
        return
    if then in _ASKS:
        ask(builder, name, _ASKS[then])
    elif then is Next.READ_LATER:
        builder.put(name, retry_at=builder.now + READ_EVERY)
    elif then is Next.RETRY:
        _retry(builder, name)


def _retry(builder: StateBuilder, name: str) -> None:
    record = builder.record(name)
    tried = record.attempt - (record.rehearsal is Rehearsal.DONE)
    if tried >= MOST_ATTEMPTS and not record.orphaned:
        builder.put(name, state=NodeState.UNREACHABLE, cause=Cause.UNREACHABLE, owed=True)
    else:
        builder.put(name, attempt=record.attempt + 1, want_back=False, orphaned=False, owed=False)
        builder.put(name, rehearsal=not_begun(record.rehearsal))


def not_begun(rehearsal: Rehearsal) -> Rehearsal:
    """The rehearsal of a node with nothing of it begun: ``BACK`` becomes ``NONE``, and is set again in the node's turn."""
    return Rehearsal.NONE if rehearsal is Rehearsal.BACK else rehearsal


def _why(record: NodeRecord, trigger: Trigger | ResolvedTrigger, reference: str, message: str) -> dict[str, Any]:
    """The reference and message of an answer. A receipt has no reason: then what is known from before counts."""
    if trigger in _GOOD_NEWS:
        return {}
    if not message and trigger is Trigger.TAKEN_BACK_ALONE:
        before = f": {record.message} [{record.reference}]" if record.message else ""
        message = f"not confirmed in time, so the node reverted the change{before}"
    if not message and trigger is Trigger.TAKEN_BACK_SICK and record.reference in NOT_REVERTED_YET:
        return {"message": f"reverted by now; before: {record.message}"}
    return {"reference": reference, "message": message}


def _counts_anew(record: NodeRecord, trigger: Trigger | ResolvedTrigger, to: NodeState) -> bool:
    """Whether a node's time starts again. A node pending recovery changes state without a new start, so that retries end.

    A new controller gives every node that it must ask the full time: no controller has asked since the last one died.
    """
    if trigger is Trigger.RESUMED:
        return to is NodeState.UNKNOWN
    return to is not record.state and not (record.owed and {record.state, to} <= _GOING_BACK)


def _charge(record: NodeRecord, found: Move) -> Cause | None:
    """A charge stays, but a node that answers again is no longer unreachable."""
    if record.cause is Cause.UNREACHABLE and found.to in _ANSWERING:
        return found.charge
    return record.cause or found.charge


_GOOD_NEWS = frozenset(
    {
        Trigger.RELEASED, Trigger.UNTOUCHED, Trigger.VOIDED, Trigger.ARMED, Trigger.CONFIRMED, Trigger.TAKEN_BACK_ASKED,
        Trigger.GATES_PASSED, Trigger.TAKE_BACK, Trigger.CLEANED, Trigger.RESUMED, Trigger.RETURNED, Trigger.PULLING, Trigger.UNSEEN,
        Trigger.DRAINING, Trigger.DRAINED, ResolvedTrigger.TO_DRAIN, ResolvedTrigger.EMPTY_AND_PULLING,
    }
)  # fmt: skip
"""Triggers with messages that do not replace the recorded message of the node's last failure."""

_NOTHING_NEW = frozenset({NodeState.UNKNOWN, NodeState.UNREACHABLE, NodeState.GONE})
"""States that do not say whether the node has its change."""

_GOING_BACK = {NodeState.UNKNOWN, NodeState.CONFIRMED, NodeState.REVERTING}
_UNTOUCHED = frozenset({NodeState.PENDING, NodeState.REFUSED, NodeState.SKIPPED, NodeState.GONE})
_ANSWERING = _UNTOUCHED | {NodeState.APPLIED, NodeState.CONFIRMED}
_AT_PEACE = _UNTOUCHED | {NodeState.CONFIRMED, NodeState.REVERTED}


# A run halts: by a budget, an operator, or another run that has its nodes. Nodes to revert are marked.


def halt(
    builder: StateBuilder, ending: Ending, reference: str, message: str, revert: RevertScope | None = None
) -> None:
    """Release nothing more; mark the nodes to revert: by ``revert``, or as set in the playbook.

    A takeover by another run ends a halting run, too. A rehearsal in progress becomes a plain revert.
    """
    if builder.state.halt is not None and (ending is not Ending.CLAIMED or builder.state.halt.ending is Ending.CLAIMED):
        return
    builder.set(halt=Halt(ending, reference, message, builder.now), phase=Phase.HALTING, paused=None, closed=None)
    end_rehearsals(builder)
    if ending is Ending.HALTED and builder.state.order.goal is Goal.APPLY:
        _mark_for_return(builder, revert or builder.state.order.on_failure)


def end_rehearsals(builder: StateBuilder) -> None:
    """Confirmed nodes that were to be rehearsed keep their change. Nodes that are reverting stay reverted: a resume
    changes them again.
    """
    for name, record in builder.nodes.those(builder.nodes.listed(NodeList.REHEARSING)):
        stays = record.state is NodeState.CONFIRMED
        builder.put(name, rehearsal=Rehearsal.NONE, want_back=record.want_back and not stays)


def _mark_for_return(builder: StateBuilder, scope: RevertScope) -> None:
    if scope is RevertScope.NODE:
        return
    for name, record in tuple(builder.nodes.items()):
        here = builder.state.order.nodes[name].wave == builder.state.wave or scope is RevertScope.RUN
        if here and record.state in _TOUCHED:
            builder.put(name, want_back=True, reference="taken-back-with-others", message="the run halted")


def fenced(builder: StateBuilder, name: str, reference: str, message: str) -> None:
    """The node reports that another run has it. While opening, a higher token may still win; later a change must stop.

    A rollback continues without the node unless most nodes report this. One false report must not keep the change on
    all others. A node that another run does have refuses us by itself.
    """
    builder.put(name, reference=reference, message=message, away_at=0.0)
    if builder.state.phase is Phase.OPENING:
        return
    if builder.state.order.goal is Goal.APPLY or is_taken_over(builder):
        halt(builder, Ending.CLAIMED, reference, f"{name}: {message}")
    else:
        transition(builder, name, ResolvedTrigger.LEFT_TO_OTHERS, reference, message)


def is_taken_over(builder: StateBuilder) -> bool:
    """Whether most nodes of the run report that another one has them."""
    return 2 * builder.nodes.count(Count.FENCED) > len(builder.nodes)


_TOUCHED = frozenset({NodeState.APPLYING, NodeState.APPLIED, NodeState.CONFIRMED, NodeState.UNKNOWN})


# Which wave is worked on.


def following_wave(builder: StateBuilder) -> int:
    """The next wave that has not passed yet, or has work again."""
    following = builder.state.wave + 1
    while following < builder.state.reached and not _has_open(builder, following):
        following += 1
    return following


def next_wave(builder: StateBuilder) -> None:
    following = following_wave(builder)
    reached = max(builder.state.reached, following)
    builder.set(wave=following, reached=reached, phase=Phase.RUNNING, round=0, gate_passes=0)


def first_open_wave(builder: StateBuilder) -> None:
    """After a resume: the first wave with work left, at most the current one, which has not passed yet."""
    first = next((index for index in range(builder.state.wave) if _has_open(builder, index)), builder.state.wave)
    builder.set(wave=first, round=0, gate_passes=0)


def _has_open(builder: StateBuilder, wave: int) -> bool:
    return builder.nodes.count(Count.OPEN, place_of(wave)) > 0
