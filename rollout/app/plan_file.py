"""Reads a plan file: a plan may do no more than the plans that rollout makes, even if its digest is correct.

Apart from planning: a run of a saved plan imports nothing that makes plans.
"""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.model.fleet_changes import UNCHANGED, FleetChanges
from rollout.core.model.plan import ChangeGroup, Plan
from rollout.core.plans import plan_codec
from rollout.core.plans.planning import Preflight, preflight
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem, UsageError
from rollout.kubelet.changes.home_files import foreign_files, foreign_units
from rollout.kubelet.node.fitness import UNHEALTHY

MOST_PROBLEMS = 12
_AGAIN = "make the plan again with `rollout plan`: it never makes such a plan"


def read_plan(data: bytes, file: str) -> Plan:
    """The plan in a file.

    ``InputError`` if it is not a plan, or if it writes or restarts what is no home of settings.
    """
    plan = plan_codec.decode(data, file)
    problems = tuple(problem for group in plan.groups for problem in _foreign(group, file))
    if problems:
        raise InputError(problems[:MOST_PROBLEMS])
    return plan


def _foreign(group: ChangeGroup, file: str) -> Iterator[Problem]:
    where = f"{file}: group {printable(group.name, 40)} ({printable(group.label, 120)})"
    for said in foreign_files(group.change):
        yield Problem("plan-foreign-path", f"{where} writes {said}", hint=_AGAIN)
    for unit in foreign_units(group.change):
        message = f"{where} restarts or signals {unit}, which is neither the kubelet's unit nor a container runtime's"
        yield Problem("plan-foreign-unit", message, hint=_AGAIN)


def check_digest(plan: Plan, digest: str, file: str) -> None:
    """``UsageError`` if the file contains another plan than ``digest`` names (a prefix is enough; ``""``: any plan)."""
    actual = plan_codec.digest(plan)
    if not actual.startswith(digest):
        raise UsageError(
            "plan-digest",
            f"nothing was touched: {file} is the plan {actual}, not the plan {digest} that --digest names",
            hint="apply the file that was reviewed, or review this one",
        )


def check_preflight(plan: Plan, changes: FleetChanges = UNCHANGED) -> Preflight:
    """Whether the cluster is already too unhealthy to start. Nodes that left since the plan do not count."""
    return preflight(plan, UNHEALTHY, changes)


def preflight_text(preflight: Preflight) -> str:
    unhealthy = f"{len(preflight.unhealthy)} of {preflight.selected} nodes are unhealthy or cannot be read"
    return f"{unhealthy}, the playbook's preflight limit is {preflight.most}: {fold(preflight.unhealthy)}"
