"""A read that finds a node untouched voids the transaction there: an apply of it that comes later changes nothing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
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
    assert late.message == "a request with token 1 has voided t1 on this node before"
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
    assert [path.name for path in node.at("/var/lib/rollout").glob("void.*")] == ["void.2.t9"]
    assert node.apply().reference == "fenced"
    assert node.apply(replace(order("t9"), counter=2)).reference == "voided"
    assert node.apply(replace(order("t10"), counter=2)).outcome is Outcome.DONE


def test_it_is_not_said_to_be_void_if_that_cannot_be_stored(node: Node) -> None:
    assert node.status(claim=CLAIM).outcome is Outcome.DONE  # the token is stored
    node.at("/var/lib/rollout/void.1.t1").symlink_to("/none/at/all")
    (node.bin / "mv").write_text("#!/bin/sh\nexit 1\n")
    (node.bin / "mv").chmod(0o755)
    found = voids(node)
    assert (found.outcome, found.reference, found.voided) == (Outcome.REFUSED, "state-not-writable", ""), found


@pytest.mark.root  # mounting
@pytest.mark.parametrize("since", ["claim", "apply"])
def test_a_full_disk_does_not_keep_a_lost_apply_from_being_voided(node: Node, since: str) -> None:
    """Neither a byte nor a name can be made; the answer to the apply was lost, or the apply itself is still under way."""
    assert node.status(claim=CLAIM).outcome is Outcome.DONE
    with full(node):
        if since == "apply":
            assert node.apply().outcome is Outcome.REFUSED
        found = voids(node)
        assert (found.outcome, found.receipt, found.voided) == (Outcome.DONE, None, "t1"), found
        assert node.apply().reference == "voided"
        assert voids(node).voided == "t1", "a read may be repeated"
        assert node.apply().reference == "voided"
    assert node.apply().reference == "voided"
    assert node.apply(order("t2")).healthy


@contextmanager
def full(node: Node) -> Iterator[None]:
    """The node's state is on a disk that takes neither a byte nor a name more: a tmpfs, without a page or an inode that is free."""
    state = node.at("/var/lib/rollout")
    kept = state.rename(state.with_name("kept"))
    state.mkdir()
    inodes = str(len(list(kept.rglob("*"))) + 1)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=64k,nr_inodes={inodes}", "none", state], check=True)
    try:
        subprocess.run(["cp", "-a", f"{kept}/.", state], check=True)
        subprocess.run(["dd", "if=/dev/zero", f"of={state}/lock", "bs=4k"], check=False, capture_output=True)
        with pytest.raises(OSError, match="No space"):
            (state / "any").touch()
        yield
        shutil.rmtree(kept)
        subprocess.run(["cp", "-a", state, kept], check=True)
        (kept / "lock").write_bytes(b"")
    finally:
        subprocess.run(["umount", state], check=True)
        state.rmdir()
        kept.rename(state)


def test_a_claim_that_comes_after_the_cleanup_is_refused(node: Node) -> None:
    """Whatever else it requests. The next run's claim, and a resume's with its newer token, are accepted."""
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    assert node.cleanup().outcome is Outcome.DONE
    for late in (node.status(claim=CLAIM), node.status("t1", claim=replace(CLAIM, force=True)), voids(node, "t2")):
        assert (late.outcome, late.reference) == (Outcome.REFUSED, "ended-here"), late
        token = node.status().token
        assert token is not None
        assert not token.live
        assert list(node.at("/var/lib/rollout").glob("void*")) == []
    assert node.cleanup().outcome is Outcome.DONE
    assert node.status(claim=Claim(2, "run-1")).outcome is Outcome.DONE
    assert node.status(claim=Claim(3, "run-3", force=True)).outcome is Outcome.DONE
