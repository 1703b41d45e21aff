"""Reverting a run by its journal, with the proof on every node."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rollout.app.ports import Note
from rollout.app.revert import NothingReverted, RunResult, other_fleet_lines, revert_run
from rollout.core.model.config_map import ConfigMapChange
from rollout.core.model.freeze import NodeFreeze
from rollout.core.model.plan import CONTROL_PLANE_WAVE, Wave
from rollout.core.model.proof import Proven
from rollout.core.presentation.freeze_text import frozen_note
from rollout.core.run.state import Ending, NodeState, Verb
from rollout.errors import StateError, UsageError
from tests.app.agents import CONFIG, NEW
from tests.app.call import CLUSTER, FakeCall, FakeOperator, listing
from tests.app.site import SMALL, held_by_another_process
from tests.app.test_node_worker import OLD


def revert(call: FakeCall, operator: FakeOperator | None = None, limit: str = "", *, force: bool = False) -> RunResult:
    ended = revert_run(call, operator or FakeOperator(), "r1", limit, SMALL.limits, force=force)
    assert isinstance(ended, RunResult)
    return ended


def with_new_file(call: FakeCall) -> set[str]:
    return {name for name, node in call.agents.nodes.items() if node.at(CONFIG) == NEW}


def test_every_node_has_the_old_file_again_and_that_is_read_there(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).applied(), FakeOperator()
    ended = revert(call, operator)
    assert (ended.state.ending, ended.exit_code, call.content()) == (Ending.DONE, 0, {OLD})
    assert ended.proofs is not None
    assert {proof.node: proof.proven for proof in ended.proofs} == dict.fromkeys(call.agents.nodes, Proven.PROVEN)
    assert (operator.confirmed, call.opened) == (["3 nodes of c will be reverted"], 0)


def test_where_only_a_config_map_is_restored_the_question_says_so(tmp_path: Path) -> None:
    change = ConfigMapChange("kube-system", "kubelet-config", "kubelet", "old", "new", "uid-1")
    call, operator = FakeCall(tmp_path), FakeOperator()
    call.applied(replace(SMALL, nodes={}, waves=(), groups=(), config_map=change))
    revert(call, operator)
    assert operator.confirmed == ["only ConfigMap kube-system/kubelet-config, key kubelet, of c will be restored"]


def test_what_is_reverted_already_is_not_reverted_again(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).applied(), FakeOperator()
    revert(call)
    call.agents.asked = []
    again = revert_run(call, operator, "r1", "", SMALL.limits, force=False)
    assert isinstance(again, NothingReverted)
    assert (operator.confirmed, call.agents.asked, call.opened) == ([], [], 0)


def test_only_the_chosen_nodes_are_reverted(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    assert revert(call, limit="n2").exit_code == 0
    assert with_new_file(call) == {"n1", "n3"}


def test_an_operator_who_declines_changes_nothing(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    with pytest.raises(UsageError):
        revert(call, FakeOperator(declines=True))
    assert (call.agents.asked, with_new_file(call), call.opened) == ([], set(call.agents.nodes), 0)


def test_a_freeze_is_told_and_does_not_stop_a_rollback(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).applied(), FakeOperator()
    call.journal().note(CLUSTER, Note(1.0, "ann@desk", frozen_note(NodeFreeze(1, "f-1", "ann@desk", "year end"))))
    assert revert(call, operator).exit_code == 0
    assert any("year end" in line for line in operator.must_read)


@pytest.mark.parametrize("force", [False, True])
def test_bytes_of_others_are_overwritten_by_force_only(tmp_path: Path, *, force: bool) -> None:
    call = FakeCall(tmp_path).applied()
    call.agents.nodes["n2"].files[CONFIG] = b"by hand"
    ended = revert(call, force=force)
    assert ended.exit_code == (0 if force else 4)
    assert call.agents.nodes["n2"].at(CONFIG) == (OLD if force else b"by hand")


def test_a_node_without_an_answer_keeps_a_pending_recovery(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    call.silence("n2")
    ended = revert(call)
    assert ended.state.nodes["n2"].owed
    assert ended.state.nodes["n2"].state is NodeState.UNREACHABLE
    assert (ended.exit_code, with_new_file(call)) == (4, {"n2"})


def test_a_run_of_another_controller_is_not_reverted_under_it(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).killed("n2", Verb.APPLY)
    held_by_another_process(tmp_path, CLUSTER, "r1")
    with pytest.raises(StateError) as refused:
        revert(call)
    assert (refused.value.reference, call.agents.asked) == ("locked", [])


def test_nodes_that_were_planned_as_control_plane_are_reverted_last_and_one_at_a_time(tmp_path: Path) -> None:
    """The inventory calls them workers: what was seen when the run was planned counts."""
    seen = replace(SMALL, waves=(Wave("canary", ("n1",), 1.0), Wave(CONTROL_PLANE_WAVE, ("n2", "n3"), 1.0, at_once=1)))
    call = FakeCall(tmp_path).applied(seen)
    ended = revert(call)
    assert [(wave.name, wave.nodes, wave.at_once) for wave in ended.state.order.waves] == [
        ("rollback", ("n1",), 0),
        (CONTROL_PLANE_WAVE, ("n2", "n3"), 1),
    ]
    assert call.content() == {OLD}


def test_an_emergency_is_told_that_the_list_of_nodes_may_be_of_another_cluster(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    assert other_fleet_lines(call, listing("dev-1")) == (), "no run tells which nodes the cluster has"
    call.killed("n1", Verb.APPLY)
    assert other_fleet_lines(call, call.listed) == ()
    dev = replace(listing("dev-1"), listed_by="context dev (https://dev:6443)")
    (line,) = other_fleet_lines(call, dev)
    assert line.startswith("the inventory lists 1 node of context dev (https://dev:6443), and 0 of the ")
    assert line.endswith(" the newest run of c: it may list another cluster")
    call.broken = StateError("journal-unusable", "it is away")
    assert other_fleet_lines(call, dev) == ()
