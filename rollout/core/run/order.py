"""From a plan to the order the machine works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rollout.core.model.plan import Plan, Standing
from rollout.core.model.playbook import EMERGENCY_LIMITS, GateScope, Limits, RevertScope
from rollout.core.model.way_back import way_back_seconds
from rollout.core.run.state import Goal, LeftOut, NodeOrder, Order, WaveOrder
from rollout.core.text.nodesets import fold


def apply_order(run: str, plan: Plan) -> Order:
    """The order to carry a plan out."""
    settle = {group.name: group.change.settle for group in plan.groups}
    return Order(
        run=run,
        cluster=plan.cluster,
        goal=Goal.APPLY,
        nodes={n.name: NodeOrder(n.name, n.rack, n.wave, settle[n.group], n.zone) for n in plan.nodes.values()},
        waves=tuple(WaveOrder(w.name, w.nodes, w.soak, w.hold, w.at_once) for w in plan.waves),
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
    )


def left_out(plan: Plan) -> tuple[LeftOut, ...]:
    """What the plan had to leave out although it is not as wanted, folded by reason."""
    together: dict[tuple[str, str], list[str]] = {}
    for entry in plan.left:
        if entry.standing in (Standing.REFUSED, Standing.UNREACHABLE):
            together.setdefault((entry.standing, f"{entry.reason} [{entry.reference}]"), []).append(entry.name)
    return tuple(LeftOut(what, reason, fold(names), len(names)) for (what, reason), names in together.items())


def revert_order(
    run: str,
    cluster: str,
    transactions: Mapping[str, str],
    rack_of: Mapping[str, str],
    racks: Mapping[str, int],
    limits: Limits = EMERGENCY_LIMITS,
    left_out: tuple[LeftOut, ...] = (),
    *,
    force: bool = False,
) -> Order:
    """The order to take transactions back, node by node. ``transactions``: node → transaction on that node."""
    return Order(
        run=run,
        cluster=cluster,
        goal=Goal.REVERT,
        nodes={name: NodeOrder(name, rack_of[name], 0, settle=5.0) for name in transactions},
        waves=(WaveOrder("rollback", tuple(transactions), soak=0.0),),
        racks=racks,
        limits=limits,
        budgets=(),
        on_failure=RevertScope.NODE,
        passes=1,
        guard=60.0,
        wave_gates=False,
        transactions=dict(transactions),
        left_out=left_out,
        force=force,
    )


def predicted_seconds(order: Order, per_node: float) -> float:
    """How long a revert order lasts when one node takes ``per_node`` seconds."""
    racks = Counter(node.rack for node in order.nodes.values())
    return way_back_seconds(racks, order.racks, order.limits, per_node)
