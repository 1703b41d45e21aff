"""How long a plan will take, from its own numbers. An estimate for people; no decision depends on it.

A wave takes ``max(pace-bound, window-bound) + soak``:

* pace-bound: nodes ÷ pace (the restarts per second that are allowed), and one node's time for the last one;
* window-bound: rounds × one node's time, where a round is what may be in flight at once: rounds is the largest of
  (nodes of a rack in the wave ÷ the rack's window) over the racks, (nodes of a zone in the wave ÷ its limit) over the
  zones, and nodes ÷ in flight (or ÷ the wave's own limit), each rounded up; a rack's window is its limit, or its budget
  where that is smaller (see ``capacity.nodes_to_change``);
* one node's time: what the last run measured, else 15 s (connect, stage, restart, a process that outlives
  RestartSec=10), and its settle window. The first wave's nodes go twice and once back when they rehearse;
* a drained node takes as long as its pods may take to end, at most the time they are given, and one round more. A wave
  counts the longest of these, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import ceil

from rollout.core.model import areas
from rollout.core.model.plan import Plan, PlannedDrain, Wave
from rollout.core.model.playbook import Limits, Scope, seconds_to_revert

NODE_SECONDS = 15.0
"""The assumed time to change one node, until a run has measured it."""

BACK_SECONDS = 20.0
"""The assumed time to revert one node, until a rehearsal has measured it."""


ROUND_SECONDS = 5.0
"""The time until the first pod is evicted and until gone pods are noticed."""


def forth_seconds(plan: Plan) -> float:
    """Seconds to change one node."""
    return plan.way_back.apply_seconds if plan.way_back and plan.way_back.apply_seconds else NODE_SECONDS


def back_seconds(plan: Plan) -> float:
    """Seconds to revert one node."""
    return plan.way_back.revert_seconds if plan.way_back else BACK_SECONDS


def all_back(plan: Plan, limits: Limits) -> float:
    """Seconds to revert every node of the plan."""
    by_area = areas.rounds(plan.nodes.values(), replace(plan, limits=limits))
    return seconds_to_revert(len(plan.nodes), by_area, limits, back_seconds(plan))


def of_wave(plan: Plan, wave: Wave) -> float:
    """Expected seconds for one wave, its soak included."""
    settles = {group.name: group.change.settle for group in plan.groups}
    settle = max((settles[plan.nodes[name].group] for name in wave.nodes), default=0.0)
    each = forth_seconds(plan) + settle
    if plan.rehearsal and wave is plan.waves[0]:
        each = 2 * each + back_seconds(plan) + settle
    each += max((drain_seconds(plan, drain) for name in wave.nodes if (drain := plan.nodes[name].drain)), default=0.0)
    pace = len(wave.nodes) / plan.limits.pace + each
    return max(pace, rounds(plan, wave) * each) + wave.soak


def drain_seconds(plan: Plan, drain: PlannedDrain) -> float:
    """Seconds until a node is empty, if no PodDisruptionBudget keeps its pods."""
    within = plan.drain.within
    return (within if drain.seconds is None else min(drain.seconds, within)) + ROUND_SECONDS


def rounds(plan: Plan, wave: Wave) -> int:
    """How many rounds of nodes in flight a wave needs."""
    changed = changed_by_rack(plan)
    racks = Counter(plan.nodes[name].rack for name in wave.nodes)
    by_rack = max((ceil(count / rack_window(plan, rack, changed[rack])) for rack, count in racks.items()), default=0)
    by_area = areas.rounds((plan.nodes[name] for name in wave.nodes), plan)
    at_once = min(plan.limits.in_flight, wave.at_once or plan.limits.in_flight)
    return max(by_rack, by_area, ceil(len(wave.nodes) / at_once))


def rack_limit(plan: Plan, rack: str) -> int:
    """How many nodes of a rack rollout may make unavailable at once."""
    return plan.limits.per_rack.of(plan.racks[rack])


def rack_window(plan: Plan, rack: str, changed: int) -> int:
    """How many of a rack's ``changed`` nodes may be in flight at once while none has failed."""
    budgets = (budget.share.of(changed) for budget in plan.budgets if budget.scope is Scope.RACK)
    return min((rack_limit(plan, rack), *budgets))


def changed_by_rack(plan: Plan) -> Mapping[str, int]:
    """Rack → its nodes that the plan changes."""
    return Counter(node.rack for node in plan.nodes.values())


def total(plan: Plan) -> float:
    """Expected seconds for the whole plan if nothing fails."""
    return sum(of_wave(plan, wave) for wave in plan.waves)
