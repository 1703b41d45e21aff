"""Checks on the nodes, before a run starts, whether a plan can still be applied. So applying twice is not a failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rollout.app.isolation import Keep, keep_nothing, run_verb
from rollout.app.node_worker import READ_SECONDS, UNIT, NodeAccess
from rollout.app.ports import Journal, Nodes, Target
from rollout.app.reading import each, only
from rollout.app.verify import last_confirmed
from rollout.core.model.plan import Plan
from rollout.core.model.report import Report
from rollout.core.plans import plan_codec
from rollout.core.plans.apply_readiness import Standings, only_restarts, stand
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Measure

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
    found = {known[name].run for name in plan.nodes if name in known}
    return tuple(header.run for header in journal.runs(plan.cluster) if header.run in found)


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
