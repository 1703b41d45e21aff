"""Applies a plan: what is checked before the operator confirms, then the run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rollout.app.apply_precheck import look_before, runs_that_applied
from rollout.app.call import CallPorts, Operator
from rollout.app.freezes import check_nodes_not_frozen, check_not_frozen
from rollout.app.plan_file import check_digest, check_preflight, preflight_text
from rollout.app.ports import Nodes
from rollout.app.reading import read_receipts
from rollout.app.runs import check_nothing_unfinished, check_plan, start_apply
from rollout.app.start_times import WAITS, closed_lines
from rollout.core.model.approvals import Approval
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.plans.again import SAME_SETTINGS, plan_again
from rollout.core.plans.apply_readiness import Now, PlanDecision, Standings, does_lines, stand_as_wanted
from rollout.core.plans.fleet_comparison import change_lines, fleet_changes, promotion_lines
from rollout.core.plans.required_back_ends import needs_of
from rollout.core.presentation.nothing_to_do import NothingToDo, Why, nothing_to_change
from rollout.core.run.order import promoted
from rollout.core.run.state import RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError


def apply_saved(call: CallPorts, operator: Operator, plan: Plan, file: Path, digest: str) -> RunState | NothingToDo:
    """Apply the plan of a file. ``digest``: of the only plan that is accepted (a prefix is enough; ``""``: any plan)."""
    with closing(call.nodes()) as nodes:  # one connection a node, from the first reading to the end
        check_digest(plan, digest, str(file))
        inventory = call.inventory(plan.cluster)
        check_plan(plan, inventory, str(file), call.jumps(inventory, plan.nodes))
        approvals = call.approvals_of(plan, inventory, file)
        return apply_plan(call, operator, nodes, plan, inventory, approvals, fresh=False)


def apply_plan(
    call: CallPorts,
    operator: Operator,
    nodes: Nodes,
    plan: Plan,
    inventory: Inventory,
    approvals: Sequence[Approval],
    *,
    fresh: bool,
) -> RunState | NothingToDo:
    """The run as it ended. ``fresh``: the plan was made just now over ``nodes``.

    Nothing is touched before the operator confirms. ``UsageError`` and ``StateError``: the plan may not be applied now.
    """
    changes = fleet_changes(plan, inventory, call.jumps(inventory, plan.nodes))
    operator.tell((*change_lines(changes), *promotion_lines(promoted(plan, changes))))
    preflight = check_preflight(plan, changes)
    if preflight.refused:
        raise UsageError("preflight", f"nothing was touched: {preflight_text(preflight)}")
    if not plan.has_work:
        return nothing_to_change(plan)
    past = call.past()
    check_nothing_unfinished(past, plan.cluster)
    check_not_frozen(past, plan.cluster)
    there = tuple(name for name in plan.nodes if name not in changes.left)
    if not fresh and not plan.nodes:
        _check_as_wanted(call, plan, inventory, nodes)
    elif not fresh:
        found = look_before(plan, call.access(inventory, there), nodes, past, call.keep)
        check_nodes_not_frozen(plan.cluster, found.frozen)
        answer = found.answer()
        if answer is PlanDecision.PLAN_AGAIN:
            said = f"nothing was touched: the plan fits no node any more; {_not_open(found)}"
            raise UsageError("plan-is-stale", said, hint=again(plan))
        if answer is PlanDecision.ALREADY_APPLIED:
            return NothingToDo(plan, Why.ALREADY_APPLIED, runs_that_applied(past, plan), changes)
    if approvals:
        call.check_unused(plan, read_receipts(call.access(inventory, there), nodes, keep=call.keep))
    with call.back_ends(inventory, needs_of(plan)) as back_ends:
        operator.tell((*does_lines(plan), *closed_lines(plan.conditions, call.start_times, WAITS)))
        what = counted(len(there), "node") if plan.nodes else "only a ConfigMap, for nodes that join later,"
        operator.confirm(plan.cluster, f"{what} of {plan.cluster} will be changed")
        width = plan.limits.in_flight
        with call.tools(call.journal(), width, back_ends, nodes=nodes, cluster=plan.cluster) as tools:
            # checks again that no run is unfinished: the operator may have taken long to confirm
            return start_apply(plan, call.access(inventory, there), tools, approvals, changes, inventory.conditions)


def again(plan: Plan) -> str:
    return f"plan again, {SAME_SETTINGS}: `{plan_again(plan.cluster, plan.limit, plan.playbook)}`"


def _check_as_wanted(call: CallPorts, plan: Plan, inventory: Inventory, nodes: Nodes) -> None:
    """``UsageError``: a node that had the plan's settings already may have them no more, so no node that joins must get them."""
    names = tuple(each.name for each in plan.left if each.name in inventory.nodes)
    found = stand_as_wanted(plan, read_receipts(call.access(inventory, names), nodes, keep=call.keep))
    check_nodes_not_frozen(plan.cluster, found.frozen)
    if why := _not_open(found):
        said = f"nothing was touched: the plan changes no node, because each had its settings; {why}"
        raise UsageError("plan-is-stale", said, hint=again(plan))


def _not_open(found: Standings) -> str:
    """The reasons why the plan does not fit nodes."""
    said = (
        (Now.DRIFTED, "changed since the plan"),
        (Now.AS_PLANNED, "already as planned"),
        (Now.UNREAD, "could not be read"),
    )
    parts = [f"{what}: {printable(fold(names), 300)}" for now, what in said if (names := found.named(now))]
    return "; ".join(parts)
