"""Every live node of a cluster against its owned settings: who is contacted, and what is told of fleets as they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.app.owned import noted_in, owned_in
from rollout.app.planning import plan_cluster
from rollout.app.ports import Note
from rollout.app.revert import revert_run
from rollout.app.verify import verify_cluster
from rollout.core.model.inventory import Inventory
from rollout.core.model.owned import OwnedStanding
from rollout.core.presentation.owned_text import (
    OwnedNodes,
    compared_line,
    compared_note,
    kept_nodes,
    owned_nodes_lines,
    owned_note,
    owned_noted,
)
from rollout.errors import InputError, UsageError
from rollout.features.own.asking.old_names import owned_under_old_names
from rollout.features.own.asking.owned import (
    NOTED_EVERY,
    OwnedComparison,
    compare_owned,
    counting_runs,
    end_ownership,
    end_rolled_back,
    note_comparison,
    own_run,
    plan_newcomers,
    same_change,
)
from rollout.features.own.rules import NewcomersThen
from rollout.features.own.words import old_name_lines
from tests.app.agents import SILENT
from tests.app.call import CLUSTER, FakeOperator
from tests.app.site import SMALL
from tests.app.test_load import TEMPLATES
from tests.cost import calls
from tests.features.own.kubelets import PLAYBOOK, Fleet, live, machine, owning

pytestmark = pytest.mark.drawn(12)

THREE = ("n1", "n2", "n3")


def compared(fleet: Fleet, limit: str = "") -> OwnedComparison:
    _, found = compare_owned(fleet, CLUSTER, limit)
    assert found is not None
    return found


def standings(found: OwnedNodes) -> dict[str, str]:
    assert len({each.name for each in found.nodes}) == len(found.nodes), "a node is told twice"
    return {each.name: each.standing.value for each in found.nodes}


def said(fleet: Fleet) -> str:
    return "\n".join(owned_nodes_lines(compared(fleet).found, fleet.engine.now()))


# ------------------------------------------------------------------------------------------- reading


def test_each_node_is_contacted_once(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    compared(fleet)
    assert fleet.contacts == Counter(THREE)
    assert fleet.verbs == Counter((name, verb) for name in THREE for verb in ("verify", "snapshot"))
    assert fleet.opened == 0


def test_a_node_that_does_not_answer_is_not_contacted_again(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.agents.says["n2", "verify"] = replace(SILENT, reference="host-key-unknown")
    found = compared(fleet).found
    (away,) = (each for each in found.nodes if each.name == "n2")
    assert (away.standing, away.lacks, away.reference) == (OwnedStanding.NOT_READABLE, False, "host-key-unknown")
    assert (fleet.contacts["n2"], fleet.verbs["n2", "snapshot"]) == (1, 0)
    assert "not readable: 1 node n2 [host-key-unknown]" in said(fleet)


# ------------------------------------------------------------------------------------------- the source of the nodes


def test_nodes_that_the_source_leaves_out_on_purpose_are_not_named(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.live = tuple(map(live, ("n1", "n2", "n4", "n5", "c1", "c2")))
    master = {"node-role.kubernetes.io/control-plane": ""}
    fleet.live = (*fleet.live, live("c3", labels=master), live("c4", taints=(f"{next(iter(master))}:NoSchedule",)))
    fleet.lists("n1", "n2", left_out=frozenset({"n4", "c1", "c2"}))
    found = standings(compared(fleet).found)
    assert found == {"n1": "as-wanted", "n2": "as-wanted", "n3": "gone", "n5": "not-readable"}
    assert "it is not in the inventory now" in said(fleet)
    fleet.lists("n1", "n2", left_out=frozenset({"n3", "n4", "n5"}))
    assert "n3: run r1 changed it; the selector or group of the inventory leaves it out now" in said(fleet).replace(
        "1 node n3", "n3"
    )


def test_a_changed_node_that_left_a_file_but_lives_is_told_once(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.live = tuple(map(live, THREE))
    fleet.lists("n1", "n2")
    (node,) = (each for each in compared(fleet).found.nodes if each.name == "n3")
    assert (node.standing, node.reference) == (OwnedStanding.NOT_READABLE, "not-in-inventory")


def test_a_cluster_that_has_lost_all_its_nodes_is_told(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.lists()
    found = compared(fleet)
    assert set(standings(found.found).values()) == {"gone"}
    assert "no node is in its selection now" in said(fleet)
    assert plan_newcomers(fleet, found, "", "").planned is None


# ------------------------------------------------------------------------------------------- runs


def test_a_selection_that_no_node_is_in_any_more_is_told(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    fleet.lists(*THREE, nodesets={"gpu": frozenset({"n1"})})
    fleet.changed(limit="@gpu")
    own_run(fleet, "")
    assert standings(compared(fleet).found) == {"n1": "as-wanted"}
    fleet.lists(*THREE, nodesets={"gpu": frozenset({"n2", "n3"})})
    assert standings(compared(fleet).found) == {"n2": "never-changed", "n3": "never-changed"}
    fleet.lists(*THREE, nodesets={"gpus": frozenset({"n1"})})
    assert standings(compared(fleet).found) == {}
    assert "no node is in its selection now" in said(fleet)


def test_a_run_that_is_rolled_back_later_is_not_owned_any_more_and_people_are_told_once(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    note_comparison(fleet, compared(fleet))
    assert owned_in(fleet.past(), CLUSTER) is not None
    revert_run(fleet, FakeOperator(), "r1", "n1", SMALL.limits, force=False)
    (back,) = (each for each in compared(fleet).found.nodes if each.lacks)
    assert (back.name, back.standing, back.reference) == ("n1", OwnedStanding.DRIFTED, "change-reverted")
    revert_run(fleet, FakeOperator(), "r1", "", SMALL.limits, force=False)
    assert owned_in(fleet.past(), CLUSTER) is None, "status, page and metrics show no old comparison"
    assert noted_in(fleet.past(), CLUSTER) is not None
    (told,) = end_rolled_back(fleet, CLUSTER)
    assert told == fleet.notes()[-1] == "settings of run r1 are not owned any more: it was rolled back"
    assert (noted_in(fleet.past(), CLUSTER), end_rolled_back(fleet, CLUSTER)) == (None, ())
    assert compare_owned(fleet, CLUSTER, "")[1] is None


STRICT = PLAYBOOK.replace("name: p", "name: q").replace("{maxPods: 99}", "{podPidsLimit: 512}")


def test_settings_of_two_playbooks_on_a_node_are_planned_under_the_conditions_of_both(tmp_path: Path) -> None:
    """The second lets a timer apply, the first one's approvals count for its settings all the same."""
    fleet = Fleet(tmp_path)
    fleet.lists(*THREE)
    fleet.changed()
    own_run(fleet, "")
    fleet.texts["playbooks/q.yaml"] = STRICT
    fleet.changed(playbook="q")
    own_run(fleet, "")
    approvals = "approvals: {count: 1, allowedSigners: signers}\nnewcomers: plan\n"
    fleet.texts |= {"playbooks/p.yaml": PLAYBOOK + approvals, "playbooks/q.yaml": STRICT + "newcomers: apply\n"}
    fleet.lists(*THREE, "n4")
    made = plan_newcomers(fleet, compared(fleet), "", "")
    assert made.planned is not None
    assert made.then is NewcomersThen.PLAN
    plan = made.planned.plan
    assert (plan.playbook, {each.name: each.value for each in plan.wanted}) == (
        "q",
        {"maxPods": "99", "podPidsLimit": "512"},
    )
    assert [each.key for each in plan.conditions].count("approvals") == 1


def test_of_two_owned_values_for_a_node_that_of_the_later_run_counts(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.changed("maxPods=50", limit="n[2-3]")
    own_run(fleet, "r2")
    own_run(fleet, "r1")
    fleet.lists(*THREE)
    assert set(standings(compared(fleet).found).values()) == {"as-wanted"}
    assert fleet.has("n1")
    assert fleet.has("n2", "maxPods: 50")
    assert "run r2 changed maxPods since: its value counts on n[2-3]" in said(fleet)
    fleet.machines["n3"] = machine("n3", 1)
    made = plan_newcomers(fleet, compared(fleet), "", "")
    assert made.planned is not None
    assert [(each.value, each.selection) for each in made.planned.plan.wanted] == [("50", "n3")]


def test_nodes_whose_playbook_is_gone_are_not_compared_and_its_run_is_named(tmp_path: Path) -> None:
    """Their receipts are compared all the same."""
    fleet = owning(tmp_path, *THREE)
    fleet.texts["playbooks/q.yaml"] = STRICT
    fleet.changed(playbook="q", limit="n[1-2]")
    own_run(fleet, "r2")
    fleet.lists(*THREE, "n4")
    del fleet.texts["playbooks/p.yaml"]
    fleet.contacts.clear()
    verified, found = compare_owned(fleet, CLUSTER, "")
    assert found is not None
    assert (set(verified.checks), fleet.contacts) == ({*THREE, "n4"}, Counter((*THREE, "n4")))
    assert set(standings(found.found).values()) == {"not-compared"}
    assert len(found.found.unread) == 4
    (why,) = {f"[{each.reference}] {each.evidence}" for each in found.found.nodes}
    assert why.startswith("[unknown-playbook]")
    assert "settings of run r1 are owned by it; restore it, or `rollout own --end r1`" in why
    with pytest.raises(UsageError, match="settings of run r1"):
        plan_newcomers(fleet, found, "", "")


def test_the_nodes_of_a_playbook_that_is_gone_do_not_stop_the_others(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    fleet.lists(*THREE)
    fleet.changed(limit="n[1-2]")
    own_run(fleet, "")
    fleet.texts["playbooks/q.yaml"] = STRICT
    fleet.changed(playbook="q", limit="n3")
    own_run(fleet, "")
    fleet.texts["playbooks/p.yaml"] = "nonsense: true\n"
    fleet.machines["n3"] = machine("n3", 1)
    found = compared(fleet)
    assert standings(found.found) == {"n1": "not-compared", "n2": "not-compared", "n3": "replaced"}
    made = plan_newcomers(fleet, found, "", "")
    assert made.planned is not None
    assert set(made.planned.plan.nodes) == {"n3"}
    assert plan_newcomers(fleet, found, "", "n3").planned is not None
    with pytest.raises(InputError):
        plan_newcomers(fleet, found, "", "n1")


def test_a_machine_that_replaced_another_and_has_the_settings_is_told_and_has_not_drifted(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    before, fleet.machines["n2"] = fleet.machines["n2"], machine("n2", 1)
    fleet.machines["n2"].files |= before.files
    verified, found = compare_owned(fleet, CLUSTER, "")
    assert found is not None
    assert standings(found.found) == {"n1": "as-wanted", "n2": "replaced", "n3": "as-wanted"}
    assert found.found.lacking == ()
    assert verified.exit_code == 0, verified
    assert "replaced (same name, another machine-id): 1 node n2: has them" in said(fleet)
    fleet.machines["n2"] = machine("n2", 2)
    verified, found = compare_owned(fleet, CLUSTER, "")
    assert found is not None
    assert (found.found.lacking, verified.exit_code) == (("n2",), 10)


def test_a_field_that_newer_kubelets_do_not_have_is_not_compared_there(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    fleet.lists(*THREE)
    fleet.texts["playbooks/p.yaml"] = PLAYBOOK.replace("maxPods: 99", "--network-plugin-mtu: 1400")
    fleet.changed()
    own_run(fleet, "")
    fleet.machines["n2"] = machine("n2", 1, "1.27.3")
    (upgraded,) = (each for each in compared(fleet).found.nodes if each.name == "n2")
    assert (upgraded.standing, upgraded.lacks) == (OwnedStanding.NOT_COMPARED, False), upgraded
    assert "1.24" in upgraded.evidence, upgraded
    assert plan_newcomers(fleet, compared(fleet), "", "").planned is None


# ------------------------------------------------------------------------------------------- newcomers


def newcomers(fleet: Fleet) -> tuple[set[str], dict[str, str]]:
    """The planned ones, and those that wait with the reason."""
    made = plan_newcomers(fleet, compared(fleet), "", "")
    return set(made.planned.plan.nodes) if made.planned else set(), dict(made.waiting)


def test_nodes_that_are_not_ready_for_long_enough_wait_and_the_others_are_planned(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.texts["playbooks/p.yaml"] = f"{PLAYBOOK}newcomers: {{then: apply, readyFor: 10m}}\n"
    fleet.live = (
        *map(live, (*THREE, "n4")),
        live("n5", since="1970-01-01T00:55:00Z"),
        live("n6", ready="False", since="1969-12-01T00:00:00Z"),
    )
    fleet.lists(*THREE, "n4", "n5", "n6", "n7")
    fleet.engine.at = 3600.0
    planned, waiting = newcomers(fleet)
    assert planned == {"n4"}
    assert waiting == {
        "n5": "its Node has been Ready for less than 10 min; planned from 1970-01-01 01:05:00 UTC on",
        "n6": "its Node is not Ready since 1969-12-01 00:00:00 UTC",
        "n7": "the API server has no Node of this name",
    }
    fleet.engine.at = 3900.0
    assert newcomers(fleet)[0] == {"n4", "n5"}


def test_nodes_that_only_the_api_server_lists_are_not_compared_without_its_list(tmp_path: Path) -> None:
    """Each node of the inventory is as wanted. A node that is missing there may lack the setting all the same."""
    fleet = owning(tmp_path, *THREE)
    told = "nodes that only the API server lists were not compared: "

    def comparison(limit: str = "") -> OwnedNodes:
        _, found = compare_owned(fleet, CLUSTER, limit)
        assert found is not None
        return found.found

    assert f"{told}no kubeconfig is named" in said(fleet)
    assert not comparison().is_partial, "nobody has named an API server"
    fleet.live = (live("other-1"),)
    fleet.lists(*THREE)
    assert (
        f"{told}the API server lists 1 Node, and 0 of 3 nodes of the inventory: it may be that of another cluster"
        in said(fleet)
    )
    assert comparison().is_partial
    fleet.live = (live("n1"), live("other-1"), live("other-2"))
    fleet.lists(*THREE)
    assert f"{told}the API server lists 3 Nodes, and 1 of 3 nodes of the inventory" in said(fleet), (
        "n1 is a common name"
    )
    assert comparison().is_partial
    assert not comparison("n1").unlisted, "a part of the nodes was asked for"
    fleet.live = tuple(map(live, THREE))
    fleet.lists(*THREE)
    assert (comparison().unlisted, comparison().is_partial) == ("", False)
    fleet.api_away = "Connection refused"
    assert f"{told}Connection refused [not-reached]" in said(fleet)
    assert comparison().is_partial


def test_ages_are_those_of_the_nodes_of_the_api_server(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.lists(*THREE, "n4")
    assert "when nodes joined is not known: no kubeconfig is named" in said(fleet)
    fleet.live = (*map(live, THREE), live("n4", created="1970-01-01T00:30:00Z"))
    fleet.lists(*THREE, "n4")
    fleet.engine.at = 3600.0
    assert "never changed by rollout: 1 node n4, joined 30 min ago: maxPods: not set → 99 (run r1)" in said(fleet)


def test_a_plan_of_newcomers_has_the_limits_gates_and_budgets_of_the_playbook(tmp_path: Path) -> None:
    """The share of a rack is one of all its nodes, and never more than of the few that are new."""
    few = PLAYBOOK.replace("perRack: 100%", "perRack: 1, inFlight: 2") + "budgets: {wave: 1, rack: 1, fleet: 1}\n"
    fleet = Fleet(tmp_path, texts={"playbooks/p.yaml": few, **TEMPLATES})
    fleet.lists(*THREE)
    fleet.changed()
    own_run(fleet, "")
    whole = plan_cluster(fleet, CLUSTER, "", ("maxPods=100",), "").plan
    fleet.lists(*THREE, "n4", "n5", "n6", "n7")
    made = plan_newcomers(fleet, compared(fleet), "", "n[5-7]")
    assert made.planned is not None
    plan = made.planned.plan
    assert set(plan.nodes) == {"n5", "n6", "n7"}
    assert (plan.limits, plan.gates, plan.budgets, plan.on_failure) == (
        whole.limits,
        whole.gates,
        whole.budgets,
        whole.on_failure,
    )
    assert [len(wave.nodes) for wave in plan.waves] == [1, 2], "a canary, then the rest"
    assert plan.racks == {"r": 7}


def test_a_plan_stays_as_approved_while_pods_nodes_and_times_change(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.lists(*THREE, "n4")
    first = plan_newcomers(fleet, compared(fleet), "", "").planned
    fleet.lists(*THREE, "n4", "n5", digest="another")
    others = plan_newcomers(fleet, compared(fleet), "", "n4").planned
    assert first is not None
    assert others is not None
    assert first.plan != others.plan
    assert same_change(first.plan, others.plan)
    more = plan_newcomers(fleet, compared(fleet), "", "").planned
    assert more is not None
    assert not same_change(first.plan, more.plan)


def test_nothing_is_planned_from_an_old_list_of_nodes(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.lists(*THREE, "n4")
    fleet.remembers = "2026-11-20 16:00:00 UTC"
    found = compared(fleet)
    assert "the nodes are those of 2026-11-20 16:00:00 UTC" in said(fleet)
    with pytest.raises(InputError, match="no API server"):
        plan_newcomers(fleet, found, "", "")


# ------------------------------------------------------------------------------------------- notes


def test_a_comparison_is_kept_once_an_hour_unless_it_differs(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    before = len(fleet.notes())
    assert [note_comparison(fleet, compared(fleet)) for _ in range(3)] == [False] * 3
    assert len(fleet.notes()) == before + 1
    fleet.lists(*THREE, "n4")
    assert [note_comparison(fleet, compared(fleet)) for _ in range(3)] == [True, False, False], "people are told once"
    assert len(fleet.notes()) == before + 2
    fleet.engine.at += NOTED_EVERY
    assert not note_comparison(fleet, compared(fleet))
    assert len(fleet.notes()) == before + 3
    assert not note_comparison(fleet, compared(fleet, "n4")), "a part of the cluster is no comparison of it"
    assert len(fleet.notes()) == before + 3


def test_the_nodes_of_a_note_are_read_back_and_very_many_unlike_names_are_a_number() -> None:
    few, many = (
        ("n1", "n2", "x7"),
        ["".join(chr(97 + at // 26**place % 26) for place in range(3)) * 8 for at in range(900)],
    )
    assert (kept_nodes(few), kept_nodes(())) == ("n[1-2],x7", "")
    noted = owned_noted([(1.0, owned_note("r1", "")), (2.0, compared_note(5, kept_nodes(many), kept_nodes(few)))])
    assert noted is not None
    assert noted.compared is not None
    assert (noted.compared.lacking, noted.compared.not_compared) == (900, "n[1-2],x7")
    assert "5 nodes as wanted, 900 nodes without them, not compared: n[1-2],x7;" in compared_line(noted.compared)
    assert len(kept_nodes(many)) < 30
    assert kept_nodes(many) != kept_nodes([*many[1:], "other"]), "people are told of others"


# ------------------------------------------------------------------------------------------- a cluster is renamed


class Renamed(Fleet):
    """Its inventory has the name ``new`` by now."""

    def inventory(self, cluster: str) -> Inventory:
        return replace(self.listed, cluster=cluster)

    inventory_or_remembered = inventory


@pytest.mark.parametrize("old_is_listed", [True, False])
def test_settings_that_are_owned_under_the_old_name_of_a_cluster_are_named_with_what_ends_them(
    tmp_path: Path, *, old_is_listed: bool
) -> None:
    """Receipts of the nodes show that name: another project's cluster in the same journal is not named."""
    before = owning(tmp_path, *THREE)
    fleet = Renamed(tmp_path, machines=before.machines, texts={"inventories/new.yaml": "", **before.texts})
    fleet.lists(*THREE, "n4")
    if old_is_listed:
        fleet.texts[f"inventories/{CLUSTER}.yaml"] = ""
    other = fleet.journal()
    other.begin(replace(other.header("r1"), run="x1", cluster="another", at=5.0))
    other.note("another", Note(6.0, "me", owned_note("x1", "maxPods: 3")))

    def told() -> list[str]:
        verified = verify_cluster(fleet, "new", "")
        return list(old_name_lines("new", owned_under_old_names(fleet, "new", verified.told)))

    if old_is_listed:
        assert told() == []
        return
    said = told()
    assert said[0] == (
        f"settings are owned under cluster {CLUSTER}, which no inventory here names: runs of it changed 3 nodes of new: n[1-3]"
    )
    assert "`rollout own --end r1` ends that" in said[1]
    end_ownership(fleet, "r1")
    assert told() == []


# ------------------------------------------------------------------------------------------- growth


@pytest.mark.night
def test_four_times_the_nodes_cost_about_four_times_as_much(tmp_path: Path) -> None:
    def cost(count: int) -> int:
        (tmp_path / str(count)).mkdir()
        fleet = owning(tmp_path / str(count), *THREE)
        fleet.lists(*(f"node-{at:05d}" for at in range(count)))
        return calls(lambda: plan_newcomers(fleet, compared(fleet), "", ""))

    assert cost(64) < 5.0 * cost(16)


@pytest.mark.night
def test_four_times_the_runs_cost_about_four_times_as_much(tmp_path: Path) -> None:
    fleet = owning(tmp_path, "n1")
    costs = []
    for runs in (4, 16):
        while len(fleet.past().listed()) < runs:
            fleet.changed(f"maxPods={len(fleet.past().listed()) + 200}")
        costs.append(calls(lambda: counting_runs(fleet.past(), CLUSTER)))
    assert costs[1] < 5.0 * costs[0]
