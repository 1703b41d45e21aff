"""A plan's side effects, for people: consequences folded over groups, drains, and the load of registries."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.core.model.plan import Consequence, Plan, PlannedDrain, RegistryLoad, Sum
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, seconds_text

MOST = 8
MOST_DRAINS = 3
_MOST_KEPT = 4
_GRAVE = (
    "pods-rejected",
    "gpu-lost-at-reload",
    "containers-killed",
    "needs-of-node",
    "needs-not-known",
    "containers-restart",
    "known-defect",
    "pulls-cancelled",
    "pull-qps",
)
"""These are listed first."""
_IN_ONE_LINE = "known-defects-kept"


def consequences_lines(plan: Plan) -> Iterator[str]:
    """One line for a consequence that several groups share."""
    folded: dict[tuple[str, str], list[Consequence]] = {}
    for each in sorted(plan.consequences, key=lambda each: each.reference not in _GRAVE):
        if each.reference != _IN_ONE_LINE:
            folded.setdefault((each.reference, each.text), []).append(each)
    if plan.consequences:
        yield ""
        yield "Side effects"
    members = _members(plan)
    for (reference, text), entries in list(folded.items())[:MOST]:
        nodes = sum(len(entry.nodes) or members[entry.group] for entry in entries)
        yield f"  {_groups(plan, entries)}: {counted(nodes, 'node')}: {printable(text, 400)} [{printable(reference, 80)}]"
    if len(folded) > MOST:
        yield f"  … {counted(len(folded) - MOST, 'more side effect')}: see them all with -o json"
    kept = list(dict.fromkeys(each.text for each in plan.consequences if each.reference == _IN_ONE_LINE))
    if kept:
        more = f" and {len(kept) - _MOST_KEPT} more" if len(kept) > _MOST_KEPT else ""
        yield f"  known defects: {printable('; '.join(kept[:_MOST_KEPT]), 400)}{more}; `rollout explain NAME` describes each [{_IN_ONE_LINE}]"


def drains_lines(plan: Plan) -> Iterator[str]:
    """Which nodes are drained first, and which pods may take longest; those without a bound come first."""
    drained = {name: node.drain for name, node in plan.nodes.items() if node.drain}
    if not drained:
        return
    within = seconds_text(plan.drain.within)
    yield ""
    yield "Drained first"
    pods = sum(drain.pods for drain in drained.values())
    names = printable(fold(drained), 160)
    yield (
        f"  {counted(len(drained), 'node')}, {counted(pods, 'pod')} to evict: {names}; each node has {within}, else it is left alone"
        " and uncordoned; a revert never drains"
    )
    endless = {name: drain for name, drain in drained.items() if drain.seconds is None}
    if endless:
        worst = next(iter(endless.values()))
        yield f"  WITHOUT A BOUND on {counted(len(endless), 'node')}  {printable(fold(endless), 160)}: {_slow(worst)}"
    by_time = sorted(drained.items(), key=lambda item: -(item[1].seconds or 0.0))
    slow = [(name, drain) for name, drain in by_time if drain.seconds is not None and drain.pods]
    for name, drain in slow[:MOST_DRAINS]:
        beyond = ", so its time is extended" if (drain.seconds or 0.0) > plan.drain.within else ""
        yield f"  {name}: up to {seconds_text(drain.seconds or 0.0)}{beyond}: {_slow(drain)}"
    if len(slow) > MOST_DRAINS:
        yield f"  … {counted(len(slow) - MOST_DRAINS, 'more node')}, none longer: see them all with -o json"


def _slow(drain: PlannedDrain) -> str:
    return f"pod {printable(drain.pod, 160)}: {printable(drain.why, 300)} (kubelet 1.{drain.minor})"


def loads_lines(plan: Plan) -> Iterator[str]:
    """The fleet's load on each registry; a zone's load if there are several zones and it changes."""
    fleet = [load for load in plan.loads if not load.zone]
    zones = [load for load in plan.loads if load.zone]
    if not plan.nodes or not fleet:
        return
    yield ""
    yield "Registries, at most"
    several = len({load.zone for load in zones}) > 1
    shown = [*fleet, *(load for load in zones if several and _changes(load))]
    for load in shown[:MOST]:
        yield f"  {_whose(load)}: {_load(load)}"
    if len(shown) > MOST:
        yield f"  … {len(shown) - MOST} more: see them all with -o json"


def _members(plan: Plan) -> dict[str, int]:
    counts = {group.name: 0 for group in plan.groups}
    for node in plan.nodes.values():
        counts[node.group] += 1
    return counts


def _groups(plan: Plan, entries: list[Consequence]) -> str:
    names = [entry.group for entry in entries]
    if len(names) == len(plan.groups) > 1:
        return "every group"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _whose(load: RegistryLoad) -> str:
    return printable(load.registry or "all registries", 80) + (f", zone {load.zone}" if load.zone else "")


def _load(load: RegistryLoad) -> str:
    unknown = f", {counted(load.unknown, 'node')} not known" if load.unknown else ""
    parallel, qps = (
        _step(load.parallel_before, load.parallel_after),
        _step(load.qps_before, load.qps_after),
    )
    return f"pulls at once {parallel}; pulls a second {qps} ({counted(load.nodes, 'node')}{unknown})"


def _step(before: Sum, after: Sum) -> str:
    return _sum(after) if before == after else f"{_sum(before)} → {_sum(after)}"


def _sum(found: Sum) -> str:
    if not found.unbounded:
        return f"{found.total:,}"
    rest = f", {found.total:,} for the others" if found.total else ""
    return f"no bound on {counted(found.unbounded, 'node')}{rest}"


def _changes(load: RegistryLoad) -> bool:
    return (load.parallel_before, load.qps_before) != (load.parallel_after, load.qps_after)
