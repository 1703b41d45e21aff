"""Planning a cluster: from its files, its nodes and the journal. Nothing is changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rollout.app.planning import plan_and_apply, plan_cluster
from rollout.app.ports import Note
from rollout.core.model.freeze import NodeFreeze
from rollout.core.model.plan import Plan, Standing
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.presentation.freeze_text import frozen_note
from rollout.core.presentation.nothing_to_do import NothingToDo
from rollout.errors import InputError, Problem, StateError, UsageError
from tests.app.call import CLUSTER, FakeCall, FakeOperator
from tests.app.site import NAMES
from tests.app.test_load import TEMPLATES
from tests.kubelet.nodes import fleet, kubeadm

PLAYBOOK = "name: p\nsettings: {maxPods: 99}\n"


def asks(folder: Path) -> FakeCall:
    return FakeCall(folder, texts={"playbooks/p.yaml": PLAYBOOK, **TEMPLATES})


def read(call: FakeCall, *names: str) -> FleetSnapshot:
    return fleet(call.listed, {name: kubeadm(name) for name in names})


def frozen(call: FakeCall) -> None:
    call.journal().note(CLUSTER, Note(1.0, "ann@desk", frozen_note(NodeFreeze(1, "f-1", "ann@desk", "year end"))))


def test_a_plan_changes_the_nodes_that_differ_and_no_node_is_contacted_for_a_saved_fleet(tmp_path: Path) -> None:
    call = asks(tmp_path)
    planned = plan_cluster(call, CLUSTER, "", (), "", read(call, *NAMES))
    assert (set(planned.plan.nodes), planned.frozen, planned.preflight.refused) == (set(NAMES), (), False)
    assert call.agents.asked == []


def test_only_the_chosen_nodes_are_planned_and_an_override_wins(tmp_path: Path) -> None:
    call = asks(tmp_path)
    plan = plan_cluster(call, CLUSTER, "p", ("maxPods=98",), "n2", read(call, "n2")).plan
    assert (set(plan.nodes), plan.limit) == ({"n2"}, "n2")
    (change,) = (group.change for group in plan.groups)
    assert any("98" in reason for file in change.files for reason in file.reasons)


def test_the_nodes_are_read_if_no_fleet_is_given_and_what_was_read_can_be_kept(tmp_path: Path) -> None:
    call, kept = asks(tmp_path), list[FleetSnapshot]()
    call.silence("n3")
    planned = plan_cluster(call, CLUSTER, "", (), "", save=kept.append)
    (fleet_read,) = kept
    assert set(fleet_read.nodes) == set(NAMES)
    assert {entry.name: entry.standing for entry in planned.plan.left}["n3"] is Standing.UNREACHABLE
    assert call.opened == 0


def test_what_was_read_is_kept_even_if_planning_fails(tmp_path: Path) -> None:
    call, kept = asks(tmp_path), list[FleetSnapshot]()
    with pytest.raises(InputError):
        plan_cluster(call, CLUSTER, "", ("noSuchField=1",), "", read(call, *NAMES), save=kept.append)
    assert len(kept) == 1


def test_a_freeze_is_told_and_does_not_stop_planning(tmp_path: Path) -> None:
    call = asks(tmp_path)
    frozen(call)
    planned = plan_cluster(call, CLUSTER, "", (), "", read(call, *NAMES))
    assert planned.plan.nodes
    (line,) = planned.frozen
    assert "year end" in line


def test_a_sick_cluster_is_planned_and_known_as_refused(tmp_path: Path) -> None:
    call = asks(tmp_path)
    call.silence(*NAMES)
    planned = plan_cluster(call, CLUSTER, "", (), "")
    assert planned.preflight.refused
    assert set(planned.preflight.unhealthy) == set(NAMES)


def test_of_several_playbooks_one_must_be_chosen(tmp_path: Path) -> None:
    call = asks(tmp_path)
    call.texts["playbooks/q.yaml"] = PLAYBOOK.replace("name: p", "name: q")
    with pytest.raises(UsageError, match="choose a playbook with --playbook: p, q") as refused:
        plan_cluster(call, CLUSTER, "", (), "", read(call, *NAMES))
    assert refused.value.reference == "which-playbook"
    call.listed = replace(call.listed, playbook="q")
    assert plan_cluster(call, CLUSTER, "", (), "", read(call, *NAMES)).plan.playbook == "q"


def test_a_back_end_that_is_not_set_is_found_before_a_node_is_read(tmp_path: Path) -> None:
    call = asks(tmp_path)
    call.back_ends_fail = InputError((Problem("no-endpoint", "no kubeconfig"),))
    with pytest.raises(InputError):
        plan_cluster(call, CLUSTER, "", (), "")
    assert (call.agents.asked, call.opened) == ([], 0)


# ------------------------------------------------------------------------------------------- and apply


class Reader(FakeOperator):
    """``plan``: that was shown before the confirmation."""

    plan: Plan | None = None

    def planned(self, plan: Plan) -> None:
        assert self.confirmed == []
        self.plan = plan


def test_a_plan_that_is_made_now_is_shown_before_anything_is_done(tmp_path: Path) -> None:
    call, reader = asks(tmp_path), Reader()
    ended = plan_and_apply(call, reader, CLUSTER, "", (), "")
    assert isinstance(ended, NothingToDo), "the model nodes show no files that a plan could change"
    assert reader.plan == ended.plan
    assert (call.content(), call.opened) == (FakeCall(tmp_path / "fresh").content(), 0)


def test_nothing_is_planned_to_be_applied_in_a_freeze(tmp_path: Path) -> None:
    call, reader = asks(tmp_path), Reader()
    frozen(call)
    with pytest.raises(StateError) as refused:
        plan_and_apply(call, reader, CLUSTER, "", (), "")
    assert (refused.value.reference, reader.plan, call.agents.asked, call.opened) == ("frozen", None, [], 0)
