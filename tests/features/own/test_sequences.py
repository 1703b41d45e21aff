"""What operators do one after the other with a cluster that owns settings: after each step what is told is so, and the next command works."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.app.apply import apply_plan
from rollout.app.resume import resume_run
from rollout.core.model.inventory import Node
from rollout.core.model.plan import Plan
from rollout.core.run.state import Ending, NodeState, RunState, Verb
from rollout.errors import StateError, UsageError
from rollout.features.freeze.asking import freeze_cluster, unfreeze_cluster
from rollout.features.own.asking.owned import check_none_frozen, own_run, plan_newcomers
from tests.app.call import CLUSTER, FakeOperator
from tests.features.own.kubelets import PLAYBOOK, Fleet, apply_newcomers, machine, owning
from tests.features.own.test_fleets import THREE, compared, said, standings

NEW = ("n4", "n5", "n6")


def planned(fleet: Fleet) -> Plan:
    made = plan_newcomers(fleet, compared(fleet), "", "").planned
    assert made is not None
    return made.plan


def applied(fleet: Fleet, plan: Plan) -> RunState:
    with closing(fleet.nodes()) as nodes:
        ended = apply_plan(fleet, FakeOperator(), nodes, plan, fleet.listed, (), fresh=False)
    assert isinstance(ended, RunState)
    return ended


def told(fleet: Fleet) -> dict[str, str]:
    return standings(compared(fleet).found)


def grown(folder: Path, **texts: str) -> Fleet:
    """Three nodes own the setting, and three have joined since."""
    fleet = owning(folder, *THREE)
    fleet.texts |= texts
    fleet.lists(*THREE, *NEW)
    return fleet


# ------------------------------------------------------------------------------------------- machines are replaced


def test_a_machine_that_is_replaced_between_two_runs_is_planned_as_a_new_one(tmp_path: Path) -> None:
    fleet = grown(tmp_path)
    applied(fleet, planned(fleet))
    fleet.machines["n5"] = machine("n5", 1)
    assert told(fleet)["n5"] == "replaced"
    plan = planned(fleet)
    assert set(plan.nodes) == {"n5"}
    assert applied(fleet, plan).ending is Ending.DONE
    assert set(told(fleet).values()) == {"as-wanted"}
    assert fleet.has("n5")


@pytest.mark.parametrize("when", ["planned", "in the run"])
def test_a_machine_that_is_replaced_after_its_plan_is_left_alone_and_planned_anew(tmp_path: Path, when: str) -> None:
    """Its name is in the plan, and nobody approved this machine."""
    fleet = grown(tmp_path)
    plan = planned(fleet)

    def replaced() -> None:
        fleet.machines["n6"] = machine("n6", 1)

    if when == "planned":
        replaced()
    else:
        (first, *_) = plan.waves[0].nodes
        assert first != "n6"
        fleet.engine.then[first, Verb.APPLY] = replaced
    ended = applied(fleet, plan)
    fleet.engine.then.clear()
    assert (ended.nodes["n6"].state, ended.nodes["n6"].reference) == (NodeState.GONE, "machine-id-changed")
    assert not fleet.has("n6")
    assert told(fleet) == dict.fromkeys((*THREE, "n4", "n5"), "as-wanted") | {"n6": "never-changed"}
    again = planned(fleet)
    assert set(again.nodes) == {"n6"}
    assert applied(fleet, again).ending is Ending.DONE
    assert set(told(fleet).values()) == {"as-wanted"}


def test_a_machine_that_is_replaced_right_after_its_change_is_not_told_as_changed(tmp_path: Path) -> None:
    """The run confirmed the machine that had the name then."""
    fleet = grown(tmp_path)
    plan = planned(fleet)
    first = plan.waves[0].nodes[0]

    def replaced() -> None:
        fleet.machines[first] = machine(first, 1)

    fleet.engine.then[first, Verb.CLEAN] = replaced
    applied(fleet, plan)
    fleet.engine.then.clear()
    assert told(fleet)[first] == "replaced"
    assert set(planned(fleet).nodes) == {first}
    apply_newcomers(fleet, planned(fleet))
    assert set(told(fleet).values()) == {"as-wanted"}


# ------------------------------------------------------------------------------------------- a change window ends

DAILY = "days: [mon, tue, wed, thu, fri, sat, sun]"
TWICE = f"changeWindows: {{zone: UTC, windows: [{{{DAILY}, from: '00:00', to: '01:00'}}, {{{DAILY}, from: '02:00', to: '03:00'}}]}}\n"


def test_a_window_that_ends_in_the_wave_of_newcomers_lets_it_go_on_in_the_next_one(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.texts["playbooks/p.yaml"] = PLAYBOOK.replace("perRack: 100%", "perRack: 1") + TWICE
    fleet.lists(*THREE, *NEW)
    fleet.engine.at = 3590.0
    at: list[float] = []
    for name in NEW:
        fleet.engine.then[name, Verb.APPLY] = lambda: at.append(fleet.engine.at)
    first = planned(fleet).waves[0].nodes[0]
    fleet.engine.then[first, Verb.CONFIRM] = lambda: setattr(fleet.engine, "at", 3600.0)
    ended = applied(fleet, planned(fleet))
    assert ended.ending is Ending.DONE
    assert sorted(each >= 7200.0 for each in at) == [False, True, True]
    assert set(told(fleet).values()) == {"as-wanted"}


def test_a_run_of_newcomers_that_is_stopped_outside_its_window_is_told_and_resumed_in_the_next_one(
    tmp_path: Path,
) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.texts["playbooks/p.yaml"] = PLAYBOOK.replace("perRack: 100%", "perRack: 1") + TWICE
    fleet.lists(*THREE, *NEW)
    fleet.engine.at = 3590.0
    plan = planned(fleet)
    first = plan.waves[0].nodes[0]

    def closes() -> None:
        fleet.engine.at = 3600.0
        fleet.engine.stop()

    fleet.engine.then[first, Verb.CONFIRM] = closes
    ended = applied(fleet, plan)
    fleet.engine.then.clear()
    assert ended.ending is Ending.INTERRUPTED
    rest = sorted({*NEW} - {first})
    assert {name for name, each in told(fleet).items() if each == "never-changed"} == {*rest}
    fleet.engine.stopped, fleet.engine.at = False, 7200.0
    resumed = resume_run(fleet, FakeOperator(), ended.order.run, promote=False).state
    assert resumed.ending is Ending.DONE
    assert set(told(fleet).values()) == {"as-wanted"}


# ------------------------------------------------------------------------------------------- a freeze


def freeze(fleet: Fleet) -> None:
    assert freeze_cluster(fleet, CLUSTER, lambda _seconds: None).document.failed == ()


def test_nodes_that_join_a_frozen_cluster_are_told_and_planned_and_changed_after_the_freeze(tmp_path: Path) -> None:
    fleet = owning(tmp_path, *THREE)
    fleet.reason = "incident 4711"
    freeze(fleet)
    fleet.lists(*THREE, *NEW)
    assert {name for name, each in told(fleet).items() if each == "never-changed"} == {*NEW}
    made = plan_newcomers(fleet, compared(fleet), "", "").planned
    assert made is not None
    assert "incident 4711" in " ".join(made.frozen)
    with pytest.raises(StateError, match="incident 4711") as refused:
        applied(fleet, made.plan)
    assert refused.value.reference == "frozen"
    assert not any(map(fleet.has, NEW))
    unfreeze_cluster(fleet, FakeOperator(), CLUSTER)
    assert applied(fleet, made.plan).ending is Ending.DONE
    assert set(told(fleet).values()) == {"as-wanted"}


def test_a_timer_changes_no_node_that_joined_after_another_controller_froze_the_cluster(tmp_path: Path) -> None:
    """The freeze is on the nodes that were there, and in the other controller's journal."""
    fleet = owning(tmp_path, *THREE)
    for name in THREE:
        fleet.machines[name].frozen = "7 f-1 frozen YW5u eWVhciBlbmQ="
    fleet.lists(*THREE, "n4")
    comparison = compared(fleet)
    made = plan_newcomers(fleet, comparison, "", "").planned
    assert made is not None
    assert "frozen by ann: year end" in " ".join(made.frozen)
    with pytest.raises(StateError, match="frozen by ann: year end") as refused:
        check_none_frozen(comparison)
    assert refused.value.reference == "frozen"
    for name in THREE:
        fleet.machines[name].frozen = "8 f-2 open - -"
    check_none_frozen(compared(fleet))


# ------------------------------------------------------------------------------------------- newcomers leave again


@pytest.mark.parametrize("leaves", ["before the plan", "before the apply"])
def test_a_newcomer_that_leaves_before_it_is_changed_is_told_no_more(tmp_path: Path, leaves: str) -> None:
    fleet = grown(tmp_path)
    if leaves == "before the plan":
        fleet.lists(*THREE, "n4")
        assert set(planned(fleet).nodes) == {"n4"}
    plan = planned(fleet)
    fleet.lists(*THREE, "n4")
    ended = applied(fleet, plan)
    assert {name for name, each in ended.nodes.items() if each.state is NodeState.CONFIRMED} == {"n4"}
    assert told(fleet) == dict.fromkeys((*THREE, "n4"), "as-wanted")
    fleet.lists(*THREE, *NEW)
    assert set(planned(fleet).nodes) == {"n5", "n6"}, "it came back"


def test_newcomers_that_all_leave_before_the_apply_leave_nothing_to_do(tmp_path: Path) -> None:
    fleet = grown(tmp_path)
    plan = planned(fleet)
    fleet.lists(*THREE)
    with pytest.raises(UsageError, match="no node of the plan is in the fleet any more") as refused:
        applied(fleet, plan)
    assert refused.value.reference == "plan-is-stale"
    assert len(fleet.past().listed()) == 1, "no run has begun"
    assert told(fleet) == dict.fromkeys(THREE, "as-wanted")


# ------------------------------------------------------------------------------------------- labels change


def labelled(fleet: Fleet, *gpu: str) -> None:
    fleet.lists(*THREE, "n4")
    label = {"gpu": "yes"}
    nodes = {name: Node(name, name, "r", "z", labels=label if name in gpu else {}) for name in fleet.listed.nodes}
    fleet.listed = replace(fleet.listed, nodes=nodes, nodesets={"all": frozenset(nodes), "gpu": frozenset(gpu)})


def test_a_node_that_gets_the_label_of_owned_settings_is_planned_and_one_that_loses_it_is_left(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path)
    labelled(fleet, "n1", "n2")
    fleet.changed(limit="@gpu")
    own_run(fleet, "")
    assert told(fleet) == {"n1": "as-wanted", "n2": "as-wanted"}
    labelled(fleet, "n2", "n3")
    assert told(fleet) == {"n2": "as-wanted", "n3": "never-changed"}
    apply_newcomers(fleet, planned(fleet))
    assert told(fleet) == {"n2": "as-wanted", "n3": "as-wanted"}
    assert fleet.has("n1"), "ownership ends there, and the value stays"
    labelled(fleet, "n1", "n2", "n3", "n4")
    assert told(fleet) == {"n1": "as-wanted", "n2": "as-wanted", "n3": "as-wanted", "n4": "never-changed"}
    labelled(fleet)
    assert "no node is in its selection now" in said(fleet)
