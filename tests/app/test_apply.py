"""Applying a plan: what is checked before the operator confirms, and how the run ends."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.app.apply import apply_plan, apply_saved
from rollout.app.ports import Note
from rollout.app.revert import revert_run
from rollout.app.runs import check_plan
from rollout.core.model.approvals import Approval
from rollout.core.model.config_map import ConfigMapChange
from rollout.core.model.freeze import NodeFreeze
from rollout.core.model.plan import ExcludedNode, Plan, Standing
from rollout.core.plans import plan_codec
from rollout.core.presentation.freeze_text import frozen_note
from rollout.core.presentation.nothing_to_do import NothingToDo, Why
from rollout.core.presentation.summary import exit_code
from rollout.core.run.state import Ending, NodeState, RunState, Verb
from rollout.errors import InputError, Problem, RolloutError, StateError, UsageError
from tests.app.agents import NEW, SILENT
from tests.app.call import CLUSTER, FakeCall, FakeOperator, listing
from tests.app.site import NAMES, SMALL, held_by_another_process
from tests.app.test_node_worker import OLD

SIGNED = (Approval("bob", "SHA256:k", "s"),)


def apply(
    call: FakeCall, operator: FakeOperator, plan: Plan = SMALL, approvals: tuple[Approval, ...] = ()
) -> RunState | NothingToDo:
    """A plan that was made a while ago."""
    with closing(call.nodes()) as nodes:
        return apply_plan(call, operator, nodes, plan, call.listed, approvals, fresh=False)


def run(call: FakeCall, operator: FakeOperator | None = None) -> RunState:
    ended = apply(call, operator or FakeOperator())
    assert isinstance(ended, RunState)
    return ended


def test_every_node_has_the_new_file_and_no_claim_stays(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path), FakeOperator()
    state = run(call, operator)
    assert (state.ending, exit_code(state)) == (Ending.DONE, 0)
    assert (call.content(), call.claims(), call.opened) == ({NEW}, {(1, "r1", "ended")}, 0)
    assert operator.confirmed == ["3 nodes of c will be changed"]
    assert call.journal().header("r1").reason == "slow pulls"


ONLY_CONFIG_MAP = replace(
    SMALL,
    counter=1,
    nodes={},
    waves=(),
    groups=(),
    config_map=ConfigMapChange("kube-system", "kubelet-config", "kubelet", "old", "new", "uid-1"),
    left=tuple(ExcludedNode(name, "", Standing.AS_WANTED, "unchanged", "") for name in NAMES),
)
"""Made after run r1: each node has the settings already."""


def test_a_plan_of_a_config_map_alone_is_refused_once_a_node_may_not_have_the_settings_any_more(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).applied(), FakeOperator()
    revert_run(call, FakeOperator(), "r1", "n2", SMALL.limits, force=False)
    with pytest.raises(
        UsageError, match="the plan changes no node, because each had its settings; changed since the plan: n2"
    ) as caught:
        apply(call, operator, ONLY_CONFIG_MAP, SIGNED)
    assert (caught.value.reference, operator.confirmed) == ("plan-is-stale", [])


def test_a_plan_of_a_config_map_alone_is_refused_where_a_node_cannot_be_read(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    call.silence("n3")
    with pytest.raises(UsageError, match="could not be read: n3"):
        apply(call, FakeOperator(), ONLY_CONFIG_MAP)


def test_a_plan_of_a_config_map_alone_is_applied_where_nodes_are_as_they_were_read(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).applied(), FakeOperator()
    assert isinstance(apply(call, operator, ONLY_CONFIG_MAP), RunState)
    assert operator.confirmed == ["only a ConfigMap, for nodes that join later, of c will be changed"]


def test_a_plan_of_a_config_map_alone_is_refused_for_another_inventory(tmp_path: Path) -> None:
    """It is for all nodes and their settings. It has no node that would show a difference."""
    listed = replace(listing(*NAMES), digest="another")
    with pytest.raises(InputError, match="another version of the inventory"):
        check_plan(ONLY_CONFIG_MAP, listed, "p.json", {})


def test_a_plan_that_is_applied_already_names_its_run_and_asks_nobody(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).applied(), FakeOperator()
    again = apply(call, operator)
    assert isinstance(again, NothingToDo)
    assert (again.why, again.runs) == (Why.ALREADY_APPLIED, ("r1",))
    assert (operator.confirmed, call.agents.asked) == ([], [])


def test_a_plan_without_changes_reads_no_node(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    call.silence(*NAMES)
    assert isinstance(apply(call, FakeOperator(), replace(SMALL, nodes={}, groups=(), waves=())), NothingToDo)


AWAY = tuple(ExcludedNode(f"x{at}", "r", Standing.UNREACHABLE, "no-route", "no route") for at in range(9))


def frozen(call: FakeCall) -> None:
    call.journal().note(CLUSTER, Note(1.0, "ann@desk", frozen_note(NodeFreeze(1, "f-1", "ann@desk", "year end"))))


def drifted(call: FakeCall) -> None:
    for node in call.agents.nodes.values():
        node.files = dict.fromkeys(node.files, b"by hand")


def unfinished(call: FakeCall) -> None:
    call.killed("n1", Verb.APPLY)


@pytest.mark.parametrize(
    ("sick", "reference"), [(frozen, "frozen"), (drifted, "plan-is-stale"), (unfinished, "run-unfinished")]
)
def test_a_plan_that_may_not_be_applied_now_touches_nothing(tmp_path: Path, sick: object, reference: str) -> None:
    call, operator = FakeCall(tmp_path), FakeOperator()
    assert callable(sick)
    sick(call)
    before = (call.content(), call.claims())
    with pytest.raises(RolloutError) as refused:
        apply(call, operator)
    assert refused.value.reference == reference
    assert ((call.content(), call.claims()), operator.confirmed, call.opened) == (before, [], 0)


def test_a_cluster_that_is_already_unhealthy_is_refused(tmp_path: Path) -> None:
    call = FakeCall(tmp_path, listed=listing(*NAMES, *(node.name for node in AWAY)))
    with pytest.raises(UsageError, match="9 of 12 nodes are unhealthy or cannot be read") as refused:
        apply(call, FakeOperator(), replace(SMALL, left=AWAY))
    assert (refused.value.reference, call.agents.asked) == ("preflight", [])


def test_missing_back_ends_and_used_approvals_are_found_before_the_operator_is_asked(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path), FakeOperator()
    call.back_ends_fail = InputError((Problem("no-endpoint", "no kubeconfig"),))
    with pytest.raises(InputError):
        apply(call, operator)
    call.back_ends_fail, call.approvals_fail = None, InputError((Problem("approval-used", "by r7"),))
    with pytest.raises(InputError):
        apply(call, operator, approvals=SIGNED)
    assert (operator.confirmed, call.agents.asked, call.content()) == ([], [], {OLD})


def test_an_operator_who_declines_starts_no_run(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    with pytest.raises(UsageError):
        apply(call, FakeOperator(declines=True))
    assert (call.agents.asked, call.journal().listed(), call.opened) == ([], (), 0)


def test_a_run_that_starts_before_the_confirmation_is_not_disturbed(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    late = FakeOperator(meanwhile=lambda: held_by_another_process(tmp_path, CLUSTER, "r9"))
    with pytest.raises(StateError) as refused:
        apply(call, late)
    assert (refused.value.reference, call.agents.asked, call.content()) == ("locked", [], {OLD})


def test_nodes_that_another_run_has_claimed_are_left_to_it(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    for node in call.agents.nodes.values():
        node.claim = (9, "r-other", "live")
    state = run(call)
    assert (state.ending, exit_code(state)) == (Ending.CLAIMED, 5)
    assert (call.content(), call.claims()) == ({OLD}, {(9, "r-other", "live")})


def test_a_node_without_an_answer_is_unreachable_and_the_others_are_changed(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    call.silence("n2")
    state = run(call)
    assert (state.nodes["n2"].state, exit_code(state)) == (NodeState.UNREACHABLE, 4)
    assert {name for name, node in call.agents.nodes.items() if node.files == {next(iter(node.files)): NEW}} == {
        "n1",
        "n3",
    }


def test_a_stop_finishes_the_nodes_in_flight(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    call.engine.then["n1", Verb.APPLY] = call.engine.stop
    state = run(call)
    assert (state.ending, exit_code(state)) == (Ending.INTERRUPTED, 130)
    assert {name: record.state for name, record in state.nodes.items()} == {
        "n1": NodeState.CONFIRMED, "n2": NodeState.PENDING, "n3": NodeState.PENDING,
    }  # fmt: skip


def test_a_controller_that_has_lost_its_lease_starts_nothing_more(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    call.engine.then["n1", Verb.APPLY] = lambda: call.journal().unlock(CLUSTER, Note(1.0, "ann@desk", "unlocked"))
    with pytest.raises(StateError) as lost:
        apply(call, FakeOperator())
    assert lost.value.reference == "lease-lost"
    assert [name for name, verb in call.agents.asked if verb == "apply"] == ["n1"]


# ------------------------------------------------------------------------------------------- from its file


def test_the_plan_of_a_file_is_applied_if_its_digest_is_the_reviewed_one(tmp_path: Path) -> None:
    call, digest = FakeCall(tmp_path), plan_codec.digest(SMALL)
    with pytest.raises(UsageError) as refused:
        apply_saved(call, FakeOperator(), SMALL, Path("p.json"), "0" * 12)
    assert (refused.value.reference, call.agents.asked, call.opened) == ("plan-digest", [], 0)
    ended = apply_saved(call, FakeOperator(), SMALL, Path("p.json"), digest[:12])
    assert isinstance(ended, RunState)
    assert (ended.ending, call.content(), call.opened) == (Ending.DONE, {NEW}, 0)


def test_a_plan_that_lacks_an_approval_is_refused(tmp_path: Path) -> None:
    call = FakeCall(tmp_path)
    call.approvals_fail = InputError((Problem("approval-missing", "nobody has signed"),))
    with pytest.raises(InputError):
        apply_saved(call, FakeOperator(), SMALL, Path("p.json"), "")
    assert (call.agents.asked, call.opened) == ([], 0)


def test_a_silent_node_is_not_taken_for_a_node_that_is_as_planned(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    call.agents.says["n3", "status"] = SILENT
    with pytest.raises(UsageError, match=r"already as planned: n\[1-2\]; could not be read: n3") as refused:
        apply(call, FakeOperator())
    assert refused.value.reference == "plan-is-stale"
