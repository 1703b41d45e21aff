"""A read that finds a node untouched voids the transaction there: an apply of it that comes later changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.report import Outcome, Report
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.node import NEW, OLD, Node, order

pytestmark = pytest.mark.process

CLAIM = Claim(1, "run-1")


def voids(node: Node, tx: str = "t1", claim: Claim = CLAIM) -> Report:
    command = agent_call.status(node.program, tx=tx, claim=claim, void=True, sudo=False, deadline=60)
    return node.report("status", command)


def test_an_apply_that_comes_after_the_read_that_voided_it_changes_nothing(node: Node) -> None:
    found = voids(node)
    assert (found.outcome, found.receipt, found.voided) == (Outcome.DONE, None, "t1"), found
    late = node.apply()
    assert (late.outcome, late.reference) == (Outcome.REFUSED, "voided"), late
    assert (node.files(), node.receipt()) == (OLD, {})
    assert not node.tx().exists(), "nothing is staged for it"
    again = node.apply(order("t2"))
    assert (again.outcome, again.healthy) == (Outcome.DONE, True), again
    assert node.files() == NEW


def test_each_of_several_transactions_stays_void(node: Node) -> None:
    """Also after the read is repeated, and after reads that void nothing."""
    for tx in ("t1", "t2", "t1"):
        assert voids(node, tx).voided == tx
    assert node.status("t3", claim=CLAIM).voided == ""
    for tx in ("t1", "t2"):
        assert node.apply(order(tx)).reference == "voided"
    assert node.apply(order("t3")).outcome is Outcome.DONE


def test_a_transaction_with_a_receipt_is_not_voided(node: Node) -> None:
    assert node.apply().outcome is Outcome.DONE
    found = voids(node)
    assert found.receipt is not None
    assert found.voided == ""
    assert node.confirm().outcome is Outcome.DONE
    assert node.files() == NEW


def test_a_read_of_an_older_run_voids_nothing(node: Node) -> None:
    assert node.status(claim=Claim(2, "run-2")).outcome is Outcome.DONE
    assert (voids(node).reference, voids(node).voided) == ("fenced", "")
    assert node.apply(order("t1", "run-2", 2)).outcome is Outcome.DONE


def test_a_newer_token_forgets_what_was_voided_and_fences_it(node: Node) -> None:
    assert voids(node).voided == "t1"
    assert voids(node, "t9", Claim(2, "run-1")).voided == "t9"
    assert node.at("/var/lib/rollout/voided").read_text().splitlines()[0] == "2 run-1 t9"
    assert node.apply().reference == "fenced"
    assert node.apply(replace(order("t9"), counter=2)).reference == "voided"
    assert node.apply(replace(order("t10"), counter=2)).outcome is Outcome.DONE


def test_it_is_not_said_to_be_void_if_that_cannot_be_stored(node: Node) -> None:
    assert node.status(claim=CLAIM).outcome is Outcome.DONE  # the token is stored
    node.at("/var/lib/rollout/voided").mkdir()
    found = voids(node)
    assert (found.outcome, found.reference, found.voided) == (Outcome.REFUSED, "state-not-writable", ""), found
