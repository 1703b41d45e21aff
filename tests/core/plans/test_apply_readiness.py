"""How a plan's nodes stand to it before it is applied: a second time is no failure, and what is not known is never good."""

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


def test_a_node_is_what_its_bytes_say() -> None:
    assert now(report(regular(FILE.before))) is Now.OPEN
    assert now(report(regular(FILE.after))) is Now.AS_PLANNED
    assert now(report(regular("f" * 64))) is Now.DRIFTED
    assert now(report(FileState(FILE.path, "absent"))) is Now.DRIFTED
    assert now(report(FileState(FILE.path, "symlink"))) is Now.DRIFTED


@pytest.mark.parametrize("state", [None, regular("")])
def test_a_file_that_is_not_told_is_not_as_planned(state: FileState | None) -> None:
    assert now(report(state)) is Now.UNREAD


def test_who_did_not_answer_is_not_as_planned() -> None:
    assert now(report(regular(FILE.after), outcome=Outcome.UNREACHED)) is Now.UNREAD
    assert now(report(regular(FILE.after), measurement=None)) is Now.UNREAD


@pytest.mark.parametrize("state", [ReceiptState.ARMED, ReceiptState.REVERTING])
def test_a_transaction_that_is_under_way_is_not_as_planned(state: ReceiptState) -> None:
    assert now(report(regular(FILE.after), receipts=(receipt(state),))) is Now.OPEN


def test_what_another_run_is_at_work_on_is_left_to_the_claim() -> None:
    assert now(report(regular(FILE.after), token=Token(3, "r9", live=True))) is Now.OPEN
    assert now(report(regular(FILE.after), token=Token(3, "r9", live=False))) is Now.AS_PLANNED


@given(st.lists(st.sampled_from(Now), min_size=1, max_size=6))
def test_only_a_plan_that_is_on_every_node_is_already_applied(found: list[Now]) -> None:
    answer = Standings({f"n{at}": each for at, each in enumerate(found)}).answer()
    assert (answer is PlanDecision.ALREADY_APPLIED) == (set(found) == {Now.AS_PLANNED})
    assert (answer is PlanDecision.BEGIN) == (Now.OPEN in found or set(found) == {Now.UNREAD})
