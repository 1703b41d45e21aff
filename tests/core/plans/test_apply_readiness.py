"""How nodes compare with their plan before it is applied: a second apply is not a failure, and unknown is never good."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import FileState, Measurement, Receipt, ReceiptState, Token
from rollout.core.plans.apply_readiness import Now, PlanDecision, Standings, stand
from tests.app.site import SMALL

FILE = SMALL.groups[0].change.files[0]


def report(state: FileState | None, **changes: object) -> Report:
    files = {state.path: state} if state else {}
    return replace(Report("n1", "status", Outcome.DONE, measurement=Measurement(files=files)), **changes)  # type: ignore[arg-type]


def regular(digest: str) -> FileState:
    return FileState(FILE.path, "regular", digest=digest)


def now(found: Report) -> Now:
    return stand(SMALL, {"n1": found}).nodes["n1"]


def receipt(state: ReceiptState) -> Receipt:
    return Receipt("r1-1", "r1", 1, state, finished=True)


def test_a_node_is_judged_by_its_bytes() -> None:
    assert now(report(regular(FILE.digest_before))) is Now.OPEN
    assert now(report(regular(FILE.digest_after))) is Now.AS_PLANNED
    assert now(report(regular("f" * 64))) is Now.DRIFTED
    assert now(report(FileState(FILE.path, "absent"))) is Now.DRIFTED
    assert now(report(FileState(FILE.path, "symlink"))) is Now.DRIFTED


@pytest.mark.parametrize("state", [None, regular("")])
def test_a_file_that_was_not_reported_is_not_as_planned(state: FileState | None) -> None:
    assert now(report(state)) is Now.UNREAD


def test_a_node_without_an_answer_is_not_as_planned() -> None:
    assert now(report(regular(FILE.digest_after), outcome=Outcome.UNREACHED)) is Now.UNREAD
    assert now(report(regular(FILE.digest_after), measurement=None)) is Now.UNREAD


@pytest.mark.parametrize("state", [ReceiptState.ARMED, ReceiptState.REVERTING])
def test_a_transaction_in_progress_is_not_as_planned(state: ReceiptState) -> None:
    assert now(report(regular(FILE.digest_after), receipts=(receipt(state),))) is Now.OPEN


def test_a_node_of_another_live_run_is_left_to_the_claim() -> None:
    assert now(report(regular(FILE.digest_after), token=Token(3, "r9", live=True))) is Now.OPEN
    assert now(report(regular(FILE.digest_after), token=Token(3, "r9", live=False))) is Now.AS_PLANNED


@given(st.lists(st.sampled_from(Now), min_size=1, max_size=6))
def test_a_plan_is_already_applied_only_if_it_is_on_every_node(found: list[Now]) -> None:
    answer = Standings({f"n{at}": each for at, each in enumerate(found)}).answer()
    assert (answer is PlanDecision.ALREADY_APPLIED) == (set(found) == {Now.AS_PLANNED})
    assert (answer is PlanDecision.BEGIN) == (Now.OPEN in found or set(found) == {Now.UNREAD})
