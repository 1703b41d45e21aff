"""Releasing a cluster from a run without a controller."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rollout.app.claims import littered
from rollout.app.reading import read_receipts
from rollout.app.unlock import unlock_cluster, what_is_held
from rollout.core.run.state import Verb
from rollout.errors import StateError, UsageError
from tests.app.agents import SILENT, Agents, access_to, answer
from tests.app.call import CLUSTER, FakeCall, FakeOperator, elsewhere
from tests.app.stacked_agents import StackedNode


def abandoned(folder: Path) -> FakeCall:
    """The controller of r1 died after it had armed n1."""
    return FakeCall(folder).killed("n1", Verb.APPLY)


def test_claims_end_in_the_name_of_their_run_and_the_journal_says_who_did_it_and_why(tmp_path: Path) -> None:
    call, operator = abandoned(tmp_path), FakeOperator()
    call.held(elsewhere("r1", alive=False))
    unlocked = unlock_cluster(call, operator, CLUSTER, "", force=False)
    assert (unlocked.released, unlocked.not_released, unlocked.no_answer) == ("n[1-3]", {}, ())
    assert (unlocked.exit_code, call.opened) == (0, 0)
    assert {node.claim[1:] for node in call.agents.nodes.values()} == {("r1", "ended")}, "r1 can be resumed"
    assert operator.must_read == [
        "lease: run r1 on far, last heartbeat 900 s ago",
        "run r1 has claimed 3 nodes: n[1-3]",
        "armed or being reverted, left to their guards: n1",
    ]
    assert operator.confirmed == ["c will be unlocked, 3 nodes released"]
    assert call.notes() == ["unlocked: slow pulls"]


@pytest.mark.parametrize("force", [False, True])
def test_a_live_controller_elsewhere_is_unlocked_by_force_only(tmp_path: Path, *, force: bool) -> None:
    call = abandoned(tmp_path)
    call.held(elsewhere("r1", alive=True))
    if force:
        assert unlock_cluster(call, FakeOperator(), CLUSTER, "", force=True).exit_code == 0
        return
    with pytest.raises(StateError, match="last heartbeat 7 s ago") as refused:
        unlock_cluster(call, FakeOperator(), CLUSTER, "", force=False)
    assert (refused.value.reference, call.agents.asked, call.notes()) == ("locked", [], [])


def test_a_controller_on_this_machine_is_never_unlocked(tmp_path: Path) -> None:
    call = abandoned(tmp_path)
    call.held(replace(elsewhere("r1", alive=True), here=True))
    with pytest.raises(StateError, match="in progress on this machine"):
        unlock_cluster(call, FakeOperator(), CLUSTER, "", force=True)


def test_a_run_that_starts_before_the_confirmation_keeps_its_lease(tmp_path: Path) -> None:
    call = abandoned(tmp_path)
    late = FakeOperator(meanwhile=lambda: call.held(elsewhere("r2", alive=True)))
    with pytest.raises(StateError, match="run r2 on far"):
        unlock_cluster(call, late, CLUSTER, "", force=False)
    assert (call.agents.asked, call.notes(), call.opened) == ([], [], 0)


def test_an_operator_who_declines_ends_no_claim(tmp_path: Path) -> None:
    call = abandoned(tmp_path)
    with pytest.raises(UsageError):
        unlock_cluster(call, FakeOperator(declines=True), CLUSTER, "", force=False)
    assert (call.agents.asked, call.notes(), call.opened) == ([], [], 0)


def test_a_reason_is_needed(tmp_path: Path) -> None:
    call = abandoned(tmp_path)
    call.reason = ""
    with pytest.raises(UsageError, match="needs --reason"):
        unlock_cluster(call, FakeOperator(), CLUSTER, "", force=False)
    assert call.agents.asked == []


def test_nodes_without_an_answer_and_claims_that_remain_are_reported(tmp_path: Path) -> None:
    call = abandoned(tmp_path)
    call.agents.says["n2", "status"] = SILENT
    call.agents.says["n3", "cleanup"] = answer("cleanup", "left a lock")
    unlocked = unlock_cluster(call, FakeOperator(), CLUSTER, "", force=False)
    assert (unlocked.released, unlocked.not_released) == ("n1", {"n3": "a lock"})
    assert [node.node for node in unlocked.no_answer] == ["n2"]
    assert unlocked.exit_code == 4


def test_a_claim_of_another_journal_is_taken_over_as_a_new_run(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    call.agents.nodes["n1"].claim = (5, "r-elsewhere", "live")
    assert unlock_cluster(call, FakeOperator(), CLUSTER, "", force=False).released == "n1"
    assert call.agents.nodes["n1"].claim == (6, "r1", "ended")


def test_a_cluster_without_claims_is_unlocked_too(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path), FakeOperator()
    unlocked = unlock_cluster(call, operator, CLUSTER, "", force=False)
    assert (unlocked.released, unlocked.exit_code, operator.must_read) == ("", 0, ["no lease and no claim"])
    assert {node.claim for node in call.agents.nodes.values()} == {StackedNode({}).claim}


def test_nodes_without_an_answer_are_not_said_to_have_no_claim(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path), FakeOperator()
    call.silence("n1", "n3")
    assert unlock_cluster(call, operator, CLUSTER, "", force=False).exit_code == 4
    first, second = operator.must_read
    assert first == "no lease, and no claim on the 1 node that answered"
    assert second.startswith("nothing is known of 2 nodes n[1,3], which gave no answer: ")


def test_before_the_confirmation_unlock_names_each_file_that_the_node_reports_as_left() -> None:
    left = "/var/lib/kubelet/.rollout-r1-1.1.old"
    says = {("n1", "status"): answer("status", "token 3 r1 ended", f"left {left}"), ("n2", "status"): answer("status")}
    reports = read_receipts(access_to("n1", "n2"), Agents(says), strays=True)
    nothing, line = what_is_held(None, reports, {}, littered(reports))
    assert nothing == "no lease and no claim"
    assert line == f"left behind on n1, to be removed: {left}"
