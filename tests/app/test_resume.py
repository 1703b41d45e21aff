"""Going on with a run, and what a run that has ended has left to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.app.ports import Note
from rollout.app.resume import ClaimsEnded, recover_run, resume_run
from rollout.app.revert import RunResult
from rollout.core.model.freeze import NodeFreeze
from rollout.core.presentation.freeze_text import frozen_note
from rollout.core.run.state import Ending, NodeState, Verb
from rollout.errors import InputError, Problem, RolloutError, StateError, UsageError
from tests.app.agents import NEW, answer
from tests.app.call import CLUSTER, FakeCall, FakeOperator
from tests.app.site import NAMES, held_by_another_process


def test_a_run_whose_controller_was_killed_goes_on_to_its_end(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).killed("n2", Verb.APPLY), FakeOperator()
    ended = resume_run(call, operator, "", promote=False)
    assert (ended.state.order.run, ended.state.ending, ended.exit_code) == ("r1", Ending.DONE, 0)
    assert (call.content(), call.claims(), call.opened) == ({NEW}, {(2, "r1", "ended")}, 1)
    assert operator.confirmed == ["run r1 on c will continue"]


@pytest.mark.parametrize("run", ["", "r7"])
def test_a_journal_without_runs_has_none_to_resume(tmp_path: Path, run: str) -> None:
    with pytest.raises(UsageError) as refused:
        resume_run(FakeCall(tmp_path), FakeOperator(), run, promote=False)
    assert refused.value.reference == "no-runs"


def test_an_unknown_run_is_named_with_the_newest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no run `x7`") as refused:
        resume_run(FakeCall(tmp_path).killed("n1", Verb.APPLY), FakeOperator(), "x7", promote=False)
    assert (refused.value.reference, refused.value.hint) == ("no-such-run", "the newest is r1")


def test_a_run_that_is_done_has_nothing_to_resume(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    with pytest.raises(StateError) as refused:
        resume_run(call, FakeOperator(), "r1", promote=False)
    assert (refused.value.reference, call.agents.asked) == ("nothing-to-resume", [])


def approvals_gone(call: FakeCall) -> None:
    call.approvals_fail = InputError((Problem("approval-missing", "a signer is gone"),))


def back_ends_gone(call: FakeCall) -> None:
    call.back_ends_fail = InputError((Problem("no-endpoint", "no kubeconfig"),))


def frozen(call: FakeCall) -> None:
    call.journal().note(CLUSTER, Note(1.0, "ann@desk", frozen_note(NodeFreeze(1, "f-1", "ann@desk", "year end"))))


def held(call: FakeCall) -> None:
    held_by_another_process(call.folder, CLUSTER, "r1")


@pytest.mark.parametrize("sick", [approvals_gone, back_ends_gone, frozen, held])
def test_a_run_that_may_not_go_on_now_sends_nothing_to_nodes(tmp_path: Path, sick: object) -> None:
    call = FakeCall(tmp_path).killed("n2", Verb.APPLY)
    assert callable(sick)
    sick(call)
    with pytest.raises(RolloutError):
        resume_run(call, FakeOperator(), "", promote=False)
    assert call.agents.asked == []


def test_an_operator_who_declines_requests_nothing(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).killed("n1", Verb.APPLY)
    call.journal().ask("r1", "pause", "bob@desk", "lunch", "")
    operator = FakeOperator(declines=True)
    with pytest.raises(UsageError):
        resume_run(call, operator, "r1", promote=True)
    assert operator.shown == ["request not handled yet: pause by bob@desk: lunch"]
    assert ([request.word for request in call.journal().requests("r1", 0)], call.agents.asked) == (["pause"], [])


def test_promote_lifts_a_pause_that_waits_for_the_controller(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).killed("n1", Verb.APPLY)
    call.journal().ask("r1", "pause", "bob@desk", "lunch", "")
    assert resume_run(call, FakeOperator(), "r1", promote=True).state.ending is Ending.DONE


# ------------------------------------------------------------------------------------------- recover


def lost_after_apply(folder: Path) -> FakeCall:
    """A run that is done, except on n2, which has not answered since it was armed."""
    call = FakeCall(folder)
    call.engine.then["n2", Verb.APPLY] = lambda: call.silence("n2")
    return call.applied()


def test_a_node_that_answers_again_is_recovered(tmp_path: Path) -> None:
    """Its guard has not fired yet."""
    call, operator = lost_after_apply(tmp_path), FakeOperator()
    call.agents.says, call.engine.then = {}, {}
    ended = recover_run(call, operator, "")
    assert isinstance(ended, RunResult)
    assert operator.confirmed == ["run r1 on c will continue to recover n2"]
    assert (ended.state.nodes["n2"].state, ended.exit_code) == (NodeState.CONFIRMED, 0)
    assert (call.content(), call.claims()) == ({NEW}, {(2, "r1", "ended")})


def test_a_node_that_is_still_away_keeps_its_pending_recovery(tmp_path: Path) -> None:
    call = lost_after_apply(tmp_path)
    ended = recover_run(call, FakeOperator(), "r1")
    assert isinstance(ended, RunResult)
    assert ended.state.nodes["n2"].owed
    assert ended.exit_code == 4


def test_claims_that_a_run_has_left_are_ended(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    call.agents.nodes["n3"].claim = (1, "r1", "live")
    ended = recover_run(call, FakeOperator(), "")
    assert isinstance(ended, ClaimsEnded)
    assert ([node.node for node in ended.freed], ended.exit_code, call.opened) == (["n3"], 0, 0)
    assert call.agents.nodes["n3"].claim == (2, "r1", "ended")


def test_nodes_that_were_not_read_may_still_have_the_claim(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).applied(), FakeOperator()
    call.agents.nodes["n3"].claim = (1, "r1", "live")
    call.silence("n2")
    ended = recover_run(call, operator, "")
    assert isinstance(ended, ClaimsEnded)
    assert ([each.node for each in ended.no_answer], ended.exit_code) == (["n2"], 4)
    assert operator.must_read[0].startswith("nothing is known of 1 node n2, which gave no answer: ")


def test_an_operator_who_declines_ends_no_claim(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).applied(), FakeOperator(declines=True)
    call.agents.nodes["n3"].claim = (1, "r1", "live")
    with pytest.raises(UsageError):
        recover_run(call, operator, "")
    assert call.agents.nodes["n3"].claim == (1, "r1", "live")


def test_a_claim_that_remains_is_no_success(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    call.agents.nodes["n3"].claim = (1, "r1", "live")
    call.agents.says["n3", "cleanup"] = answer("cleanup", "left a lock")
    ended = recover_run(call, FakeOperator(), "")
    assert isinstance(ended, ClaimsEnded)
    assert ended.exit_code == 4


def test_a_run_without_anything_left_says_so(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    with pytest.raises(StateError) as refused:
        recover_run(call, FakeOperator(), "")
    assert (refused.value.reference, call.agents.asked, call.opened) == ("nothing-owed", [], 0)


def test_a_run_that_has_not_ended_is_resumed_instead(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).killed("n2", Verb.APPLY)
    with pytest.raises(StateError) as refused:
        recover_run(call, FakeOperator(), "r1")
    assert (refused.value.reference, set(call.agents.nodes)) == ("not-done", set(NAMES))
    assert call.agents.asked == []
