"""Today's agent over the state of older agents: it reads, ends and reverts it to the exact bytes, and leaves nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import ReceiptState, Token
from rollout.kubelet.agent import agent_call
from tests.agent.node import CONFIG, NEW, OLD, Node, order
from tests.agent.recorded.trees import COMMITS, STATES, node_as_left

pytestmark = pytest.mark.process

OF_EVERY_AGENT = pytest.mark.parametrize("commit", COMMITS)

READ = {
    "armed": ReceiptState.ARMED,
    "half-confirmed": ReceiptState.CONFIRMED,
    "confirmed": ReceiptState.CONFIRMED,
    "reverting": ReceiptState.REVERTING,
    "reverted": ReceiptState.REVERTED,
}


def ended(node: Node, files: Mapping[str, bytes | None]) -> None:
    """The node has these bytes, and after the end of the run and ``forget`` nothing of rollout."""
    assert node.files() == files
    cleaned = node.cleanup()
    assert (cleaned.outcome, cleaned.leftovers) == (Outcome.DONE, ()), cleaned
    assert node.strays() == []
    forgotten = node.forget()
    assert (forgotten.outcome, forgotten.leftovers) == (Outcome.DONE, ()), forgotten
    assert not node.at("/var/lib/rollout").exists()
    assert node.files() == files


@OF_EVERY_AGENT
@pytest.mark.parametrize("state", STATES)
def test_its_receipts_are_read(node: Node, commit: str, state: str) -> None:
    found = node_as_left(node, commit, state).status(tx="t1")
    assert (found.outcome, found.token) == (Outcome.DONE, Token(1, "run-1", live=True)), found
    (receipt,) = found.receipts
    assert (receipt.tx, receipt.run, receipt.counter, receipt.state) == ("t1", "run-1", 1, READ[state])


@OF_EVERY_AGENT
@pytest.mark.parametrize("state", ["armed", "reverting", "confirmed", "half-confirmed"])
def test_its_change_is_reverted_to_the_exact_old_bytes(node: Node, commit: str, state: str) -> None:
    node_as_left(node, commit, state)
    report = node.revert()
    assert (report.outcome, node.receipt()["state"]) == (Outcome.DONE, "reverted"), report
    ended(node, OLD)


@OF_EVERY_AGENT
@pytest.mark.parametrize("state", ["armed", "half-confirmed", "confirmed"])
def test_its_change_is_confirmed(node: Node, commit: str, state: str) -> None:
    node_as_left(node, commit, state)
    report = node.confirm()
    assert (report.outcome, node.receipt()["state"]) == (Outcome.DONE, "confirmed"), report
    ended(node, NEW)


@OF_EVERY_AGENT
@pytest.mark.parametrize("state", ["armed", "reverting"])
def test_its_guard_still_fires_and_its_receipt_is_read(node: Node, commit: str, state: str) -> None:
    """The guard runs the copy of the agent that armed it."""
    node_as_left(node, commit, state)
    node.pass_time(61)
    assert node.trigger("guard") == 0
    (receipt,) = node.status(tx="t1").receipts
    assert receipt.state is ReceiptState.REVERTED
    ended(node, OLD)


@OF_EVERY_AGENT
@pytest.mark.parametrize("state", ["armed", "reverting"])
def test_after_a_power_cut_its_boot_unit_reverts(node: Node, commit: str, state: str) -> None:
    node_as_left(node, commit, state)
    node.reboot()
    assert node.trigger("boot") == 0
    assert node.files() == OLD
    (receipt,) = node.status(tx="t1").receipts
    assert receipt.state in (ReceiptState.REVERTING, ReceiptState.REVERTED)
    assert node.revert().outcome is Outcome.DONE
    ended(node, OLD)


@OF_EVERY_AGENT
@pytest.mark.parametrize("state", ["confirmed", "reverted"])
def test_a_lost_apply_is_voided_on_it(node: Node, commit: str, state: str) -> None:
    """And a transaction with a receipt of an older agent is not."""
    files = node_as_left(node, commit, state).files()
    for tx, voided in (("t1", ""), ("t2", "t2")):
        command = agent_call.status(
            node.program, tx=tx, claim=agent_call.Claim(1, "run-1"), void=True, sudo=False, deadline=60
        )
        assert node.report("status", command).voided == voided
    assert node.apply(order(tx="t2", counter=1)).reference == "voided"
    ended(node, files)


@OF_EVERY_AGENT
def test_another_run_does_not_change_an_armed_node(node: Node, commit: str) -> None:
    node_as_left(node, commit, "armed")
    report = node.apply(order(tx="t2", counter=1))
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "armed-by-another"), report
    assert node.files() == NEW


@OF_EVERY_AGENT
@pytest.mark.parametrize(("state", "before"), [("confirmed", NEW), ("reverted", OLD)])
def test_a_new_change_over_it_is_applied_and_reverted(
    node: Node, commit: str, state: str, before: Mapping[str, bytes | None]
) -> None:
    node_as_left(node, commit, state)
    newer = {**NEW, CONFIG: b"newest config\n"}
    report = node.apply(order(tx="t2", old=before, new=newer))
    assert (report.outcome, node.files()) == (Outcome.DONE, newer), report
    assert not node.at("/etc/systemd/system/multi-user.target.wants/rollout-guard-boot.service").is_symlink()
    assert node.revert("t2").outcome is Outcome.DONE
    ended(node, before)


@OF_EVERY_AGENT
@pytest.mark.parametrize("state", ["armed", "half-confirmed"])
def test_its_boot_unit_in_another_target_is_removed(node: Node, commit: str, state: str) -> None:
    node_as_left(node, commit, state)
    wanted = node.at("/etc/systemd/system/multi-user.target.wants/rollout-guard-boot.service")
    assert wanted.is_symlink()
    node.confirm()
    assert not wanted.is_symlink()
    assert node.strays() == []


@OF_EVERY_AGENT
def test_what_it_confirmed_is_verified(node: Node, commit: str) -> None:
    node_as_left(node, commit, "confirmed")
    expected = {found.path: found.digest for found in node.verify().expected}
    assert set(expected) == set(NEW)
