"""The laws as one function over the state of a run. Every test, and the simulator, calls it after each event.

What only a node can show (exact bytes, the guard) is tested on nodes. This module checks what the controller can break.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rollout.core.model.playbook import Scope
from rollout.core.run import drains
from rollout.core.run.facts import wrong
from rollout.core.run.layout import areas_of, most_of
from rollout.core.run.records import Records
from rollout.core.run.state import (
    Applying,
    Drained,
    Draining,
    Ending,
    Goal,
    NodeRecord,
    NodeState,
    Phase,
    RunState,
    Verb,
)

_MOVING = frozenset({NodeState.APPLYING, NodeState.APPLIED, NodeState.REVERTING})
_ENDED_WITHOUT = frozenset({NodeState.REVERTED, NodeState.FAILED})
_UNFINISHED = _MOVING | {NodeState.UNKNOWN}


def broken_laws(state: RunState) -> tuple[str, ...]:
    """Every law that this state breaks, in words; empty if it breaks none."""
    return tuple(
        problem
        for law in (
            _every_node_once,
            _counters,
            _limits,
            _pace,
            _rack_budget,
            _nothing_after_halt,
            _nothing_while_it_waits,
            _nothing_beyond_a_hold,
            _waves_in_order,
            _postponed,
            _drains,
            _endings,
        )
        for problem in law(state)
    )


def _every_node_once(state: RunState) -> Iterator[str]:
    """Law 1: the journal has the state of every ordered node, and of no other."""
    if state.nodes.keys() != state.order.nodes.keys():
        yield "law 1: the nodes of the state are not the nodes of the order"


def _counters(state: RunState) -> Iterator[str]:
    """Law 10: what decisions count and list is what the records say, and depends on nothing from before."""
    nodes = state.nodes
    if isinstance(nodes, Records):
        difference = nodes.differs(Records.anew(nodes.layout, nodes, nodes.clock))
        if difference:
            yield f"law 10: {difference}"


def _limits(state: RunState) -> Iterator[str]:
    """Law 4: we never make more nodes unavailable than the limits allow (pending recovery: half reverted, and unavailable).

    Unavailable is in flight, settling or cordoned by us (a node with a cordon that cannot be lifted is broken: it takes room from others).
    A rollback completes half-done transactions at once, so there only nodes in flight count.
    """
    settling = state.order.goal is Goal.APPLY
    moving = [
        name
        for name, record in state.nodes.items()
        if (record.state in _MOVING or (settling and (state.now < record.busy_until or _held(record))))
        and record.cause is None
        and not (record.owed and record.state is NodeState.REVERTING)
    ]
    if len(moving) > state.order.limits.in_flight:
        yield f"law 4: {len(moving)} nodes in flight, limit {state.order.limits.in_flight}"
    for area, count in Counter(area for name in moving for area in areas_of(state.order, name)).items():
        limit = most_of(state.order, area)
        if count > limit:
            yield f"law 4: {count} nodes of {area} unavailable, limit {limit}"


def _held(record: NodeRecord) -> bool:
    return record.cordoned and not record.uncordons


def _pace(state: RunState) -> Iterator[str]:
    """Law 4: never more restarts within a second than the pace."""
    burst = max(1, int(state.order.limits.pace))
    window = burst / state.order.limits.pace
    for index, at in enumerate(state.started[burst:]):
        if at - state.started[index] < window - 1e-6:
            yield f"law 4: more than {burst} restarts within {window:g} s at {at:g}"


def _rack_budget(state: RunState) -> Iterator[str]:
    """No rack loses more nodes to applying than its budget (a node may still become unhealthy by itself in the soak)."""
    if state.order.goal is Goal.REVERT:
        return
    lost = Counter(
        state.order.nodes[name].rack
        for name, record in state.nodes.items()
        if record.state in _ENDED_WITHOUT
        and wrong(record) is not None
        and not record.passes
        and not _stuck_on_its_way(record)
    )
    if not lost:
        return
    size = Counter(node.rack for node in state.order.nodes.values())
    for budget in state.order.budgets:
        if budget.scope is Scope.RACK:
            for rack, count in lost.items():
                if count > budget.share.of(size[rack]):
                    yield f"law 4: {count} nodes of {rack} failed, budget {budget.share.of(size[rack])}"


def _stuck_on_its_way(record: NodeRecord) -> bool:
    """Its revert could not complete: it was reverted with others, or was charged before."""
    return record.state is NodeState.FAILED and record.owed and record.to_revert


def _nothing_after_halt(state: RunState) -> Iterator[str]:
    """Law 5: once halted, nothing new is released."""
    if state.halt is None:
        return
    for name, record in state.nodes.items():
        if record.state is NodeState.APPLYING and record.since > state.halt.at:
            yield f"law 5: {name} was released after the halt"


def _nothing_while_it_waits(state: RunState) -> Iterator[str]:
    """A pause, a hold after a wave, or a closed change window releases nothing and reverts no healthy node."""
    begun = [(what, wait.at) for what, wait in (("pause", state.paused), ("window", state.closed)) if wait is not None]
    for what, since in begun:
        for name, record in state.nodes.items():
            if record.state is NodeState.APPLYING and record.since > since:
                yield f"{what}: {name} was released while the run waited"
            healthy = record.state is NodeState.REVERTING and record.cause is None and not record.owed
            if healthy and record.since > since:
                yield f"{what}: {name} was reverted while the run waited"


def _nothing_beyond_a_hold(state: RunState) -> Iterator[str]:
    """After a wave that holds, no other wave begins before it is promoted."""
    held = (index for index, wave in enumerate(state.order.waves) if wave.hold and index > state.promoted)
    first = next(held, len(state.order.waves))
    for name, record in state.nodes.items():
        if state.order.nodes[name].wave > first and record.state in _MOVING:
            yield f"hold: {name} is in flight before wave {first} was promoted"


def _waves_in_order(state: RunState) -> Iterator[str]:
    """A wave is released only when the one before it has passed."""
    if state.order.goal is Goal.REVERT:
        return
    for name, record in state.nodes.items():
        if (
            state.order.nodes[name].wave > state.wave
            and record.state in _MOVING
            and not record.orphaned
            and not record.to_revert
        ):
            yield f"waves: {name} of wave {state.order.nodes[name].wave} is in flight during wave {state.wave}"


def _postponed(state: RunState) -> Iterator[str]:
    """The wave of a node with a postponed change waits for it, and no node is charged for that."""
    soaking = state.order.waves[state.wave].nodes if state.phase is Phase.SOAKING else ()
    for name, record in state.nodes.items():
        if record.postponed is None or isinstance(record.current, Applying):
            continue
        waits = f"postponed: {name} waits for its {record.postponed.reason}"
        if record.state is NodeState.PENDING and name in soaking:
            yield f"{waits} while its wave soaks"
        if record.cause is not None:
            yield f"{waits}, and is charged ({record.cause})"


def _drains(state: RunState) -> Iterator[str]:
    """A node being drained is unchanged and cordoned. A node that needs a drain restarts only when empty. Reverts never drain."""
    for name, record in state.nodes.items():
        drain = state.order.nodes[name].drain
        if not drain and record.cordoned:
            yield f"drains: {name} is cordoned, but needs no drain"
        if record.asked is Verb.UNCORDON and drains.restart_may_come(record):
            yield f"drains: {name} is uncordoned, but an apply may still restart it"
        at = record.current
        if isinstance(at, Draining | Drained) and not record.cordoned:
            yield f"drains: {name} is being drained, but has no cordon"
        if drain and record.asked is Verb.APPLY and not (isinstance(at, Applying) and at.drained):
            yield f"drains: {name} is changed before its pods are gone"


def _endings(state: RunState) -> Iterator[str]:
    """Laws 1, 5, 8: a run that ended left no node in flight, and asked every node it reached to clean up."""
    if state.phase is not Phase.ENDED or state.ending is Ending.CLAIMED:
        return
    for name, record in state.nodes.items():
        if record.state in _UNFINISHED:
            yield f"law 1: the run ended with {name} {record.state}"
        if record.asked is Verb.CLEAN:
            yield f"law 8: the run ended before {name} was cleaned up"
        if drains.is_open(record):
            yield f"law 8: the run ended, but {name} may still be cordoned by us"
        if state.ending is Ending.DONE and record.state is NodeState.PENDING:
            yield f"law 1: the run is done but {name} is still pending"
