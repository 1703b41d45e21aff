"""The machine of one node: everything that changes a node's state is in this file.

Theory. A node is in one state (the union ``State``). What it answers, or what the run decides, is *heard*; the function of
its state says the ``Move``: the next state, what to ask of the node next, and what the node is charged for. What is not
in the function is impossible and raises: to ignore it would hide a bug. ``moved`` then writes what every move entails.

Eleven rules shape the functions:

* An answer with the state of the transaction (``armed``, ``confirmed``, ``reverted``, ``untouched``) is believed over
  our own record: it was read from the node.
* No answer proves nothing: after ``unreached`` or ``lost`` the node is ``unknown``. It is read until it answers, or until
  its guard must long have fired; then it is ``unreachable`` with a pending recovery (``owed``).
* An apply that did not arrive is nobody's fault. The node is pending again, without a charge, once a read has found it untouched
  and has made the node refuse that apply (``voided``): it may still arrive. After ``MOST_ATTEMPTS`` the node is charged.
* A node that another run has changed since people approved the plan is ``refused``, charged as failed, wherever it would be
  changed. Elsewhere its answer says only that it has no change of ours.
* An engine that is away says nothing of its nodes: for ``ENGINE_PATIENCE`` seconds its answer charges none of them. A run that
  opens or is resumed meanwhile goes on claiming them, and starts nothing.
* No node stays armed: one that reports so long after its guard must have fired is ``failed`` with a pending recovery. So is
  a node that answers each revert as if nobody had asked for one.
* A revert is always completed: if its controller dies, the next one continues it, for as long as the node is read.
  A node with a revert that cannot complete (``stuck``) is ``failed`` with a pending recovery. Its guard continues, and a new
  controller reads it.
* A node that pulls images, or has no baseline, was not changed: its change is postponed (``postponed``).
* A node that left the inventory before its change, or after its confirm, is ``gone``. If it is back, a resume reads it.
* A node being drained is ``applying`` and not changed yet: ``drains`` decides when it is asked again and when it is given up.
* An unhealthy node is reverted at once (``reverting``). A healthy node that must be reverted waits, ``confirmed``, for the limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, assert_never

from rollout.core.model.approvals import USED
from rollout.core.model.freeze import FROZEN
from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import DEFAULT_PULLS, Cause, PullsInFlight
from rollout.core.run import drains, postponed, shown
from rollout.core.run.events import FENCES, NOT_REVERTED_YET
from rollout.core.run.events import Trigger as On
from rollout.core.run.facts import BROKEN
from rollout.core.run.retries import resume_tries_again
from rollout.core.run.state import (
    Applying,
    Armed,
    Confirmed,
    Drained,
    Draining,
    Failed,
    Goal,
    Gone,
    NodeRecord,
    NodeState,
    Pending,
    PostponedFor,
    Refused,
    Rehearsal,
    Reverted,
    Reverting,
    State,
    Unknown,
    Unreachable,
    Untouched,
    altered,
)

ANOTHER_MACHINE = "machine-id-changed"
"""Reference with which a node refuses a change that was planned for another machine."""

MOST_ATTEMPTS = 3
"""How often a node is tried if its connection drops before anything happened."""

READ_EVERY = 2.0
"""Seconds between two reads of a node that does not answer."""

GRACE = 60.0
"""Seconds after the guard's time until a node without an answer is given up: unreachable, pending recovery."""

ENGINE_PATIENCE = 60.0
"""Seconds for which an engine that is away charges no node: as long as a journal that is away is waited for."""


class Decision(StrEnum):
    """More decisions of the run about a node than those in ``Trigger``. Never in a journal."""

    DRAIN = "drain"  # released, and to be drained first
    RESTART_EMPTY = "restart-empty"  # drained, and now changed
    STOP_DRAINING = "stop-draining"  # nothing is released any more: a node being drained is left unchanged
    GIVE_UP = "give-up"  # read long enough
    LEAVE_TO_OTHERS = "leave-to-others"  # a rollback continues without it: it reports that another run has it
    ACCEPT_UNREACHABLE = "accept-unreachable"  # it did not answer when a rollback opened: that was not the rollback


@dataclass(frozen=True, slots=True)
class Heard:
    """What a node answered, or what the run decided, and why. ``images`` (pulling) and ``again`` (draining) as in ``Answered``."""

    on: On | Decision
    reference: str = ""
    message: str = ""
    images: tuple[str, ...] = ()
    again: float = 0.0


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a move may depend on outside the node. Times in seconds.

    * ``patience``: how long a node may take that does not answer or cannot be reverted.
    * ``settle``, ``drain``: of the node, as in its order.
    * ``halted``: the run has halted; ``claimed``: because another run has its nodes.
    * ``soaks``: whether the wave at work has a soak.
    """

    now: float
    goal: Goal
    patience: float
    settle: float = 0.0
    drain: float = 0.0
    pulls: PullsInFlight = DEFAULT_PULLS
    halted: bool = False
    claimed: bool = False
    soaks: bool = True


class Next(StrEnum):
    """What to do with the node after the move."""

    NOTHING = "nothing"
    APPLY = "apply"
    DRAIN = "drain"
    MEASURE = "measure"
    CONFIRM = "confirm"
    REVERT = "revert"  # queued: the pace decides when it starts
    READ = "read"
    READ_LATER = "read-later"
    RETRY = "retry"  # the transaction is over: a new attempt is a new transaction


@dataclass(frozen=True, slots=True)
class Move:
    """``owed``: it is pending recovery. ``why``: reference and message; ``None``: those heard. ``also``: other fields of the record."""

    to: State
    then: Next = Next.NOTHING
    charge: Cause | None = None
    owed: bool = False
    why: tuple[str, str] | None = None
    also: Mapping[str, Any] = field(default_factory=dict)


class IllegalMoveError(Exception):
    """A node in this state cannot be heard so: a bug of rollout, never of the node."""


def move(node: NodeRecord, heard: Heard, run: Circumstances) -> Move:
    """What the node does. ``IllegalMoveError``: it cannot be heard so in its state."""
    chosen = _move(node, heard, run)
    if chosen is None:
        raise IllegalMoveError(f"a node that is {node.state} cannot take {heard.on!r}")
    return chosen


def _move(node: NodeRecord, heard: Heard, run: Circumstances) -> Move | None:
    at = node.current
    match at:
        case Pending():
            return _pending(at, heard, run)
        case Draining():
            return _draining(node, at, heard, run)
        case Drained():
            return _drained(at, heard, run)
        case Applying():
            return _applying(node, at, heard, run)
        case Armed():
            return _armed(node, at, heard, run)
        case Confirmed():
            return _confirmed(node, at, heard, run)
        case Reverting():
            return _reverting(node, heard, run)
        case Unknown():
            return _unknown(node, at, heard, run)
        case Unreachable():
            return Move(Unknown(), Next.READ) if heard.on is On.RESUMED else _at_rest(node, heard)
        case Failed():  # its guard may have completed its revert since
            asked_again = node.owed and heard.on is On.RESUMED
            return Move(Unknown(), Next.READ, owed=True) if asked_again else _at_rest(node, heard)
        case Gone():
            return Move(Unknown(), Next.READ) if heard.on is On.RETURNED else _at_rest(node, heard)
        case Reverted() | Refused() | Untouched():
            return _at_rest(node, heard)
        case _:
            assert_never(at)


def _at_rest(node: NodeRecord, heard: Heard) -> Move | None:
    """It stays as it is: a node that left has no change of ours that anybody could revert."""
    return Move(node.current) if heard.on in (On.RESUMED, On.GONE) else None


def _pending(at: Pending, heard: Heard, run: Circumstances) -> Move | None:
    """The opening claim, then the release."""
    match heard.on:
        case On.UNTOUCHED:
            return Move(Pending(at.postponed))
        case On.RELEASED:
            return Move(Applying(postponed=at.postponed), Next.APPLY)
        case Decision.DRAIN:
            return Move(Draining(run.now, run.now), Next.DRAIN)
        case On.RESUMED:
            return Move(Pending(at.postponed), Next.READ)
        case On.AWAY if run.now - (at.away_since or run.now) < ENGINE_PATIENCE:
            return Move(Pending(at.postponed, at.away_since or run.now), Next.READ_LATER)
        case On.UNREACHED | On.LOST | On.AWAY:
            return Move(Unreachable(), charge=Cause.UNREACHABLE, owed=True)
        case On.BUSY:
            return Move(Unknown(), Next.READ_LATER)
        case On.ARMED:
            return Move(Armed(run.now), Next.MEASURE)
        case On.CONFIRMED:
            return Move(Confirmed())
        case On.REVERTED_UNHEALTHY:
            return Move(Reverted(), charge=Cause.UNHEALTHY)
        case On.REVERTED_BY_GUARD | On.REVERTED_ON_REQUEST:
            return Move(Pending(at.postponed), Next.RETRY)
        case On.STILL_UNHEALTHY:
            return Move(Failed(), charge=Cause.UNHEALTHY)
        case On.STUCK:
            return Move(Failed(), charge=Cause.UNHEALTHY, owed=True)
        case On.REFUSED:
            return Move(Refused(), charge=Cause.FAILED)
        case On.GONE:
            return Move(Gone())
    return None


def _draining(node: NodeRecord, at: Draining, heard: Heard, run: Circumstances) -> Move | None:
    """Unchanged, except for a cordon and its pods. Each round reads the node first: it may answer as one that is being changed."""
    match heard.on:
        case On.DRAINING:
            left = drains.left(run.drain, at.since, run.now)
            wait = max(min(heard.again, left) if left else heard.again, drains.SOONEST)
            return Move(replace(at, again=run.now + wait, waits=heard.message))
        case On.DRAINED:
            return Move(Drained(), also={"drained_seconds": run.now - at.since})
        case Decision.STOP_DRAINING:
            return Move(Pending(), also={"to_revert": False})
        case On.PULLING | On.UNSEEN:
            return None
    return _applying(node, Applying(), heard, run)


def _drained(at: Drained, heard: Heard, run: Circumstances) -> Move | None:
    """Empty and cordoned: it is asked nothing before its restart."""
    match heard.on:
        case Decision.RESTART_EMPTY:  # from here on it is being changed
            return Move(Applying(drained=True, postponed=at.postponed), Next.APPLY, also={"since": run.now})
        case Decision.STOP_DRAINING:
            return Move(Pending(), also={"to_revert": False})
        case On.RESUMED:
            return Move(Unknown(), Next.READ)
    return None


def _applying(node: NodeRecord, at: Applying, heard: Heard, run: Circumstances) -> Move | None:
    """The apply was sent."""
    match heard.on:
        case On.ARMED if node.to_revert:
            return Move(Reverting(), Next.REVERT)
        case On.ARMED:
            return Move(Armed(run.now), Next.MEASURE)
        case On.PULLING:
            wait = postponed.again(at.postponed, PostponedFor.PULLS, run.now, heard.images)
            if postponed.is_left_alone(wait, run.pulls, run.now):
                why = (postponed.PULLS_IN_FLIGHT, postponed.pulls_words(heard.images))
                return Move(Refused(wait), why=why, also={"to_revert": False})
            return Move(Drained(wait) if at.drained else Pending(wait), also={"to_revert": False})
        case On.UNSEEN:
            wait = postponed.again(at.postponed, PostponedFor.BASELINE, run.now)
            if postponed.baseline_is_over(wait, run.now):
                return Move(Refused(wait), why=(heard.reference, heard.message), also={"to_revert": False})
            return Move(Drained(wait) if at.drained else Pending(wait), also={"to_revert": False})
        case On.REFUSED if heard.reference == FROZEN:  # not its fault, and it keeps its files
            return Move(Refused())
        case On.REFUSED if heard.reference == ANOTHER_MACHINE:
            return Move(Gone())
        case On.REFUSED | On.UNTOUCHED:
            return Move(Refused(), charge=Cause.FAILED)
        case On.NOT_DRAINED:
            return Move(Refused())
        case On.BUSY:
            return Move(Unknown(), Next.READ_LATER)
        case On.CONFIRMED:
            return Move(Confirmed())
        case On.REVERTED_UNHEALTHY:
            return Move(Reverted(), charge=Cause.UNHEALTHY)
        case On.REVERTED_BY_GUARD | On.REVERTED_ON_REQUEST:
            return Move(Reverted(), charge=Cause.FAILED)
        case On.STILL_UNHEALTHY:
            return Move(Failed(), charge=Cause.UNHEALTHY)
        case On.STUCK:
            return Move(Failed(), charge=Cause.UNHEALTHY, owed=True)
        case On.UNREACHED | On.LOST | On.AWAY | On.RESUMED:
            return Move(_silent(heard, run), Next.READ)
        case On.GONE:
            return Move(Gone())
    return None


def _armed(node: NodeRecord, at: Armed, heard: Heard, run: Circumstances) -> Move | None:
    """The change is in force and its guard is armed: the node gates, then the confirm."""
    match heard.on:
        case On.ARMED | On.GATES_PASSED if node.to_revert:
            return Move(Reverting(), Next.REVERT)
        case On.GATES_PASSED:
            return Move(at, Next.CONFIRM)
        case On.GATES_FAILED:
            return Move(Reverting(), Next.REVERT, charge=Cause.UNHEALTHY)
        case On.ARMED if run.now > at.since + run.patience:
            return _still_armed(node, heard)
        case On.ARMED:
            return Move(at, Next.MEASURE)
        case On.CONFIRMED:
            return Move(Confirmed(at.since))
        case On.GATES_UNKNOWN | On.BUSY | On.REFUSED | On.UNTOUCHED | On.UNREACHED | On.AWAY | On.GONE:
            return Move(_silent(heard, run, at.since), Next.READ_LATER)
        case On.LOST:
            return Move(_silent(heard, run, at.since), Next.READ)
        case On.RESUMED:
            return Move(Unknown(), Next.READ)
        case On.REVERTED_UNHEALTHY:
            return Move(Reverted(), charge=Cause.UNHEALTHY)
        case On.REVERTED_BY_GUARD if _is_orphan(node):
            return Move(Pending(), Next.RETRY)
        case On.REVERTED_BY_GUARD | On.REVERTED_ON_REQUEST:
            return Move(Reverted(), charge=Cause.FAILED)
        case On.STILL_UNHEALTHY:
            return Move(Failed(), charge=Cause.UNHEALTHY)
        case On.STUCK:
            return Move(Failed(), charge=Cause.UNHEALTHY, owed=True)
    return None


def _confirmed(node: NodeRecord, at: Confirmed, heard: Heard, run: Circumstances) -> Move | None:
    """The soak may still find it unhealthy, the run may still revert it."""
    match heard.on:
        case On.GATES_PASSED | On.CONFIRMED:
            return Move(at)
        case On.GATES_FAILED:
            return Move(Reverting(), Next.REVERT, charge=Cause.UNHEALTHY)
        case On.GATES_UNKNOWN:
            return Move(Unknown(armed_since=at.armed_since), Next.READ)
        case On.REVERT:
            return Move(Reverting(), Next.REVERT)
        case On.ARMED if node.to_revert:
            return Move(Reverting(), Next.REVERT)
        case On.ARMED:
            return Move(Armed(run.now), Next.MEASURE)
        case On.UNTOUCHED:
            return Move(Failed(), charge=Cause.FAILED, why=_RECEIPT_GONE)
        case On.REFUSED if heard.reference == USED:  # it has no change of ours
            return Move(Failed(), charge=Cause.FAILED, why=_RECEIPT_GONE)
        case On.BUSY | On.REFUSED | On.UNREACHED | On.LOST | On.AWAY:
            return Move(_silent(heard, run, at.armed_since), Next.READ_LATER)
        case On.REVERTED_ON_REQUEST if run.goal is Goal.APPLY and not node.to_revert:
            return Move(Reverted(), charge=Cause.FAILED, why=_BY_OTHERS)
        case On.REVERTED_UNHEALTHY | On.REVERTED_BY_GUARD | On.REVERTED_ON_REQUEST:
            return Move(Reverted())
        case On.STILL_UNHEALTHY:
            return Move(Failed(), charge=Cause.UNHEALTHY)
        case On.STUCK:
            return Move(Failed(), charge=Cause.UNHEALTHY, owed=True)
        case On.RESUMED:
            return Move(Confirmed(), Next.READ)
        case Decision.LEAVE_TO_OTHERS:
            return Move(Unreachable(), charge=Cause.UNREACHABLE, owed=True)
        case On.GONE:
            return Move(Gone())
    return None


def _reverting(node: NodeRecord, heard: Heard, run: Circumstances) -> Move | None:
    """Until its revert is complete, never forward."""
    match heard.on:
        case On.REVERTED_ON_REQUEST if node.rehearsal is Rehearsal.BACK:
            return Move(Pending(), Next.RETRY, also={"rehearsal": Rehearsal.DONE})
        case On.REVERTED_UNHEALTHY | On.REVERTED_BY_GUARD | On.REVERTED_ON_REQUEST | On.UNTOUCHED:
            return Move(Reverted())
        case On.STILL_UNHEALTHY:
            return Move(Failed(), charge=Cause.UNHEALTHY)
        case On.STUCK:
            return Move(Failed(), charge=Cause.UNHEALTHY, owed=True)
        case On.ARMED | On.CONFIRMED if run.now > node.since + run.patience:
            return _still_armed(node, heard)
        case On.ARMED | On.CONFIRMED:
            return Move(Reverting(), Next.REVERT)
        case On.REFUSED if heard.reference == "locked":  # its guard is reverting it
            return Move(Unknown(), Next.READ_LATER, owed=True)
        case On.REFUSED if heard.reference == USED:  # it has no change of ours
            return Move(Reverted())
        case On.REFUSED:
            return Move(Failed(), charge=Cause.FAILED, owed=True)
        case On.BUSY | On.UNREACHED | On.AWAY:
            return Move(_silent(heard, run), Next.READ_LATER, owed=True)
        case On.LOST | On.RESUMED:
            return Move(Unknown(), Next.READ, owed=True)
        case On.GONE | Decision.LEAVE_TO_OTHERS:
            return Move(Unreachable(), charge=Cause.UNREACHABLE, owed=True)
    return None


def _unknown(node: NodeRecord, at: Unknown, heard: Heard, run: Circumstances) -> Move | None:
    """It is read until it answers.

    A node that vanishes in flight is charged: nobody can tell a smaller fleet from a node that the change has ended.
    """
    match heard.on:
        case On.UNREACHED | On.LOST:
            return Move(Unknown(at.reads + 1, at.armed_since), Next.READ_LATER)
        case On.AWAY:
            since = at.away_since or run.now
            failed = run.now - since >= ENGINE_PATIENCE
            return Move(Unknown(at.reads + failed, at.armed_since, since), Next.READ_LATER)
        case On.ARMED | On.CONFIRMED if _reverts_again_and_again(node, run):
            return _still_armed(node, heard)
        case On.ARMED if node.to_revert:
            return Move(Reverting(), Next.REVERT, owed=True)
        case On.ARMED if at.armed_since and run.now > at.armed_since + run.patience:
            return _still_armed(node, heard)
        case On.ARMED:
            return Move(Armed(at.armed_since or run.now), Next.MEASURE)
        case On.CONFIRMED:
            return Move(Confirmed(at.armed_since))
        case On.BUSY if node.to_revert:  # its controller died in the revert: a read has the node's lock
            if node.owed and run.now > node.since + run.patience:
                return Move(Unreachable(), charge=Cause.UNREACHABLE, owed=True)
            return Move(Reverting(), Next.REVERT, owed=True)
        case On.VOIDED:
            return Move(Pending(), Next.RETRY, also={"touched": False})
        case On.UNTOUCHED if run.goal is Goal.REVERT:
            return Move(Untouched())
        case On.REFUSED if heard.reference == USED:
            return Move(Refused(), charge=Cause.FAILED, also={"touched": False})
        case On.BUSY | On.UNTOUCHED | On.REFUSED:
            return Move(replace(at, away_since=0.0), Next.READ_LATER)
        case On.REVERTED_UNHEALTHY:
            return Move(Reverted(), charge=Cause.UNHEALTHY)
        case On.REVERTED_BY_GUARD if _is_orphan(node):
            return Move(Pending(), Next.RETRY)
        case On.REVERTED_BY_GUARD:
            return Move(Reverted(), charge=Cause.UNREACHABLE)
        case On.REVERTED_ON_REQUEST if node.rehearsal is Rehearsal.BACK:
            return Move(Pending(), Next.RETRY, also={"rehearsal": Rehearsal.DONE})
        case On.REVERTED_ON_REQUEST if run.goal is Goal.APPLY and not node.to_revert:
            return Move(Reverted(), charge=Cause.FAILED, why=_BY_OTHERS)
        case On.REVERTED_ON_REQUEST:
            return Move(Reverted())
        case On.STILL_UNHEALTHY:
            return Move(Failed(), charge=Cause.UNHEALTHY)
        case On.STUCK:
            return Move(Failed(), charge=Cause.UNHEALTHY, owed=True)
        case On.RESUMED:
            return Move(Unknown(), Next.READ)
        case On.GONE if run.goal is Goal.APPLY and not node.touched:
            return Move(Gone())
        case On.GONE | Decision.GIVE_UP | Decision.LEAVE_TO_OTHERS:
            return Move(Unreachable(), charge=Cause.UNREACHABLE, owed=True)
        case Decision.ACCEPT_UNREACHABLE:
            return Move(Unreachable(), charge=Cause.UNREACHABLE, owed=True, also=_WAS_AWAY | {"since": run.now})
    return None


def _silent(heard: Heard, run: Circumstances, armed_since: float = 0.0) -> Unknown:
    """Its state is not known, from now on."""
    return Unknown(armed_since=armed_since, away_since=run.now if heard.on is On.AWAY else 0.0)


def _still_armed(node: NodeRecord, heard: Heard) -> Move:
    """It reports a change that its guard, or a revert, must long have ended."""
    before = f"; before: {node.message} [{node.reference}]" if node.message else ""
    why = f"it still reports {heard.on}, though its guard or a revert must have ended that{before}"
    return Move(Failed(), charge=Cause.FAILED, owed=True, why=("still-armed", why))


def _reverts_again_and_again(node: NodeRecord, run: Circumstances) -> bool:
    """Whether each revert was lost. One may last longer than a short guard, so there is time for more than one."""
    return node.to_revert and node.owed and run.now > node.since + MOST_ATTEMPTS * run.patience


def _is_orphan(node: NodeRecord) -> bool:
    """Left armed by a controller that died: the missing confirm is not the node's fault."""
    return node.orphaned and node.cause is None and not node.to_revert


_WAS_AWAY = {"cause": Cause.UNREACHABLE, "accepted": True}
_RECEIPT_GONE = (shown.RECEIPT_GONE, "the node no longer has the receipt of its confirmed change")
_BY_OTHERS = (shown.REVERTED_BY_OTHERS, "the change was reverted, but not by this run")


# What every move entails.


def moved(node: NodeRecord, heard: Heard, run: Circumstances) -> tuple[NodeRecord, Next]:
    """The node after its move, and what to ask it next. Its last question is answered, or given up.

    When another run has nodes of ours, nothing is asked: armed nodes are left to their guards.
    """
    chosen = move(node, heard, run)
    before, to = node.state, chosen.to.state
    changes: dict[str, Any] = {
        "asked": None,
        "current": chosen.to,
        "cause": _charge(node, chosen),
        "owed": chosen.owed or (node.owed and _is_open(node, to, run)),
    }
    changes |= _why(node, heard, chosen)
    if to is not before:
        changes |= _entering(node, to, run)
    if before in BROKEN and node.cordoned:  # others may have got the room of its cordon
        changes["uncordons"] = max(node.uncordons, 1)
    if to not in _NOTHING_NEW:
        changes["shown"] = to is NodeState.CONFIRMED
    if _counts_anew(node, heard, to):
        changes["since"] = run.now
    after = altered(node, {**changes, **chosen.also})
    if run.claimed:
        return after, Next.NOTHING
    if chosen.then is Next.READ_LATER:
        return altered(after, {"retry_at": run.now + READ_EVERY}), Next.NOTHING
    return (_retried(after), Next.NOTHING) if chosen.then is Next.RETRY else (after, chosen.then)


def _charge(node: NodeRecord, found: Move) -> Cause | None:
    """A charge stays, but a node that answers again is no longer unreachable."""
    if node.cause is Cause.UNREACHABLE and found.to.state in _ANSWERING:
        return found.charge
    return node.cause or found.charge


def _is_open(node: NodeRecord, to: NodeState, run: Circumstances) -> bool:
    """Whether something pending is still so: its revert, or its cordon."""
    if to is NodeState.CONFIRMED and node.to_revert and _is_to_be_reverted(node, run):
        return True
    return to not in _NOTHING_PENDING or bool(drains.left_behind(node))


def _why(node: NodeRecord, heard: Heard, found: Move) -> dict[str, Any]:
    """The reference and message of an answer. A receipt has no reason: then what is known from before counts."""
    if found.why is not None:
        reference, message = found.why
        return {"reference": reference, "message": message}
    if heard.on in _NOT_A_FAILURE:
        return {}
    message = heard.message
    if not message and heard.on is On.REVERTED_BY_GUARD:
        before = f": {node.message} [{node.reference}]" if node.message else ""
        message = f"not confirmed in time, so the node reverted the change{before}"
    if not message and heard.on is On.REVERTED_UNHEALTHY and node.reference in NOT_REVERTED_YET:
        return {"message": f"reverted by now; before: {node.message}"}
    return {"reference": heard.reference, "message": message}


def _entering(node: NodeRecord, to: NodeState, run: Circumstances) -> dict[str, Any]:
    """What else changes when a node enters a state."""
    settled = run.now + run.settle
    match to:
        case NodeState.APPLIED:
            return {"busy_until": settled}
        case NodeState.REVERTED if node.state is not NodeState.PENDING:
            return {"busy_until": settled, "orphaned": False}
        case NodeState.PENDING if node.rehearsal is Rehearsal.BACK:
            return {"busy_until": settled}
        case NodeState.APPLYING:  # from here on this controller is responsible for it
            return {"orphaned": False, "accepted": False}
        case NodeState.REVERTING:
            return {"to_revert": True}
        case NodeState.CONFIRMED:
            return {
                "orphaned": False,
                # where nothing is watched afterwards, the pass right before the confirm is the first of the K
                "passes": int(node.state is NodeState.APPLIED and not run.soaks),
                "to_revert": node.to_revert and _is_to_be_reverted(node, run),
            }
        case NodeState.GONE:
            return {"to_revert": False, "rehearsal": not_begun(node.rehearsal)}
    return {}


def _is_to_be_reverted(node: NodeRecord, run: Circumstances) -> bool:
    """Whether a confirmed node that was to be reverted still must be: not because of a halt that was accepted."""
    applying = run.goal is Goal.APPLY and not run.halted
    unhealthy = node.cause not in (None, Cause.UNREACHABLE)
    return not applying or unhealthy or node.rehearsal is Rehearsal.BACK


def _counts_anew(node: NodeRecord, heard: Heard, to: NodeState) -> bool:
    """Whether a node's time starts again. A node pending recovery changes state without a new start, so that retries end.

    A new controller gives every node that it must ask the full time: no controller has asked since the last one died.
    """
    if heard.on is On.RESUMED:
        return to is NodeState.UNKNOWN
    return to is not node.state and not (node.owed and {node.state, to} <= _GOING_BACK)


def _retried(node: NodeRecord) -> NodeRecord:
    """A new attempt, or a charge after too many."""
    tried = node.attempt - (node.rehearsal is Rehearsal.DONE)
    if tried >= MOST_ATTEMPTS and not node.orphaned:
        return altered(node, {"current": Unreachable(), "cause": Cause.UNREACHABLE, "owed": True})
    again: dict[str, Any] = {"attempt": node.attempt + 1, "to_revert": False, "orphaned": False, "owed": False}
    return altered(node, again | {"rehearsal": not_begun(node.rehearsal)})


def not_begun(rehearsal: Rehearsal) -> Rehearsal:
    """The rehearsal of a node with nothing of it begun: ``BACK`` becomes ``NONE``, and is set again in the node's turn."""
    return Rehearsal.NONE if rehearsal is Rehearsal.BACK else rehearsal


_NOT_A_FAILURE = frozenset(
    {
        On.RELEASED, On.UNTOUCHED, On.VOIDED, On.ARMED, On.CONFIRMED, On.REVERTED_ON_REQUEST, On.GATES_PASSED, On.REVERT,
        On.CLEANED, On.RESUMED, On.RETURNED, On.PULLING, On.UNSEEN, On.DRAINING, On.DRAINED, Decision.DRAIN,
        Decision.RESTART_EMPTY, Decision.ACCEPT_UNREACHABLE,
    }
)  # fmt: skip
"""What is heard without a reason: the recorded reason of the node's last failure stays."""

_NOTHING_NEW = frozenset({NodeState.UNKNOWN, NodeState.UNREACHABLE, NodeState.GONE})
"""States that do not say whether the node has its change."""

_GOING_BACK = {NodeState.UNKNOWN, NodeState.CONFIRMED, NodeState.REVERTING}
_UNCHANGED = frozenset({NodeState.PENDING, NodeState.REFUSED, NodeState.SKIPPED, NodeState.GONE})
_ANSWERING = _UNCHANGED | {NodeState.APPLIED, NodeState.CONFIRMED}
_NOTHING_PENDING = _UNCHANGED | {NodeState.CONFIRMED, NodeState.REVERTED}


# Where a node begins, and what a pause, another run and a new controller change.


def first(goal: Goal, at: float) -> NodeRecord:
    """A node when its run begins: a rollback reads first what it is to revert."""
    if goal is Goal.REVERT:
        return NodeRecord(Unknown(), to_revert=True, since=at)
    return NodeRecord(since=at)


def waits_anew(node: NodeRecord) -> NodeRecord:
    """The run had waited, and the node was not asked meanwhile: its change may be postponed for the full time again."""
    if isinstance(node.current, Pending) and node.current.postponed:
        return altered(node, {"current": replace(node.current, postponed=None)})
    return node


def fenced(node: NodeRecord, reference: str, message: str) -> NodeRecord:
    """It reports that another run has it. So it has answered: its engine is not away."""
    changes: dict[str, Any] = {"reference": reference, "message": message}
    if isinstance(node.current, Pending | Unknown):
        changes["current"] = replace(node.current, away_since=0.0)
    return altered(node, changes)


def resumed(node: NodeRecord, run: Circumstances, *, again: bool, accepted: bool) -> tuple[NodeRecord, Next]:
    """A new controller takes the node over.

    ``again``: what was reverted with others, or left alone without a fault of its own, is tried again. ``accepted``: the
    operator has accepted the halt, so what was charged for it is charged no more.
    """
    changes: dict[str, Any] = {
        "asked": None,
        "orphaned": True,
        "accepted": node.accepted or (accepted and bool(node.cause)),
    }
    if again and node.state is NodeState.REVERTED and node.cause is None:
        changes |= {"current": Pending(), "attempt": node.attempt + 1, "to_revert": False}
    elif again and node.state is NodeState.CONFIRMED:
        changes |= {"to_revert": False, "rehearsal": not_begun(node.rehearsal)}
    elif again and resume_tries_again(node):
        changes |= {"current": Pending(), "reference": "", "message": "", "to_revert": False}
    elif isinstance(node.current, Pending):
        changes |= {"current": Pending()}
    if changes.get("reference", node.reference) in FENCES:
        changes |= {"reference": "", "message": ""}  # its answer shows whether another run still has it
    return moved(altered(node, changes), Heard(On.RESUMED), run)
