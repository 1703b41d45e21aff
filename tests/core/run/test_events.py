"""The meaning of an answer is what was read from the node, never what was requested."""

from __future__ import annotations

import pytest

from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Receipt, ReceiptState
from rollout.core.run.events import Trigger, message_of, newer_attempt, reference_of, trigger_of

R = ReceiptState


def report(outcome: Outcome = Outcome.DONE, receipt: Receipt | None = None, **more: object) -> Report:
    return Report("n", "apply", outcome, receipt=receipt, **more)  # type: ignore[arg-type]


def receipt(state: ReceiptState, cause: str = "", *, finished: bool = False) -> Receipt:
    return Receipt("t-1", "t", 1, state, cause, finished=finished)


CASES = [
    ("no command was started", report(Outcome.UNREACHED), Trigger.UNREACHED),
    ("its end was not seen", report(Outcome.LOST), Trigger.LOST),
    ("refused", report(Outcome.REFUSED, reference="drifted"), Trigger.REFUSED),
    ("refused although it has a receipt", report(Outcome.REFUSED, receipt(R.CONFIRMED), reference="locked"), Trigger.REFUSED),
    ("too late: what is on the node counts", report(Outcome.REFUSED, receipt(R.REVERTED, "guard"), reference="too-late"), Trigger.REVERTED_BY_GUARD),
    ("no such transaction", report(), Trigger.UNTOUCHED),
    ("a receipt that the node cannot read", report(Outcome.REFUSED, reference="receipt-unreadable"), Trigger.LOST),
    ("still running", report(receipt=receipt(R.ARMED)), Trigger.BUSY),
    ("armed and healthy", report(receipt=receipt(R.ARMED, finished=True)), Trigger.ARMED),
    ("confirmed", report(receipt=receipt(R.CONFIRMED)), Trigger.CONFIRMED),
    ("reverting", report(receipt=receipt(R.REVERTING, "asked")), Trigger.BUSY),
    ("unhealthy, healthy again with old files", report(receipt=receipt(R.REVERTED, "health"), healthy=True), Trigger.REVERTED_UNHEALTHY),
    ("unhealthy with old files too", report(receipt=receipt(R.REVERTED, "health"), healthy=False), Trigger.STILL_UNHEALTHY),
    ("the guard fired", report(receipt=receipt(R.REVERTED, "guard")), Trigger.REVERTED_BY_GUARD),
    ("the boot unit reverted it", report(receipt=receipt(R.REVERTED, "boot")), Trigger.REVERTED_BY_GUARD),
    ("a file stays new", report(reference="not-given-back", receipt=receipt(R.REVERTING, "guard")), Trigger.STUCK),
    ("its restart was not seen", report(reference="not-restarted", receipt=receipt(R.REVERTING, "asked")), Trigger.STUCK),
    ("its confirmation was lost", report(Outcome.REFUSED, receipt(R.REVERTED, "health"), reference="not-durable"), Trigger.REVERTED_UNHEALTHY),
    ("we requested it", report(receipt=receipt(R.REVERTED, "asked")), Trigger.REVERTED_ON_REQUEST),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "meaning"), CASES, ids=[name for name, _, _ in CASES])
def test_the_meaning_of_an_answer(name: str, answer: Report, meaning: Trigger) -> None:
    assert trigger_of(answer) is meaning


def test_every_failure_has_a_stable_reference() -> None:
    assert reference_of(report(reference="drifted"), Trigger.REFUSED) == "drifted"
    assert reference_of(report(), Trigger.REVERTED_UNHEALTHY) == "unhealthy"
    assert reference_of(report(), Trigger.ARMED) == ""


def test_a_cause_that_this_version_does_not_know_is_not_reported_as_one_that_it_knows() -> None:
    by_guard = report(receipt=receipt(R.REVERTED, "guard"))
    assert message_of(by_guard, trigger_of(by_guard)) == "", "the run machine has the text"
    by_boot = report(receipt=receipt(R.REVERTED, "boot"))
    assert message_of(by_boot, trigger_of(by_boot)).startswith("the node booted before its confirm came")
    newer = report(receipt=receipt(R.REVERTED, "low-battery"))
    said = "the node reverted the change, for a cause that this version does not know: low-battery"
    assert message_of(newer, trigger_of(newer)) == said


def test_a_doubt_about_the_disk_is_not_reported_as_an_unhealthy_kubelet() -> None:
    lost = report(receipt=receipt(R.REVERTED, "not-durable"))
    assert trigger_of(lost) is Trigger.REVERTED_UNHEALTHY
    assert reference_of(lost, trigger_of(lost)) == "not-durable"
    assert (
        message_of(lost, trigger_of(lost))
        == "it is not known that the disk has what was written, so the node reverted the change"
    )


@pytest.mark.parametrize(
    ("newest", "found"),
    [
        ([("r1-2", "r1", R.CONFIRMED), ("r1-1", "r1", R.REVERTED)], "r1-2"),
        ([("r1-3", "r1", R.ARMED), ("r1-2", "r1", R.REVERTED), ("r1-1", "r1", R.REVERTED)], "r1-3"),
        ([("r1-2", "r1", R.REVERTED), ("r1-1", "r1", R.CONFIRMED)], ""),
        ([("r1-1", "r1", R.CONFIRMED), ("r0-1", "r0", R.CONFIRMED)], ""),
        ([("r2-1", "r2", R.CONFIRMED), ("r1-1", "r1", R.CONFIRMED)], ""),
        ([], ""),
    ],
    ids=[
        "tried again",
        "and again",
        "which is over",
        "none",
        "another run's is not ours to revert",
        "nothing known",
    ],
)
def test_a_later_transaction_of_the_run_is_the_one_to_revert(
    newest: list[tuple[str, str, ReceiptState]], found: str
) -> None:
    receipts = [Receipt(tx, run, 1, state) for tx, run, state in newest]
    assert newer_attempt("r1-1", receipts) == found
