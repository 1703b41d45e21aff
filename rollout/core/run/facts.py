"""What one node's record says about its node, as predicates, and as the marks by which ``records`` counts and lists nodes."""

from __future__ import annotations

from enum import IntEnum

from rollout.core.model.playbook import Cause
from rollout.core.run.events import FENCES
from rollout.core.run.state import (
    MAY_WAIT,
    Drained,
    Draining,
    NodeRecord,
    NodeState,
    Pending,
    Rehearsal,
    Unknown,
)

IN_MOTION = frozenset({NodeState.APPLYING, NodeState.APPLIED, NodeState.REVERTING, NodeState.UNKNOWN})
BROKEN = frozenset({NodeState.FAILED, NodeState.UNREACHABLE})
AT_REST = frozenset(
    {
        NodeState.SKIPPED, NodeState.REFUSED, NodeState.REVERTED, NodeState.FAILED, NodeState.UNREACHABLE, NodeState.GONE,
    }
)  # fmt: skip
"""Nodes that are asked nothing more, except to clean up."""
OPEN = frozenset({NodeState.PENDING, *IN_MOTION})
"""Nodes with work left."""

MAY_HOLD = frozenset(
    {
        NodeState.CONFIRMED, NodeState.APPLIED, NodeState.APPLYING, NodeState.REVERTING, NodeState.UNKNOWN,
        NodeState.UNREACHABLE, NodeState.GONE,
    }
)  # fmt: skip
"""States of nodes that may have a run's change: a rollback reverts them."""


def may_hold(record: NodeRecord) -> bool:
    """Whether the node may have the run's change: a rollback reverts it, if it is still in the fleet."""
    return record.state in MAY_HOLD or record.owed


def needs_force(record: NodeRecord) -> bool:
    """Whether others wrote files of the change: without force the node refuses to revert it, however often it is asked."""
    return record.owed and record.reference == "foreign-bytes"


_UNKNOWN = NodeState.UNKNOWN  # a local name: these functions run several times per event
_CONFIRMED = NodeState.CONFIRMED
_BACK = Rehearsal.BACK


def unavailable(record: NodeRecord, now: float) -> bool:
    """Whether pods on this node may be down because of us (``accepted``: they were down before).

    A failed node that is pending recovery counts even if accepted: its guard may restart it at any time.
    """
    if record.current.state in BROKEN:
        may_restart = record.current.state is NodeState.FAILED and record.owed
        return record.cordoned or may_restart or not record.accepted
    return record.cordoned or record.current.state in IN_MOTION or now < record.busy_until


def recovering(record: NodeRecord, now: float) -> bool:
    """Whether it is unavailable and recovers without help: not broken, and no cordon that could not be lifted."""
    held = record.cordoned and not record.uncordons
    return record.current.state not in BROKEN and (held or record.current.state in IN_MOTION or now < record.busy_until)


def wrong(record: NodeRecord) -> Cause | None:
    """What a node is charged for now. An ``unknown`` node is charged once a read of it has failed."""
    if record.accepted:
        return None
    at = record.current
    if isinstance(at, Unknown):
        return record.cause or (Cause.UNREACHABLE if at.reads else None)
    return record.cause


def may_count(record: NodeRecord) -> bool:
    """Whether ``wrong`` can be other than ``None`` for it."""
    return record.cause is not None or record.current.state is _UNKNOWN


class Count(IntEnum):
    """What is counted in the fleet, and in each wave, rack and zone."""

    PENDING = 0
    CONFIRMED = 1
    AT_REST = 2
    OPEN = 3
    IN_MOTION = 4
    ASKED = 5
    BUSY = 6  # in motion or asked
    SHORT = 7  # confirmed, and its gates have not passed often enough in the soak
    MARKED = 8  # confirmed, and to be reverted
    FENCED = 9  # it reports that another run has it
    UNAVAILABLE = 10
    RECOVERING = 11
    CHARGED_UNREACHABLE = 12
    CHARGED_FAILED = 13
    CHARGED_UNHEALTHY = 14
    GONE = 15  # it counts in no budget: a share is one of the other nodes


class NodeList(IntEnum):
    """Sets of nodes that a tick looks at, so that it need not look at every node."""

    TO_RELEASE = 0  # pending and not asked
    TO_READ = 1  # unknown, or pending and not claimed because the engine is away; and not asked
    TO_REVERT = 2  # reverting and not asked
    MARKED = 3  # confirmed, to be reverted, and not asked
    CORDONED = 4
    DRAINING = 5
    POSTPONED = 6  # waits for its pulls or its baseline
    SETTLING = 7  # its settle window has not passed
    SUSPECT = 8  # ``may_count``
    REHEARSING = 9  # to be reverted, or reverting, for its rehearsal


CHARGES = {
    Cause.UNREACHABLE: Count.CHARGED_UNREACHABLE,
    Cause.FAILED: Count.CHARGED_FAILED,
    Cause.UNHEALTHY: Count.CHARGED_UNHEALTHY,
}


def _bits(*found: Count | NodeList) -> int:
    return sum(1 << (each + (len(Count) if isinstance(each, NodeList) else 0)) for each in found)


COUNTS = (1 << len(Count)) - 1
"""The bits of ``marks`` that are counted; those above them are listed."""


def _of_state(state: NodeState) -> int:
    groups: dict[Count, frozenset[NodeState]] = {
        Count.AT_REST: AT_REST,
        Count.OPEN: OPEN,
        Count.IN_MOTION: IN_MOTION,
        Count.BUSY: IN_MOTION,
    }
    own: dict[NodeState, Count] = {
        NodeState.PENDING: Count.PENDING,
        _CONFIRMED: Count.CONFIRMED,
        NodeState.GONE: Count.GONE,
    }
    return _bits(
        *(each for each, states in groups.items() if state in states), *(own[each] for each in own if each is state)
    )


_OF_STATE = {state: _of_state(state) for state in NodeState}
_OF_CHARGE = {cause: _bits(count) for cause, count in CHARGES.items()}
_NOT_ASKED = {
    NodeState.PENDING: NodeList.TO_RELEASE,
    _UNKNOWN: NodeList.TO_READ,
    NodeState.REVERTING: NodeList.TO_REVERT,
}
_UNASKED = {state: _bits(listed) for state, listed in _NOT_ASKED.items()}
_TO_READ = _bits(NodeList.TO_READ)
_ASKED, _SHORT = _bits(Count.ASKED, Count.BUSY), _bits(Count.SHORT)
_MARKED, _MARKED_UNASKED = _bits(Count.MARKED), _bits(Count.MARKED, NodeList.MARKED)
_UNAVAILABLE, _RECOVERING, _FENCED = _bits(Count.UNAVAILABLE), _bits(Count.RECOVERING), _bits(Count.FENCED)
_CORDONED, _DRAINING, _POSTPONED = _bits(NodeList.CORDONED), _bits(NodeList.DRAINING), _bits(NodeList.POSTPONED)
_SETTLING, _SUSPECT, _REHEARSING = _bits(NodeList.SETTLING), _bits(NodeList.SUSPECT), _bits(NodeList.REHEARSING)


def marks(record: NodeRecord, passes: int, now: float) -> int:
    """Bit ``n`` is ``Count`` n, the bits above are ``NodeList``. ``passes``: how often in a row the gates must pass in the soak."""
    facts = _of_work(record, passes) | _of_waits(record)
    if now < record.busy_until:
        facts |= _SETTLING
    if unavailable(record, now):
        facts |= _UNAVAILABLE | _RECOVERING * recovering(record, now)
    if may_count(record):
        charged = wrong(record)
        facts |= _SUSPECT | (_OF_CHARGE[charged] if charged is not None else 0)
    return facts


def _of_work(record: NodeRecord, passes: int) -> int:
    """Its state, and what is to be done with it."""
    facts = _OF_STATE[record.current.state]
    if record.asked is not None:
        facts |= _ASKED
    else:
        facts |= _TO_READ if is_to_be_claimed(record) else _UNASKED.get(record.current.state, 0)
    if record.current.state is _CONFIRMED:
        facts |= _SHORT * (record.passes < passes)
        if record.to_revert:
            facts |= _MARKED_UNASKED if record.asked is None else _MARKED
    return facts


def is_to_be_claimed(record: NodeRecord) -> bool:
    """Whether the engine was away when the node was last asked, before anything was done to it."""
    return isinstance(record.current, Pending) and record.current.away_since > 0


def _of_waits(record: NodeRecord) -> int:
    """What keeps it from being changed or left."""
    facts = _CORDONED * record.cordoned
    at = record.current
    if isinstance(at, Draining | Drained):
        facts |= _DRAINING
    if isinstance(at, MAY_WAIT) and at.postponed is not None:
        facts |= _POSTPONED
    if record.rehearsal is _BACK:
        facts |= _REHEARSING
    if record.reference in FENCES:
        facts |= _FENCED
    return facts
