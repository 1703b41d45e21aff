"""The plans of earlier runs, as the journal has them."""

from __future__ import annotations

from rollout.app.ports import Journal, RunHeader
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.errors import InputError, UsageError


def newest_plan(journal: Journal, cluster: str) -> Plan:
    """The plan of the cluster's newest run that has one; ``UsageError`` ``no-plan`` where there is none."""
    header = next((each for each in journal.runs(cluster) if each.plan), None)
    if header is None:
        raise UsageError("no-plan", f"no run of {cluster} has a plan", hint="name a plan file")
    return plan_codec.decode(header.plan, header.run)


def plan_of(header: RunHeader) -> Plan | None:
    """``None`` for a run without one (a rollback), and for a plan that another version of rollout wrote."""
    try:
        return plan_codec.decode(header.plan, header.run) if header.plan else None
    except InputError:
        return None
