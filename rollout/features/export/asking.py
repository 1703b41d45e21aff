"""Which nodes the change of a plan is in force on, by the journal."""

from __future__ import annotations

from rollout.app.following import has_acted
from rollout.app.node_histories import plans_in_force
from rollout.app.ports import PastRuns
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.errors import UsageError


def in_force_of(journal: PastRuns, plan: Plan) -> tuple[str, ...]:
    """The nodes to which a plan still applies: all, if no run of this journal has begun it, or each ended before it touched a node; else those where its change is in force.

    ``UsageError`` ``plan-not-in-force``: it is in force on none.
    """
    digest = plan_codec.digest(plan)
    began = (each.run for each in journal.runs(plan.cluster) if plan_codec.digest_in(each.plan) == digest)
    runs = tuple(run for run in began if journal.summary(run) is None or has_acted(journal, run))
    if not runs:
        return tuple(plan.nodes)
    there = (
        names for known, names in plans_in_force(journal, plan.cluster, path="") if plan_codec.digest(known) == digest
    )
    nodes = frozenset(name for names in there for name in names)
    if not nodes and plan.nodes:
        raise UsageError(
            "plan-not-in-force",
            f"run {', '.join(runs)} has begun this plan, and its change is in force on no node: rolled back, replaced, or never confirmed",
            hint=f"`--cluster {plan.cluster}` exports what is in force there",
        )
    return tuple(name for name in plan.nodes if name in nodes)
