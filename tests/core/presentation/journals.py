"""Journals for reports: the machine driven over simulated nodes, with nodes and gates that give reasons."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

from rollout.app.driver import _changed as changed
from rollout.app.plan import build_plan
from rollout.core.model.areas import AreaKind, sizes
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import Budget, Cause, Limits, RevertScope, Scope, Share
from rollout.core.model.verdict import Reading, Verdict
from rollout.core.presentation.headline import WhatChanged, changed_settings
from rollout.core.presentation.pages.story import Past, Story, tell
from rollout.core.run.commands import Ask, Command
from rollout.core.run.events import Answered, Event, Trigger, WaveJudged
from rollout.core.run.order import apply_order
from rollout.core.run.state import Order, RunState
from tests.kubelet.nodes import IMAGE_PULLS, POLICY, inventory, mixed
from tests.plays import Drive

BUDGETS = (
    Budget(Scope.WAVE, frozenset(Cause), Share(count=5)),
    Budget(Scope.RACK, frozenset(Cause), Share(count=2)),
    Budget(Scope.FLEET, frozenset(Cause), Share(percent=1.0)),
)

BEGAN = 1_795_190_400.0
"""2026-11-20 16:00 UTC."""

WORDS = {
    Trigger.REVERTED_UNHEALTHY: (
        "unit-failed",
        "kubelet.service failed: exit code 1, <failed to parse kubelet flag> & gone",
    ),
    Trigger.UNREACHED: ("connect-timeout", "no answer on port 22 within 10 s"),
    Trigger.GATES_FAILED: ("healthz", "/healthz answered 500"),
}


class Told(Drive):
    """A play with messages in its answers, like those of an agent and a Prometheus; its journal is what the driver would write."""

    def __init__(self, order: Order) -> None:
        self.dice = random.Random(7)  # noqa: S311 - the same every time
        super().__init__(order, self.dice)
        self.set_clock(BEGAN)
        self.bad_round = 0  # the round of the wave gates, from 1, that does not pass
        self.bad = Reading("pull errors", Verdict.FAIL, "")

    def stepped(self, event: Event, before: RunState, commands: Sequence[Command]) -> None:
        if commands or changed(before, self.state):
            super().stepped(event, before, commands)

    def said(self, ask: Ask, event: Answered) -> Answered:
        reference, message = WORDS.get(event.trigger, (event.reference, event.message))
        return replace(event, reference=reference, message=message)

    def judgement(self, wave: int) -> Callable[[], WaveJudged]:
        told = self._judged(wave)
        return lambda: replace(told, at=self.now)

    def _judged(self, wave: int) -> WaveJudged:
        ours, theirs = 0.008 + self.dice.random() / 500, 0.009 + self.dice.random() / 1000
        said = f"touched {ours:.4f} (median of 3, 0.006 to 0.011), control {theirs:.4f} (median of 200, 0.004 to 0.02): fine"
        readings = (
            Reading("pull errors", Verdict.PASS, said),
            Reading("ingress", Verdict.PASS, "answered 200"),
            Reading("alerts", Verdict.PASS, "no alert fires"),
        )
        if len(self.judged) == self.bad_round:
            readings = (self.bad, *readings[1:])
        worst = next((r for r in readings if r.verdict is not Verdict.PASS), readings[0])
        evidence = "" if worst.verdict is Verdict.PASS else f"gate {worst.gate!r}: {worst.evidence}"
        return WaveJudged(self.now, wave, worst.verdict, evidence, readings)


@cache
def plan_of(count: int, per_rack: int = 60) -> Plan:
    found = inventory(count, per_rack)
    policy = replace(
        POLICY, limits=Limits(per_rack=Share(percent=20.0)), on_failure=RevertScope.WAVE, budgets=BUDGETS, soak=30.0
    )
    plan = build_plan(found, policy, mixed(found), dict.fromkeys(found.nodes, IMAGE_PULLS), tuple(found.nodes), "")
    assert plan.racks == sizes(found.nodes.values(), AreaKind.RACK)
    return plan


def play_of(plan: Plan, **changes: object) -> Told:
    order = replace(apply_order("r20261120-160000-ab12", plan), wave_gates=True, **changes)  # type: ignore[arg-type]
    return Told(order)


def story_of(play: Drive, plan: Plan | None = None, who: str = "ann@ops", reason: str = "pulls time out") -> Story:
    return tell(Past(play.order, 1, play.began, who, reason, plan, change_in(plan)), play.journal)


def change_in(plan: Plan | None) -> WhatChanged:
    """What a plan changes, as a journal would read it."""
    groups = plan.groups if plan is not None else ()
    reasons = [reason for group in groups for file in group.change.files for reason in file.reasons]
    return WhatChanged(plan.playbook if plan is not None else "", changed_settings(reasons))


@cache
def halted(count: int = 480) -> tuple[Plan, Told]:
    """What ``halted_anew`` plays. All callers share it, and only read it."""
    return halted_anew(count)


def halted_anew(count: int) -> tuple[Plan, Told]:
    """A rack with kubelets that do not start with the new files, and a node elsewhere that does not answer."""
    plan = plan_of(count)
    play = play_of(plan)
    late = [n.name for n in plan.nodes.values() if n.rack == "rack04" and n.wave > 2]
    play.sicken(*late)
    last = next(name for name in reversed(plan.waves[3].nodes) if plan.nodes[name].rack == "rack02")
    play.cut_off(last)
    play.run()
    return plan, play


@cache
def gate_failed() -> tuple[Plan, Told]:
    """A wave gate that fails in a round of the second wave's soak. All callers share it, and only read it."""
    plan = plan_of(120)
    play = play_of(plan, on_failure=RevertScope.RUN)
    play.bad_round = 5
    said = "touched 0.31 (median of 3, 0.2 to 0.4), control 0.0092 (median of 100, 0.004 to 0.02): 0.3 is worse"
    play.bad = Reading("pull errors", Verdict.FAIL, said)
    play.run()
    return plan, play


@cache
def done(count: int = 120) -> tuple[Plan, Told]:
    """All callers share it, and only read it."""
    plan = plan_of(count)
    play = play_of(plan)
    play.run()
    return plan, play


def stopped(when: Callable[[RunState], bool]) -> tuple[Plan, Told]:
    """A run that has not ended."""
    plan = plan_of(120)
    play = play_of(plan)
    play.run(until=when)
    return plan, play


@cache
def done_story() -> Story:
    plan, play = done()
    return story_of(play, plan)


@cache
def story_under_way() -> Story:
    """In its third wave."""
    plan, play = stopped(lambda state: state.wave == 2)
    return story_of(play, plan)
