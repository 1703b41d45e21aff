"""The plans of the current folder that wait for approvals, or to be applied with them."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from rollout.app.ports import Files, PastRuns
from rollout.core.model.conditions import of_kind
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.presentation.waiting_plans import WaitingPlan
from rollout.errors import InputError, Problem
from rollout.features.approvals.asking import Approvals, how_to_approve
from rollout.features.approvals.client.files import signatures_beside
from rollout.features.approvals.client.signatures import SshSignatures
from rollout.features.approvals.rules import ApprovalRule

MOST = 8
"""The newest plan files that are looked at."""

NO_RULE = f'\n"{ApprovalRule.key}": [],\n'.encode()
"""A line of a plan that needs no approval: the rest of it need not be read."""


def missing_approvals(
    files: Files, plan: Plan, rules: Sequence[ApprovalRule], plan_file: Path, appliers: Collection[str]
) -> tuple[Problem, ...]:
    """Why `rollout apply` would refuse a plan to a person with these login names."""
    approvals = Approvals(files, SshSignatures())
    try:
        approvals.checked(plan, rules, signatures_beside(plan_file), appliers, how_to_approve(plan_file), time.time())
    except InputError as error:
        return error.problems
    return ()


def waiting_plans(folder: Path, files: Files, journal: PastRuns, appliers: Collection[str]) -> tuple[WaitingPlan, ...]:
    """By the rules in the plans. ``appliers``: login names of the person that would apply them. A run of a plan ends its waiting, and so does a run of its cluster that began after its file was written."""
    began: dict[str, float] = {}
    for header in journal.listed():
        began[header.cluster] = max(header.at, began.get(header.cluster, 0.0))
    written = {path: path.stat().st_mtime for path in folder.glob("*.plan.json") if path.is_file()}
    found = []
    for path in sorted(written, key=lambda each: -written[each])[:MOST]:
        with suppress(InputError, OSError):  # not a plan, or one of another version
            data = path.read_bytes()
            plan = None if NO_RULE in data else plan_codec.decode(data, str(path))
            rules = of_kind(plan.conditions, ApprovalRule) if plan is not None else ()
            if (
                plan is not None
                and rules
                and written[path] > began.get(plan.cluster, 0.0)
                and not _has_run(journal, plan)
            ):
                problems = missing_approvals(files, plan, rules, path, appliers)
                missing = tuple(problem.message for problem in problems)
                found.append(WaitingPlan(path.name, plan.cluster, plan_codec.digest(plan), missing))
    return tuple(found)


def _has_run(journal: PastRuns, plan: Plan) -> bool:
    """A copy of its file may be newer than its run."""
    digest = plan_codec.digest(plan)
    return any(plan_codec.digest_in(each.plan) == digest for each in journal.runs(plan.cluster))
