"""The one table of a node's possible moves.

Theory. A node has a state; an answer from it, or a decision of the run, is a *trigger*. ``TABLE[state, trigger]`` is
the next state, what to ask of the node next, and what the node is charged for. A pair that is not in the table is
impossible and raises: to ignore it would hide a bug. Everything that changes a node's state is in this file.

Eleven rules shape the table:

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
* A node that pulls images was not changed: it is ``pending`` again, and ``pulls`` decides when it is asked again.
* The same holds for a node without a baseline; ``baselines`` decides for it.
* A node that left the inventory before its change, or after its confirm, is ``gone``. If it is back, a resume reads it.
* A node being drained is ``applying`` and not changed yet: ``drains`` decides when it is asked again and when it is given up.
* An unhealthy node is reverted at once (``reverting``). A healthy node that must be reverted waits, ``confirmed``, for the limits.

``resolve_trigger`` turns a raw trigger into one that the table knows, using a few facts of the record.
"""

from __future__ import annotations

from enum import StrEnum

from rollout.core.model.approvals import USED
from rollout.core.model.freeze import FROZEN
from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import Cause
from rollout.core.run.events import Trigger as On
from rollout.core.run.state import Goal, NodeRecord, Rehearsal
from rollout.core.run.state import NodeState as S

ANOTHER_MACHINE = "machine-id-changed"
"""Reference with which a node refuses a change that was planned for another machine."""


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
    to: S
    then: Next = Next.NOTHING
    charge: Cause | None = None
    owed: bool = False


class ResolvedTrigger(StrEnum):
    """Triggers that depend on the node's record."""

    HELD = "held"  # armed, but must be reverted
    NEVER_TOUCHED = "never-touched"  # a revert run found nothing to revert
    ORPHAN_TAKEN_BACK = "orphan-taken-back"  # its controller died and the guard reverted it: not the node's fault
    GIVEN_UP = "given-up"  # read long enough
    STILL_ARMED = "still-armed"  # its guard must long have fired, or its revert is asked for again and again
    UNFINISHED = "unfinished"  # reverting, but its controller died: a read has the node's lock
    OTHERS_AT_WORK = "others-at-work"  # the guard is reverting it
    REHEARSED = "rehearsed"  # reverted by the rehearsal: it is changed again
    TAKEN_BACK_BY_OTHERS = "taken-back-by-others"  # this run did not ask for it
    PULLS_ON = "pulls-on"  # while the playbook waits; then it is left alone
    TO_DRAIN = "to-drain"  # released, and to be drained first
    EMPTY_AND_PULLING = "empty-and-pulling"  # drained, and pulls or has no baseline yet: it keeps its room
    STILL_UNSEEN = "still-unseen"  # while the run waits for a baseline
    LEFT_TO_OTHERS = "left-to-others"  # a rollback continues without it: it reports that another run has it
    STILL_OWED = "still-owed"  # failed with an incomplete revert: its guard may have completed it since
    NOT_APPROVED = "not-approved"  # untouched, and its approvals are used up
    FROZEN = "frozen"  # an operator froze the node: not its fault, and it keeps its files
    WAITED_FOR = "waited-for"  # the engine is away, and its patience is not over: nothing is known of the node
    LEFT = "left"  # gone, and nothing of ours was in flight on it: charged to nothing
    NOT_NOW = "not-now"  # nothing is released any more: a node being drained is left unchanged


_SICK = Cause.UNHEALTHY
_FAILED = Cause.FAILED
_GONE = Cause.UNREACHABLE

TABLE: dict[tuple[S, On | ResolvedTrigger], Move] = {
    # The opening claim, then the release.
    (S.PENDING, On.UNTOUCHED): Move(S.PENDING),
    (S.PENDING, On.BUSY): Move(S.UNKNOWN, Next.READ_LATER),
    (S.PENDING, On.ARMED): Move(S.APPLIED, Next.MEASURE),
    (S.PENDING, On.CONFIRMED): Move(S.CONFIRMED),
    (S.PENDING, On.TAKEN_BACK_SICK): Move(S.REVERTED, charge=_SICK),
    (S.PENDING, On.TAKEN_BACK_ALONE): Move(S.PENDING, Next.RETRY),
    (S.PENDING, On.TAKEN_BACK_ASKED): Move(S.PENDING, Next.RETRY),
    (S.PENDING, On.STILL_SICK): Move(S.FAILED, charge=_SICK),
    (S.PENDING, On.STUCK): Move(S.FAILED, charge=_SICK, owed=True),
    (S.PENDING, On.REFUSED): Move(S.REFUSED, charge=_FAILED),
    (S.PENDING, On.UNREACHED): Move(S.UNREACHABLE, charge=_GONE, owed=True),
    (S.PENDING, On.LOST): Move(S.UNREACHABLE, charge=_GONE, owed=True),
    (S.PENDING, ResolvedTrigger.WAITED_FOR): Move(S.PENDING, Next.READ_LATER),
    (S.PENDING, On.RELEASED): Move(S.APPLYING, Next.APPLY),
    (S.PENDING, ResolvedTrigger.TO_DRAIN): Move(S.APPLYING, Next.DRAIN),
    (S.PENDING, On.RESUMED): Move(S.PENDING, Next.READ),
    # Being drained: unchanged, except for a cordon and its pods.
    (S.APPLYING, On.DRAINING): Move(S.APPLYING),
    (S.APPLYING, On.DRAINED): Move(S.APPLYING),
    (S.APPLYING, On.NOT_DRAINED): Move(S.REFUSED),
    (S.APPLYING, ResolvedTrigger.EMPTY_AND_PULLING): Move(S.APPLYING),
    (S.APPLYING, ResolvedTrigger.NOT_NOW): Move(S.PENDING),
    # The apply verb.
    (S.APPLYING, On.ARMED): Move(S.APPLIED, Next.MEASURE),
    (S.APPLYING, ResolvedTrigger.HELD): Move(S.REVERTING, Next.REVERT),
    (S.APPLYING, On.BUSY): Move(S.UNKNOWN, Next.READ_LATER),
    (S.APPLYING, On.CONFIRMED): Move(S.CONFIRMED),
    (S.APPLYING, On.UNTOUCHED): Move(S.REFUSED, charge=_FAILED),
    (S.APPLYING, On.REFUSED): Move(S.REFUSED, charge=_FAILED),
    (S.APPLYING, ResolvedTrigger.FROZEN): Move(S.REFUSED),
    (S.APPLYING, On.PULLING): Move(S.PENDING),
    (S.APPLYING, ResolvedTrigger.PULLS_ON): Move(S.REFUSED),
    (S.APPLYING, On.UNSEEN): Move(S.PENDING),
    (S.APPLYING, ResolvedTrigger.STILL_UNSEEN): Move(S.REFUSED),
    (S.APPLYING, On.TAKEN_BACK_SICK): Move(S.REVERTED, charge=_SICK),
    (S.APPLYING, On.TAKEN_BACK_ALONE): Move(S.REVERTED, charge=_FAILED),
    (S.APPLYING, On.TAKEN_BACK_ASKED): Move(S.REVERTED, charge=_FAILED),
    (S.APPLYING, On.STILL_SICK): Move(S.FAILED, charge=_SICK),
    (S.APPLYING, On.STUCK): Move(S.FAILED, charge=_SICK, owed=True),
    (S.APPLYING, On.UNREACHED): Move(S.UNKNOWN, Next.READ),
    (S.APPLYING, On.LOST): Move(S.UNKNOWN, Next.READ),
    (S.APPLYING, On.RESUMED): Move(S.UNKNOWN, Next.READ),
    # Armed: the node gates, then confirm.
    (S.APPLIED, On.GATES_PASSED): Move(S.APPLIED, Next.CONFIRM),
    (S.APPLIED, On.GATES_FAILED): Move(S.REVERTING, Next.REVERT, charge=_SICK),
    (S.APPLIED, On.GATES_UNKNOWN): Move(S.UNKNOWN, Next.READ_LATER),
    (S.APPLIED, On.CONFIRMED): Move(S.CONFIRMED),
    (S.APPLIED, On.ARMED): Move(S.APPLIED, Next.MEASURE),
    (S.APPLIED, ResolvedTrigger.HELD): Move(S.REVERTING, Next.REVERT),
    (S.APPLIED, On.BUSY): Move(S.UNKNOWN, Next.READ_LATER),
    (S.APPLIED, On.REFUSED): Move(S.UNKNOWN, Next.READ_LATER),
    (S.APPLIED, On.UNTOUCHED): Move(S.UNKNOWN, Next.READ_LATER),
    (S.APPLIED, On.TAKEN_BACK_SICK): Move(S.REVERTED, charge=_SICK),
    (S.APPLIED, On.TAKEN_BACK_ALONE): Move(S.REVERTED, charge=_FAILED),
    (S.APPLIED, ResolvedTrigger.ORPHAN_TAKEN_BACK): Move(S.PENDING, Next.RETRY),
    (S.APPLIED, On.TAKEN_BACK_ASKED): Move(S.REVERTED, charge=_FAILED),
    (S.APPLIED, On.STILL_SICK): Move(S.FAILED, charge=_SICK),
    (S.APPLIED, On.STUCK): Move(S.FAILED, charge=_SICK, owed=True),
    (S.APPLIED, On.UNREACHED): Move(S.UNKNOWN, Next.READ_LATER),
    (S.APPLIED, On.LOST): Move(S.UNKNOWN, Next.READ),
    (S.APPLIED, On.RESUMED): Move(S.UNKNOWN, Next.READ),
    (S.APPLIED, ResolvedTrigger.STILL_ARMED): Move(S.FAILED, charge=_FAILED, owed=True),
    # Confirmed: the soak may still find it unhealthy, the run may still revert it.
    (S.CONFIRMED, On.GATES_PASSED): Move(S.CONFIRMED),
    (S.CONFIRMED, On.GATES_FAILED): Move(S.REVERTING, Next.REVERT, charge=_SICK),
    (S.CONFIRMED, On.GATES_UNKNOWN): Move(S.UNKNOWN, Next.READ),
    (S.CONFIRMED, On.TAKE_BACK): Move(S.REVERTING, Next.REVERT),
    (S.CONFIRMED, On.CONFIRMED): Move(S.CONFIRMED),
    (S.CONFIRMED, On.ARMED): Move(S.APPLIED, Next.MEASURE),
    (S.CONFIRMED, ResolvedTrigger.HELD): Move(S.REVERTING, Next.REVERT),
    (S.CONFIRMED, On.BUSY): Move(S.UNKNOWN, Next.READ_LATER),
    (S.CONFIRMED, On.REFUSED): Move(S.UNKNOWN, Next.READ_LATER),
    (S.CONFIRMED, On.UNREACHED): Move(S.UNKNOWN, Next.READ_LATER),
    (S.CONFIRMED, On.LOST): Move(S.UNKNOWN, Next.READ_LATER),
    (S.CONFIRMED, On.UNTOUCHED): Move(S.FAILED, charge=_FAILED),
    (S.CONFIRMED, On.TAKEN_BACK_SICK): Move(S.REVERTED),
    (S.CONFIRMED, On.TAKEN_BACK_ALONE): Move(S.REVERTED),
    (S.CONFIRMED, On.TAKEN_BACK_ASKED): Move(S.REVERTED),
    (S.CONFIRMED, ResolvedTrigger.TAKEN_BACK_BY_OTHERS): Move(S.REVERTED, charge=_FAILED),
    (S.CONFIRMED, On.STILL_SICK): Move(S.FAILED, charge=_SICK),
    (S.CONFIRMED, On.STUCK): Move(S.FAILED, charge=_SICK, owed=True),
    (S.CONFIRMED, On.RESUMED): Move(S.CONFIRMED, Next.READ),
    # Reverting: until it is complete, never forward.
    (S.REVERTING, On.TAKEN_BACK_SICK): Move(S.REVERTED),
    (S.REVERTING, On.TAKEN_BACK_ALONE): Move(S.REVERTED),
    (S.REVERTING, On.TAKEN_BACK_ASKED): Move(S.REVERTED),
    (S.REVERTING, On.STILL_SICK): Move(S.FAILED, charge=_SICK),
    (S.REVERTING, On.STUCK): Move(S.FAILED, charge=_SICK, owed=True),
    (S.REVERTING, On.UNTOUCHED): Move(S.REVERTED),
    (S.REVERTING, On.REFUSED): Move(S.FAILED, charge=_FAILED, owed=True),
    (S.REVERTING, ResolvedTrigger.OTHERS_AT_WORK): Move(S.UNKNOWN, Next.READ_LATER, owed=True),
    (S.REVERTING, On.BUSY): Move(S.UNKNOWN, Next.READ_LATER, owed=True),
    (S.REVERTING, On.ARMED): Move(S.REVERTING, Next.REVERT),
    (S.REVERTING, ResolvedTrigger.HELD): Move(S.REVERTING, Next.REVERT),
    (S.REVERTING, On.CONFIRMED): Move(S.REVERTING, Next.REVERT),
    (S.REVERTING, ResolvedTrigger.REHEARSED): Move(S.PENDING, Next.RETRY),
    (S.REVERTING, On.UNREACHED): Move(S.UNKNOWN, Next.READ_LATER, owed=True),
    (S.REVERTING, On.LOST): Move(S.UNKNOWN, Next.READ, owed=True),
    (S.REVERTING, On.RESUMED): Move(S.UNKNOWN, Next.READ, owed=True),
    (S.REVERTING, ResolvedTrigger.STILL_ARMED): Move(S.FAILED, charge=_FAILED, owed=True),
    # Not known: read until it answers.
    (S.UNKNOWN, On.ARMED): Move(S.APPLIED, Next.MEASURE),
    (S.UNKNOWN, ResolvedTrigger.HELD): Move(S.REVERTING, Next.REVERT, owed=True),
    (S.UNKNOWN, On.CONFIRMED): Move(S.CONFIRMED),
    (S.UNKNOWN, On.BUSY): Move(S.UNKNOWN, Next.READ_LATER),
    (S.UNKNOWN, ResolvedTrigger.UNFINISHED): Move(S.REVERTING, Next.REVERT, owed=True),
    (S.UNKNOWN, On.REFUSED): Move(S.UNKNOWN, Next.READ_LATER),
    (S.UNKNOWN, On.VOIDED): Move(S.PENDING, Next.RETRY),
    (S.UNKNOWN, ResolvedTrigger.NOT_APPROVED): Move(S.REFUSED, charge=_FAILED),
    (S.UNKNOWN, On.UNTOUCHED): Move(S.UNKNOWN, Next.READ_LATER),
    (S.UNKNOWN, ResolvedTrigger.NEVER_TOUCHED): Move(S.SKIPPED),
    (S.UNKNOWN, On.TAKEN_BACK_SICK): Move(S.REVERTED, charge=_SICK),
    (S.UNKNOWN, On.TAKEN_BACK_ALONE): Move(S.REVERTED, charge=_GONE),
    (S.UNKNOWN, ResolvedTrigger.ORPHAN_TAKEN_BACK): Move(S.PENDING, Next.RETRY),
    (S.UNKNOWN, ResolvedTrigger.REHEARSED): Move(S.PENDING, Next.RETRY),
    (S.UNKNOWN, On.TAKEN_BACK_ASKED): Move(S.REVERTED),
    (S.UNKNOWN, ResolvedTrigger.TAKEN_BACK_BY_OTHERS): Move(S.REVERTED, charge=_FAILED),
    (S.UNKNOWN, On.STILL_SICK): Move(S.FAILED, charge=_SICK),
    (S.UNKNOWN, On.STUCK): Move(S.FAILED, charge=_SICK, owed=True),
    (S.UNKNOWN, On.UNREACHED): Move(S.UNKNOWN, Next.READ_LATER),
    (S.UNKNOWN, On.LOST): Move(S.UNKNOWN, Next.READ_LATER),
    (S.UNKNOWN, On.RESUMED): Move(S.UNKNOWN, Next.READ),
    (S.UNKNOWN, ResolvedTrigger.GIVEN_UP): Move(S.UNREACHABLE, charge=_GONE, owed=True),
    (S.UNKNOWN, ResolvedTrigger.STILL_ARMED): Move(S.FAILED, charge=_FAILED, owed=True),
    # A rollback, and the node reports another run: it keeps its files and is pending recovery.
    (S.CONFIRMED, ResolvedTrigger.LEFT_TO_OTHERS): Move(S.UNREACHABLE, charge=_GONE, owed=True),
    (S.REVERTING, ResolvedTrigger.LEFT_TO_OTHERS): Move(S.UNREACHABLE, charge=_GONE, owed=True),
    (S.UNKNOWN, ResolvedTrigger.LEFT_TO_OTHERS): Move(S.UNREACHABLE, charge=_GONE, owed=True),
    # At rest. A new controller reads unanswered nodes again, and retries nodes that were not at fault.
    (S.UNREACHABLE, On.RESUMED): Move(S.UNKNOWN, Next.READ),
    (S.REVERTED, On.RESUMED): Move(S.REVERTED),
    (S.FAILED, On.RESUMED): Move(S.FAILED),
    (S.FAILED, ResolvedTrigger.STILL_OWED): Move(S.UNKNOWN, Next.READ, owed=True),
    (S.REFUSED, On.RESUMED): Move(S.REFUSED),
    (S.SKIPPED, On.RESUMED): Move(S.SKIPPED),
    # No longer in the inventory. What vanishes in flight is charged: nobody can tell a smaller fleet from a node that the
    # change has ended.
    (S.PENDING, On.GONE): Move(S.GONE),
    (S.APPLYING, On.GONE): Move(S.GONE),
    (S.CONFIRMED, On.GONE): Move(S.GONE),
    (S.UNKNOWN, ResolvedTrigger.LEFT): Move(S.GONE),
    (S.APPLYING, ResolvedTrigger.LEFT): Move(S.GONE),
    (S.APPLIED, On.GONE): Move(S.UNKNOWN, Next.READ_LATER),
    (S.UNKNOWN, On.GONE): Move(S.UNREACHABLE, charge=_GONE, owed=True),
    (S.REVERTING, On.GONE): Move(S.UNREACHABLE, charge=_GONE, owed=True),
    (S.GONE, On.RESUMED): Move(S.GONE),
    (S.GONE, On.RETURNED): Move(S.UNKNOWN, Next.READ),
}
for _state in S:
    TABLE[_state, On.CLEANED] = Move(_state)
for _state in (S.UNREACHABLE, S.REVERTED, S.FAILED, S.REFUSED, S.SKIPPED, S.GONE):
    TABLE[_state, On.GONE] = Move(_state)


class IllegalMoveError(Exception):
    """The table has no such move: a bug of rollout, never of the node."""


def resolve_trigger(trigger: On, reference: str, record: NodeRecord, goal: Goal) -> On | ResolvedTrigger:
    """The trigger as the table knows it, given the node's record."""
    if trigger is On.AWAY:
        return On.UNREACHED
    if record.state is S.REVERTING and trigger is On.REFUSED and reference == "locked":
        return ResolvedTrigger.OTHERS_AT_WORK
    if record.state is S.APPLYING and trigger is On.REFUSED and reference == FROZEN:
        return ResolvedTrigger.FROZEN
    if trigger is On.REFUSED and reference == USED:
        return _NOT_APPROVED.get(record.state, On.UNTOUCHED)
    if trigger is On.GONE and record.state is S.UNKNOWN and goal is Goal.APPLY and not record.touched:
        return ResolvedTrigger.LEFT
    if trigger is On.REFUSED and record.state is S.APPLYING and reference == ANOTHER_MACHINE:
        return ResolvedTrigger.LEFT
    if record.want_back and (trigger is On.ARMED or (trigger is On.GATES_PASSED and record.state is S.APPLIED)):
        return ResolvedTrigger.HELD
    if trigger is On.TAKEN_BACK_ASKED:
        return _asked_back(record, goal)
    if trigger is On.TAKEN_BACK_ALONE and record.state in (S.UNKNOWN, S.APPLIED) and _is_orphan(record):
        return ResolvedTrigger.ORPHAN_TAKEN_BACK
    if record.state is S.FAILED and record.owed and trigger is On.RESUMED:
        return ResolvedTrigger.STILL_OWED
    return _read_back(trigger, record, goal) if record.state is S.UNKNOWN else trigger


_NOT_APPROVED: dict[S, On | ResolvedTrigger] = {
    S.PENDING: On.REFUSED,
    S.APPLYING: On.REFUSED,
    S.UNKNOWN: ResolvedTrigger.NOT_APPROVED,
}
"""Where a node that is untouched would be changed, and its approvals are used up."""


def _read_back(trigger: On, record: NodeRecord, goal: Goal) -> On | ResolvedTrigger:
    """The meaning of an answer from a node in state unknown."""
    if trigger is On.BUSY and record.want_back:
        return ResolvedTrigger.UNFINISHED
    if trigger is On.UNTOUCHED and goal is Goal.REVERT:
        return ResolvedTrigger.NEVER_TOUCHED
    return trigger


def _is_orphan(record: NodeRecord) -> bool:
    """Left armed by a controller that died: the missing confirm is not the node's fault."""
    return record.orphaned and record.cause is None and not record.want_back


def _asked_back(record: NodeRecord, goal: Goal) -> On | ResolvedTrigger:
    """Reverted on request: by a rehearsal, by this run, or by others."""
    if record.rehearsal is Rehearsal.BACK and record.state in (S.REVERTING, S.UNKNOWN):
        return ResolvedTrigger.REHEARSED
    if goal is Goal.APPLY and not record.want_back and record.state in (S.CONFIRMED, S.UNKNOWN):
        return ResolvedTrigger.TAKEN_BACK_BY_OTHERS
    return On.TAKEN_BACK_ASKED


def move(state: S, trigger: On | ResolvedTrigger) -> Move:
    """Look up the move; raise ``IllegalMoveError`` when there is none."""
    try:
        return TABLE[state, trigger]
    except KeyError:
        raise IllegalMoveError(f"a node that is {state} cannot take {trigger!r}") from None
