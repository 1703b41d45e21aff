"""``rollout plan -o json``: the plan's summary for programs. The plan file itself holds the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollout.core.model.plan import (
    ChangeGroup,
    Consequence,
    ExcludedNode,
    FileChange,
    Plan,
    PlannedDrain,
    RegistryLoad,
    Remark,
    Sum,
    Wave,
)
from rollout.core.model.playbook import Limits
from rollout.core.plans import estimate, plan_codec
from rollout.core.plans.plan_text import folded_left
from rollout.core.text import diff, nodesets

VERSION = 1


def plan_json(plan: Plan, file: str) -> dict[str, Any]:
    """Plain values; ``file`` is where the plan was written. Secrets in diffs are redacted as in the text."""
    members: dict[str, list[str]] = {group.name: [] for group in plan.groups}
    for node in plan.nodes.values():
        members[node.group].append(node.name)
    return {
        "version": VERSION,
        "file": file,
        "digest": plan_codec.digest(plan),
        "cluster": plan.cluster,
        "playbook": plan.playbook,
        "taken": plan.taken,
        "limit": plan.limit,
        "changed": len(plan.nodes),
        "seconds": estimate.total(plan),
        "groups": [_group(plan, group, members[group.name]) for group in plan.groups],
        "waves": [_wave(plan, wave) for wave in plan.waves],
        "left": [_left(entry, names) for entry, names in folded_left(plan)],
        "remarks": [_remark(remark) for remark in plan.remarks],
        "drain": {"within": plan.drain.within, "evictToo": sorted(plan.drain.evict_too)},
        "drained": [_drained(node.name, node.drain) for node in plan.nodes.values() if node.drain],
        "registries": [_registry_load(load) for load in plan.loads],
        "limits": _limits(plan.limits),
        "budgets": [
            {"scope": budget.scope.value, "causes": sorted(budget.causes), "share": str(budget.share)}
            for budget in plan.budgets
        ],
        "gates": [{"name": gate.name, "kind": gate.kind.value, "scope": gate.scope.value} for gate in plan.gates],
        "guard": plan.guard,
        "pullsInFlight": {"within": plan.pulls.within, "then": plan.pulls.then.value},
        "rehearsal": plan.rehearsal,
        "onFailure": plan.on_failure.value,
    }


def _wave(plan: Plan, wave: Wave) -> dict[str, Any]:
    return {
        "name": wave.name,
        "count": len(wave.nodes),
        "nodes": nodesets.fold(wave.nodes),
        "soak": wave.soak,
        "hold": wave.hold,
        "atOnce": wave.at_once,
        "seconds": estimate.of_wave(plan, wave),
    }


def _left(entry: ExcludedNode, names: Sequence[str]) -> dict[str, Any]:
    return {
        "standing": entry.standing.value,
        "reference": entry.reference,
        "reason": entry.reason,
        "count": len(names),
        "nodes": nodesets.fold(names),
    }


def _remark(remark: Remark) -> dict[str, Any]:
    return {
        "reference": remark.reference,
        "text": remark.text,
        "count": len(remark.nodes),
        "nodes": nodesets.fold(remark.nodes) if remark.nodes else "",
    }


def _drained(name: str, drain: PlannedDrain) -> dict[str, Any]:
    """``seconds`` is null where the slowest pod has no bound."""
    return {
        "node": name,
        "pods": drain.pods,
        "slowest": drain.pod,
        "seconds": drain.seconds,
        "why": drain.why,
        "kubelet": f"1.{drain.minor}",
    }


def _limits(limits: Limits) -> dict[str, Any]:
    return {
        "inFlight": limits.in_flight,
        "pace": limits.pace,
        "perRack": str(limits.per_rack),
        "perZone": str(limits.per_zone) if limits.per_zone else None,
        "preflight": str(limits.preflight),
    }


def _group(plan: Plan, group: ChangeGroup, names: list[str]) -> dict[str, Any]:
    change = group.change
    return {
        "name": group.name,
        "label": group.label,
        "count": len(names),
        "nodes": nodesets.fold(names),
        "files": [_file(plan, file) for file in change.files],
        "units": list(change.units),
        "reload": change.reload,
        "disruption": change.disruption.value,
        "hangups": list(change.hangups),
        "consequences": [_consequence(each, names) for each in plan.consequences if each.group == group.name],
        "arguments": [diff.redacted(argument) for argument in change.arguments],
        "settle": change.settle,
        "notes": list(change.notes),
    }


def _consequence(found: Consequence, members: list[str]) -> dict[str, Any]:
    names = list(found.nodes) or members
    return {"reference": found.reference, "text": found.text, "count": len(names), "nodes": nodesets.fold(names)}


def _registry_load(load: RegistryLoad) -> dict[str, Any]:
    """``registry`` is null for any registry, ``zone`` for the whole fleet; ``unbounded`` counts nodes without a bound."""
    return {
        "registry": load.registry or None,
        "zone": load.zone or None,
        "nodes": load.nodes,
        "unknown": load.unknown,
        "parallelPulls": _step(load.parallel_before, load.parallel_after),
        "qps": _step(load.qps_before, load.qps_after),
    }


def _step(before: Sum, after: Sum) -> dict[str, Any]:
    def said(found: Sum) -> dict[str, int]:
        return {"total": found.total, "unbounded": found.unbounded}

    return {"before": said(before), "after": said(after)}


def _file(plan: Plan, file: FileChange) -> dict[str, Any]:
    before = plan.blobs[file.before] if file.before else None
    return {
        "path": file.path,
        "before": file.before,
        "after": file.after,
        "reasons": list(file.reasons),
        "diff": list(diff.unified(before, plan.blobs[file.after], file.path)),
    }
