"""A disk that reports a lost write, once: the change is refused, or reverted, or the node is failed. The sync is never repeated."""

from __future__ import annotations

import pytest

from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import ReceiptState
from rollout.core.run.events import Trigger, reference_of, trigger_of
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.node import NEW, OLD, Node

pytestmark = pytest.mark.process


def lose(node: Node, pattern: str) -> None:
    """The next sync of a matching name fails; later ones do not."""
    node.standin("lost", pattern + "\n")


@pytest.mark.parametrize("name", ["*/agent", "*/file.1", "*/old.1", "*/next/confirmed", "*/new.2", "*/next", "*/tx/t1"])
def test_a_failed_sync_of_staging_prevents_arming(node: Node, name: str) -> None:
    lose(node, name)
    report = node.apply()
    if name == "*/old.1":  # a hard link: nothing new was written
        assert report.healthy
        return
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-durable")
    assert (node.files(), node.strays()) == (OLD, [])


def test_a_node_with_a_sync_that_takes_no_names_is_refused(node: Node) -> None:
    node.standin("no-names")
    assert node.apply().reference == "sync-without-names"
    assert (node.files(), node.strays()) == (OLD, [])


@pytest.mark.parametrize("verb", ["claim", "apply"])
def test_a_lost_token_is_not_accepted(node: Node, verb: str) -> None:
    lose(node, "*/rollout/token")
    report = node.status(claim=Claim(1, "run-1")) if verb == "claim" else node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-durable")


def test_a_lost_void_is_not_said(node: Node) -> None:
    lose(node, "*/rollout/voided")
    command = agent_call.status(node.program, tx="t1", claim=Claim(1, "run-1"), void=True, sudo=False, deadline=60)
    found = node.report("status", command)
    assert (found.outcome, found.reference, found.voided) == (Outcome.REFUSED, "not-durable", "")


def test_lost_new_files_are_reverted_at_once(node: Node) -> None:
    lose(node, "*/lib/kubelet")
    report = node.apply()
    assert (report.reference, trigger_of(report)) == ("not-durable", Trigger.TAKEN_BACK_SICK)
    assert "sync failed" in report.message
    assert (node.files(), node.receipt()["state"]) == (OLD, "reverted")


def test_old_files_that_are_lost_too_fail_the_node(node: Node) -> None:
    lose(node, "*/lib/kubelet\n*/etc/default")
    report = node.apply()
    assert (report.reference, trigger_of(report)) == ("not-durable", Trigger.STUCK)
    assert node.receipt()["state"] == "reverting"


def test_a_lost_confirm_is_reverted(node: Node) -> None:
    assert node.apply().healthy
    lose(node, "*/tx/t1")
    report = node.confirm()
    assert (report.reference, trigger_of(report)) == ("not-durable", Trigger.TAKEN_BACK_SICK)
    assert (node.files(), node.receipt()["state"], node.strays()) == (OLD, "reverted", [])


@pytest.mark.parametrize("name", ["*/tx/t1", "*/lib/kubelet", "*/etc/default"])
def test_lost_old_files_fail_the_node_without_a_retry(node: Node, name: str) -> None:
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    lose(node, name)
    report = node.revert()
    assert trigger_of(report) is Trigger.STUCK
    assert reference_of(report, trigger_of(report)) == "not-durable"
    assert report.receipt is not None
    assert report.receipt.state is ReceiptState.REVERTING
    restarts = node.calls().count("restart kubelet.service")
    assert restarts == 2, "the old files are in force anyway"
    assert node.files() == OLD
    assert node.revert().reference == node.status("t1").reference == "not-durable"
    assert node.calls().count("restart kubelet.service") == restarts
    node.reboot()
    assert node.trigger("boot") == 0
    assert (node.files(), node.receipt()["state"], node.strays()) == (OLD, "reverted", [])


def test_nothing_is_lost_where_no_sync_fails(node: Node) -> None:
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    assert node.files() == NEW
