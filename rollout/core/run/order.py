"""Makes the order for the machine: from a plan, or from transactions to revert. How long reverts last."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rollout.core.model.areas import AreaKind, Placed, rounds, sizes
from rollout.core.model.gates import GateScope
from rollout.core.model.plan import Change, Plan
from rollout.core.model.playbook import EMERGENCY_LIMITS, SETTLE, Limits, RevertScope, RevertTimes, seconds_to_revert
from rollout.core.run.state import Goal, LeftOut, NodeOrder, Order, RunState, WaveOrder
from rollout.core.text.message_folding import for_all, nameless
from rollout.core.text.nodesets import fold


def apply_order(run: str, plan: Plan) -> Order:
    """The order to apply a plan."""
    settle = {group.name: _settle(group.change) for group in plan.groups}
    return Order(
        run=run,
        cluster=plan.cluster,
        goal=Goal.APPLY,
        nodes={
            n.name: NodeOrder(
                n.name, n.rack, n.wave, settle[n.group], n.zone, n.group, plan.drain.within if n.drain else 0.0
            )
            for n in plan.nodes.values()
        },
        waves=tuple(WaveOrder(w.name, w.nodes, w.soak, w.hold, w.at_once, w.data) for w in plan.waves),
        racks=plan.racks,
        limits=plan.limits,
        budgets=plan.budgets,
        on_failure=plan.on_failure,
        passes=plan.passes,
        guard=plan.guard,
        wave_gates=any(gate.scope is GateScope.WAVE for gate in plan.gates),
        left_out=left_out(plan),
        rehearsal=plan.rehearsal,
        zones=plan.zones,
        pulls=plan.pulls,
    )


def _settle(change: Change) -> float:
    """0 for a change that restarts nothing."""
    return change.settle if change.disruption.restarts else 0.0


def left_out(plan: Plan) -> tuple[LeftOut, ...]:
    """Nodes that the plan left out although they are not as wanted, folded by reason."""
    together: dict[tuple[str, str], list[str]] = {}
    for entry in plan.left_out:
        reason = f"{nameless(entry.reason, entry.name)} [{entry.reference}]"
        together.setdefault((entry.standing, reason), []).append(entry.name)
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
    named = (WaveOrder("rollback", first, soak=0.0), WaveOrder("control plane", last, soak=0.0, at_once=1))
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
