"""Applies a plan: what is checked before the operator confirms, then the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from rollout.app.call import CallPorts, Operator
from rollout.app.freezes import check_nodes_not_frozen, check_not_frozen
from rollout.app.isolation import Keep, keep_nothing, run_verb
from rollout.app.node_access import NodeAccess, only
from rollout.app.node_worker import READ_SECONDS, UNIT
from rollout.app.plan_file import check_digest, check_preflight, preflight_text
from rollout.app.ports import Journal, Nodes, Target
from rollout.app.reading import each, read_receipts
from rollout.app.runs import check_nothing_unfinished, check_plan, start_apply
from rollout.app.start_times import WAITS, closed_lines
from rollout.app.verify import last_confirmed
from rollout.core.model.approvals import Approval
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.report import Report
from rollout.core.plans import plan_codec
from rollout.core.plans.again import SAME_SETTINGS, plan_again
from rollout.core.plans.apply_readiness import (
    Now,
    PlanDecision,
    Standings,
    does_lines,
    only_restarts,
    stand,
    stand_as_wanted,
)
from rollout.core.plans.fleet_comparison import change_lines, fleet_changes, promotion_lines
from rollout.core.plans.required_back_ends import needs_of
from rollout.core.presentation.nothing_to_do import NothingToDo, Why, nothing_to_change
from rollout.core.run.order import promoted
from rollout.core.run.state import RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import UsageError
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Measure


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
        return nothing_to_change(plan, fresh=fresh)
    past = call.past()
    check_nothing_unfinished(past, plan.cluster)
    check_not_frozen(past, plan.cluster)
    there = tuple(name for name in plan.nodes if name not in changes.left)
    if plan.nodes and not there:  # no node would show the change before a ConfigMap gives it to nodes that join later
        message = "nothing was touched: no node of the plan is in the fleet any more"
        raise UsageError("plan-is-stale", message, hint=again(plan))
    if not fresh and not plan.nodes:
        _check_as_wanted(call, plan, inventory, nodes)
    elif not fresh:
        standings = look_before(plan, call.access(inventory, there), nodes, past, call.keep)
        check_nodes_not_frozen(plan.cluster, standings.frozen)
        answer = standings.answer()
        if answer is PlanDecision.PLAN_AGAIN:
            message = f"nothing was touched: the plan fits no node any more; {_not_open(standings)}"
            raise UsageError("plan-is-stale", message, hint=again(plan))
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
    standings = stand_as_wanted(plan, read_receipts(call.access(inventory, names), nodes, keep=call.keep))
    check_nodes_not_frozen(plan.cluster, standings.frozen)
    if why := _not_open(standings):
        message = f"nothing was touched: the plan changes no node, because each had its settings; {why}"
        raise UsageError("plan-is-stale", message, hint=again(plan))


def _not_open(found: Standings) -> str:
    """The reasons why the plan does not fit nodes."""
    reasons = (
        (Now.DRIFTED, "changed since the plan"),
        (Now.AS_PLANNED, "already as planned"),
        (Now.UNREAD, "could not be read"),
    )
    parts = [f"{what}: {printable(fold(names), 300)}" for now, what in reasons if (names := found.named(now))]
    return "; ".join(parts)


# Whether a plan can still be applied, by its nodes: applying twice is not a failure.

FEW = 8
"""Nodes that are read first: one that can be applied is enough to begin, and one that hangs must not delay the answer."""


def look_before(plan: Plan, access: NodeAccess, nodes: Nodes, journal: Journal, keep: Keep = keep_nothing) -> Standings:
    """The state of nodes relative to the plan. Claims and changes nothing.

    ``access`` has the nodes that are still in the fleet: the others are not read. A few nodes of the first wave that has
    any are enough for most plans. The other nodes are read only if none of these can be applied. ``keep`` stores the
    trace of an answer that rollout fails on.
    """
    runs = _runs_of(journal, plan)
    waves = ([name for name in wave.nodes if name in access.targets] for wave in plan.waves)
    first = stand(plan, _read(plan, access, nodes, next(filter(None, waves), [])[:FEW], keep), runs)
    if first.one_is_open:
        return first
    others = [name for name in plan.nodes if name in access.targets and name not in first.nodes]
    rest = _read(plan, access, nodes, others, keep)
    second = stand(plan, rest, runs)
    return Standings({**first.nodes, **second.nodes}, {**first.frozen, **second.frozen})


def runs_that_applied(journal: Journal, plan: Plan) -> tuple[str, ...]:
    """The runs that confirmed the plan's nodes last, newest first, as far as this journal knows."""
    known = last_confirmed(journal, plan.cluster)
    runs = {known[name].run for name in plan.nodes if name in known}
    return tuple(header.run for header in journal.runs(plan.cluster) if header.run in runs)


def _runs_of(journal: Journal, plan: Plan) -> frozenset[str]:
    """The runs that applied this plan. Needed only for changes that only restart: their files show no difference."""
    if not any(only_restarts(group.change) for group in plan.groups):
        return frozenset()
    digest = plan_codec.digest(plan)
    headers = journal.runs(plan.cluster)
    return frozenset(header.run for header in headers if plan_codec.digest_in(header.plan) == digest)


def _read(plan: Plan, access: NodeAccess, nodes: Nodes, names: Sequence[str], keep: Keep) -> Mapping[str, Report]:
    changes = {group.name: group.change for group in plan.groups}

    def read(target: Target) -> Report:
        paths = tuple(file.path for file in changes[plan.nodes[target.name].group].files)
        measure = Measure(UNIT, paths=paths)
        sudo = access.sudo[target.name]
        command = agent_call.status(access.program, measure=measure, sudo=sudo, deadline=READ_SECONDS)
        return run_verb(nodes, target, "status", command, keep)

    return each(only(access, names), nodes, read, keep=True)
