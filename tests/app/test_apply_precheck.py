"""Whether a plan can still be applied, checked on its nodes without a claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.apply import FEW, look_before, runs_that_applied
from rollout.app.ports import RunHeader
from rollout.core.model.plan import Wave
from rollout.core.plans import plan_codec
from rollout.core.plans.apply_readiness import Now, PlanDecision
from tests.app.agents import SILENT, access_to, answer, holds, receipt, well
from tests.app.site import ACCESS, NAMES, SMALL, Site
from tests.app.test_node_worker import OLD


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(SqlJournal(tmp_path))


def found_by(site: Site) -> tuple[PlanDecision, list[str]]:
    """The answer, and the nodes that were asked for it."""
    asked = len(site.nodes.asked)
    found = look_before(SMALL, ACCESS, site.nodes, site.journal)
    said = site.nodes.asked[asked:]
    assert all(words["verb"] == "status" and "claim" not in words for _, words in said)
    return found.answer(), sorted(name for name, _ in said)


def test_an_applied_plan_is_recognised_by_its_nodes_and_its_run_by_the_journal(site: Site) -> None:
    site.apply()
    assert found_by(site) == (PlanDecision.ALREADY_APPLIED, sorted(NAMES))
    assert runs_that_applied(site.journal, SMALL) == ("r1",)


def test_one_node_of_the_first_wave_that_can_be_applied_is_enough(site: Site) -> None:
    site.nodes.says["n1", "status"] = answer("status", *well(), holds(OLD))
    assert found_by(site) == (PlanDecision.BEGIN, ["n1"])


def test_of_a_large_first_wave_a_few_nodes_are_enough(site: Site) -> None:
    names = [f"m{at}" for at in range(FEW + 5)]
    nodes = {name: replace(SMALL.nodes["n1"], name=name) for name in names}
    plan = replace(SMALL, nodes=nodes, waves=(Wave("all", tuple(names), 1.0),))
    site.nodes.says |= {(name, "status"): answer("status", *well(), holds(b"maxPods: 7\n")) for name in names}
    site.nodes.says[names[0], "status"] = answer("status", *well(), holds(OLD))
    assert look_before(plan, access_to(*names), site.nodes, site.journal).one_is_open
    assert sorted(name for name, _ in site.nodes.asked) == sorted(names[:FEW])
    site.nodes.says[names[0], "status"], site.nodes.says[names[-1], "status"] = (
        SILENT,
        answer("status", *well(), holds(OLD)),
    )
    assert look_before(plan, access_to(*names), site.nodes, site.journal).one_is_open, "the last node is read too"


@pytest.mark.parametrize("left", NAMES)
def test_a_node_that_left_is_not_read(site: Site, left: str) -> None:
    """Its name stands in a wave of the plan, and nothing is known of how it is reached."""
    there = access_to(*(name for name in NAMES if name != left))
    site.nodes.says |= {(name, "status"): answer("status", *well(), holds(OLD)) for name in NAMES}
    assert look_before(SMALL, there, site.nodes, site.journal).answer() is PlanDecision.BEGIN
    site.nodes.says.clear()
    site.apply()
    site.nodes.asked.clear()
    found = look_before(SMALL, there, site.nodes, site.journal)
    assert found.answer() is PlanDecision.ALREADY_APPLIED
    assert {name for name, _ in site.nodes.asked} == set(found.nodes) == set(there.targets)


def test_the_connections_are_kept_for_the_run(site: Site) -> None:
    look_before(SMALL, ACCESS, site.nodes, site.journal)
    assert site.nodes.released == []


def test_nodes_that_changed_since_need_a_new_plan(site: Site) -> None:
    for name in NAMES:
        site.nodes.says[name, "status"] = answer("status", *well(), holds(b"maxPods: 7\n"))
    assert found_by(site)[0] is PlanDecision.PLAN_AGAIN


def test_an_unreachable_node_never_counts_as_applied(site: Site) -> None:
    site.apply()
    site.nodes.says["n1", "status"] = SILENT
    assert found_by(site)[0] is PlanDecision.PLAN_AGAIN
    assert look_before(SMALL, ACCESS, site.nodes, site.journal).nodes["n1"] is Now.UNREAD


def test_a_plan_that_only_restarts_is_recognised_by_the_runs_that_confirmed_it(site: Site) -> None:
    """Its files are the same before and after, so they show no difference."""
    group = SMALL.groups[0]
    file = replace(group.change.files[0], after=OLD)
    plan = replace(SMALL, groups=(replace(group, change=replace(group.change, files=(file,))),))
    for name in NAMES:
        site.nodes.says[name, "status"] = answer("status", *well(), holds(OLD), receipt("r1-1", "confirmed"))
    assert look_before(plan, ACCESS, site.nodes, site.journal).answer() is PlanDecision.BEGIN
    site.journal.begin(RunHeader("r1", "c", "apply", "{}", 1, plan_codec.encode(plan), 0.0, "me", ""))
    assert look_before(plan, ACCESS, site.nodes, site.journal).answer() is PlanDecision.ALREADY_APPLIED
    assert look_before(replace(plan, taken="later"), ACCESS, site.nodes, site.journal).answer() is PlanDecision.BEGIN
