"""Makes the order for the machine: from a plan, or from transactions to revert. How long reverts last."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from rollout.core.model.areas import AreaKind, Placed, rounds, sizes
from rollout.core.model.fleet_changes import UNCHANGED, FleetChanges, Leaver
from rollout.core.model.gates import GateScope
from rollout.core.model.plan import CONTROL_PLANE_WAVE, Plan, Wave, kind_of
from rollout.core.model.playbook import EMERGENCY_LIMITS, SETTLE, Limits, RevertScope, RevertTimes, seconds_to_revert
from rollout.core.run.state import Goal, LeftOut, NodeOrder, Order, RunState
from rollout.core.text.message_folding import for_all, nameless
from rollout.core.text.nodesets import fold


def apply_order(run: str, plan: Plan, changes: FleetChanges = UNCHANGED) -> Order:
    """The order to apply a plan to those of its nodes that are still there. The others are ``left_out``.

    Every wave keeps its place, also an empty one: gates and silences name waves as the plan does. ``changes``: since the plan.
    """
    settle = {group.name: group.change.settle if group.change.disruption.restarts else 0.0 for group in plan.groups}
    waves = _waves(plan, changes.left)
    wave_of = {name: index for index, names in enumerate(waves) for name in names}
    return Order(
        run=run,
        cluster=plan.cluster,
        goal=Goal.APPLY,
        nodes={
            n.name: NodeOrder(
                n.name, n.rack, wave_of[n.name], settle[n.group], n.zone, n.group, plan.drain.within if n.drain else 0.0
            )
            for n in plan.nodes.values()
            if n.name not in changes.left
        },
        waves=tuple(replace(wave, nodes=names) for wave, names in zip(plan.waves, waves, strict=True)),
        racks={**plan.racks, **changes.sizes.racks},
        limits=plan.limits,
        budgets=plan.budgets,
        on_failure=plan.on_failure,
        passes=plan.passes,
        guard=plan.guard,
        wave_gates=any(gate.scope is GateScope.WAVE for gate in plan.gates),
        left_out=(*left_out(plan, changes.unplanned), *leavers(changes.left)),
        rehearsal=plan.rehearsal,
        zones={**plan.zones, **changes.sizes.zones},
        pulls=plan.pulls,
        config_map=plan.config_map,
    )


def _waves(plan: Plan, left: Collection[str]) -> list[tuple[str, ...]]:
    """The nodes of each wave without those that left. A leaver's place in the first wave is never empty for its kind.

    The next node that gets a change of the same kind takes it, so that no kind of change reaches many nodes untried. The
    control plane stays last.
    """
    changes = {group.name: kind_of(group.label, group.change) for group in plan.groups}
    kinds = {name: (changes[node.group], node.drain is not None) for name, node in plan.nodes.items()}
    waves = [tuple(name for name in wave.nodes if name not in left) for wave in plan.waves]
    for leaver in (name for name in (plan.waves[0].nodes if plan.waves else ()) if name in left):
        if any(kinds[name] == kinds[leaver] for name in waves[0]):
            continue
        later = (
            (at, name)
            for at, wave in enumerate(plan.waves)
            for name in (waves[at] if at and wave.at_once != 1 else ())
            if kinds[name] == kinds[leaver]
        )
        found = next(later, None)
        if found is not None:
            at, name = found
            waves[at] = tuple(other for other in waves[at] if other != name)
            waves[0] = (*waves[0], name)
    return waves


def promoted(plan: Plan, changes: FleetChanges) -> tuple[str, ...]:
    """The nodes that take the place of a leaver in the first wave."""
    if not changes.left or not plan.waves:
        return ()
    return tuple(name for name in _waves(plan, changes.left)[0] if name not in plan.waves[0].nodes)


def leavers(left: Mapping[str, Leaver]) -> tuple[LeftOut, ...]:
    """Nodes of a plan or a run that are no longer in the fleet, folded by reason."""
    together: dict[tuple[str, str], list[str]] = {}
    for name, leaver in left.items():
        reason = f"{nameless(leaver.reason, name)} [{leaver.reference}]"
        together.setdefault((leaver.reference, reason), []).append(name)
    return _as_left_out(together)


def left_out(plan: Plan, without: Collection[str] = ()) -> tuple[LeftOut, ...]:
    """Nodes that the plan left out although they are not as wanted, folded by reason."""
    together: dict[tuple[str, str], list[str]] = {}
    for entry in plan.left_out:
        if entry.name in without:
            continue
        reason = f"{nameless(entry.reason, entry.name)} [{entry.reference}]"
        together.setdefault((entry.standing, reason), []).append(entry.name)
    return _as_left_out(together)


def _as_left_out(together: Mapping[tuple[str, str], Sequence[str]]) -> tuple[LeftOut, ...]:
    """``together``: what they are, and the nameless reason → the nodes."""
    return tuple(
        LeftOut(what, for_all(reason, names), fold(names), len(names)) for (what, reason), names in together.items()
    )


def revert_order(
    run: str,
    cluster: str,
    transactions: Mapping[str, str],
    every: Mapping[str, Placed],
    limits: Limits = EMERGENCY_LIMITS,
    left_out: tuple[LeftOut, ...] = (),
    *,
    force: bool = False,
    one_at_a_time: Collection[str] = (),
) -> Order:
    """The order to revert transactions, node by node. ``transactions``: node → transaction on that node.

    ``every`` has each node of the inventory. ``one_at_a_time`` are nodes of which only one may be unavailable at a time, such
    as a control plane's.
    """
    last = tuple(name for name in transactions if name in one_at_a_time)
    first = tuple(name for name in transactions if name not in one_at_a_time)
    named = (Wave("rollback", first, soak=0.0), Wave(CONTROL_PLANE_WAVE, last, soak=0.0, at_once=1))
    waves = tuple(wave for wave in named if wave.nodes) or named[:1]
    wave_of = {name: index for index, wave in enumerate(waves) for name in wave.nodes}
    return Order(
        run=run,
        cluster=cluster,
        goal=Goal.REVERT,
        nodes={
            name: NodeOrder(name, every[name].rack, wave_of[name], SETTLE, every[name].zone) for name in transactions
        },
        waves=waves,
        racks=sizes(every.values(), AreaKind.RACK),
        limits=limits,
        budgets=(),
        on_failure=RevertScope.NODE,
        passes=1,
        guard=60.0,
        wave_gates=False,
        transactions=dict(transactions),
        left_out=left_out,
        force=force,
        zones=sizes(every.values(), AreaKind.ZONE),
    )


def predicted_seconds(order: Order, per_node: float) -> float:
    """How long a revert order lasts when one node takes ``per_node`` seconds."""
    one_at_a_time = sum(len(wave.nodes) for wave in order.waves if wave.at_once == 1)
    nodes = order.nodes.values()
    together = seconds_to_revert(len(nodes), rounds(nodes, order), order.limits, per_node)
    return max(together, one_at_a_time * per_node + max(0, one_at_a_time - 1) * SETTLE)


# The revert times that a run has measured.


def measured(state: RunState) -> RevertTimes | None:
    """What a run has measured, in its rehearsal or a real revert; ``None`` until a node is reverted."""
    back = [record for record in state.nodes.values() if record.revert_seconds > 0]
    if not back:
        return None
    slowest = max(record.revert_seconds for record in back)
    applied = max((record.apply_seconds for record in state.nodes.values()), default=0.0)
    return RevertTimes(state.order.run, len(back), applied, slowest)
