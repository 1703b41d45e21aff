"""What a node's answer means: report in, trigger out. The outcome is what was read from the node, never what was requested."""

from __future__ import annotations

from collections.abc import Iterable

from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Receipt, ReceiptState
from rollout.core.run.events import Trigger

_TAKEN_BACK = {
    "health": Trigger.TAKEN_BACK_SICK,
    "guard": Trigger.TAKEN_BACK_ALONE,
    "boot": Trigger.TAKEN_BACK_ALONE,
    "asked": Trigger.TAKEN_BACK_ASKED,
}
NOT_REVERTED_YET = frozenset({"not-given-back", "not-restarted", "not-durable"})
"""References of a revert that cannot complete for now."""
_TOLD_BY_THE_RECEIPT = frozenset({"too-late", "not-durable"})


def trigger_of(report: Report) -> Trigger:
    """The meaning of an answer to ``status``, ``apply``, ``confirm`` or ``revert``.

    A refusal means that nothing was changed. If the node still has a receipt (``too-late``, ``not-durable``), the receipt
    counts: what is on the node is the outcome. A revert that cannot complete has a reference
    (``not-given-back``, ``not-restarted``, ``not-durable``): the node failed, and its guard continues by itself.
    """
    if report.outcome is Outcome.UNREACHED:
        return Trigger.UNREACHED
    if report.outcome is Outcome.LOST:
        return Trigger.LOST
    if report.outcome is Outcome.REFUSED and (report.receipt is None or report.reference not in _TOLD_BY_THE_RECEIPT):
        return Trigger.REFUSED
    if report.receipt is None:
        return Trigger.UNTOUCHED
    if report.outcome is Outcome.DONE and report.reference and report.receipt.state is ReceiptState.REVERTING:
        return Trigger.STUCK
    return _of_receipt(report.receipt, healthy=report.healthy)


def newer_attempt(tx: str, receipts: Iterable[Receipt]) -> str:
    """A later transaction of the same run that is not reverted; ``""``: there is none. ``receipts``: newest first.

    A run that was still alive when a rollback read the node may have tried it again before the rollback claimed it.
    """
    run = tx.rpartition("-")[0]
    for receipt in receipts:
        if receipt.tx == tx:
            return ""
        if receipt.run == run and receipt.state is not ReceiptState.REVERTED:
            return receipt.tx
    return ""


def reference_of(report: Report, trigger: Trigger) -> str:
    """The stable reference of an answer; a reverted change has one even when nothing was refused."""
    return report.reference or _REFERENCES.get(trigger, "")


_REFERENCES = {
    Trigger.TAKEN_BACK_SICK: "unhealthy",
    Trigger.TAKEN_BACK_ALONE: "not-confirmed-in-time",
    Trigger.STILL_SICK: "unhealthy-with-old-files",
    Trigger.BUSY: "still-busy",
}


def _of_receipt(receipt: Receipt, *, healthy: bool | None) -> Trigger:
    if receipt.state is ReceiptState.CONFIRMED:
        return Trigger.CONFIRMED
    if receipt.state is ReceiptState.REVERTING:
        return Trigger.BUSY
    if receipt.state is ReceiptState.ARMED:
        return Trigger.ARMED if receipt.finished else Trigger.BUSY
    if healthy is False:
        return Trigger.STILL_SICK
    return _TAKEN_BACK.get(receipt.cause, Trigger.TAKEN_BACK_ALONE)
