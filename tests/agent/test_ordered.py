"""What is confirmed is what was ordered, whoever changed the node meanwhile and whatever became of the change."""

from __future__ import annotations

import pytest

from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import ReceiptState
from rollout.core.run.events import Trigger
from rollout.core.run.triggers import trigger_of
from tests.agent.node import CONFIG, DROPIN, FLAGS, OLD, Node

pytestmark = pytest.mark.process


def refused(node: Node) -> str:
    """By which reference a confirm is refused; the guard stays armed."""
    report = node.confirm()
    assert report.outcome is Outcome.REFUSED
    assert report.receipt is None
    assert node.receipt()["state"] == "armed"
    return report.reference


@pytest.mark.parametrize("path", [CONFIG, FLAGS, DROPIN])
def test_bytes_of_a_third_party_are_not_confirmed(node: Node, path: str) -> None:
    assert node.apply().healthy
    node.write(path, b"somebody else's\n")
    assert refused(node) == "not-as-ordered"
    assert node.trigger("guard") == 0
    assert node.files() == OLD


@pytest.mark.parametrize("path", [CONFIG, FLAGS, DROPIN])
def test_a_link_is_not_confirmed_though_it_leads_to_the_same_bytes(node: Node, path: str) -> None:
    assert node.apply().healthy
    target = node.at(path)
    target.rename(target.with_suffix(".moved"))
    target.symlink_to(target.with_suffix(".moved"))
    assert refused(node) == "not-as-ordered"


def test_a_change_that_has_not_ended_is_not_confirmed(node: Node) -> None:
    assert node.apply().healthy
    receipt = node.tx() / "receipt"
    receipt.write_text(receipt.read_text().replace("finished=1", "finished=0"))
    assert refused(node) == "not-finished"


def test_a_confirm_that_is_repeated_asks_for_nothing(node: Node) -> None:
    """It is confirmed already: what others change afterwards is drift."""
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    node.write(CONFIG, b"somebody else's\n")
    again = node.confirm()
    assert again.receipt is not None
    assert again.receipt.state is ReceiptState.CONFIRMED
    assert trigger_of(again) is Trigger.CONFIRMED
