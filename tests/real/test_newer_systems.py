"""Newer systems at night: Debian 13, sid, and sid with sudo-rs and rust-coreutils. A change is confirmed, reverted, and reverted by its guard.

sudo asks for a password there, too: a right one on one node, a wrong one that is rejected, and what sudo refuses at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing

import pytest

from rollout.adapters.agent_program import agent_program
from rollout.adapters.ssh import SshNodes
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import ReceiptState
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report
from rollout.kubelet.agent.sudo import Secret
from tests.bed.bed import Bed, why_not
from tests.bed.image import System
from tests.bed.node import CONFIG, Node
from tests.real.agent_calls import CONFIG_PATH, PATIENCE, OnNode, armed_before_its_guard, eventually, receipt

pytestmark = [pytest.mark.root, pytest.mark.night]

NEW = CONFIG.replace("maxPods: 110", "maxPods: 90").encode()
PASSWORD = "correct horse"  # noqa: S105 - of nodes that live for one test
COUNTERS = itertools.count(1)


@pytest.fixture(scope="module", params=[system for system in System if system is not System.BOOKWORM])
def newer(request: pytest.FixtureRequest) -> Iterator[tuple[Bed, Node]]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Bed(request.param) as bed:
        (node,) = bed.add(1)
        yield bed, node


@pytest.fixture
def hand(newer: tuple[Bed, Node]) -> Iterator[OnNode]:
    bed, node = newer
    counter = next(COUNTERS)
    with closing(SshNodes(ssh_config=bed.ssh_config)) as ssh:
        made = OnNode(ssh, node, run=f"run-{counter}", counter=counter)
        assert made.claim().outcome is Outcome.DONE
        yield made
        cleaned = made.cleanup()
        assert (cleaned.outcome, cleaned.leftovers) == (Outcome.DONE, ()), cleaned
        assert made.leftovers(loaded=True) == []


def _config(node: Node) -> bytes:
    return (node.root / CONFIG_PATH.lstrip("/")).read_bytes()


def test_a_change_is_confirmed_and_reverted(hand: OnNode) -> None:
    assert hand.apply("t1", {CONFIG_PATH: NEW}).healthy
    assert hand.confirm("t1").outcome is Outcome.DONE
    assert _config(hand.node) == NEW
    assert hand.revert("t1").outcome is Outcome.DONE
    assert _config(hand.node) == CONFIG.encode()


def test_an_unconfirmed_change_is_reverted_by_its_guard(hand: OnNode) -> None:
    tx = armed_before_its_guard(hand, "alone", {CONFIG_PATH: NEW})
    assert _config(hand.node) == NEW
    eventually(lambda: receipt(hand, tx).state is ReceiptState.REVERTED)
    assert receipt(hand, tx).cause == "guard"
    assert _config(hand.node) == CONFIG.encode()


def test_a_password_is_accepted_rejected_and_refused(newer: tuple[Bed, Node]) -> None:
    bed, node = newer
    node.exec("sh", "-c", f"echo 'ops:{PASSWORD}' | chpasswd")
    rules = node.root / "etc/sudoers.d/ops"
    before = rules.read_text()
    try:
        rules.write_text("ops ALL=(ALL) ALL\n")
        assert _status(bed, node, PASSWORD).outcome is Outcome.DONE
        assert _status(bed, node, "wrong").reference == "sudo-password-wrong"
        assert _status(bed, node, None).reference == "no-sudo"
        rules.write_text("ops ALL=(ALL) /bin/true\n")
        assert _status(bed, node, PASSWORD).reference == "sudo-not-allowed"
        assert _status(bed, node, None).reference in ("sudo-not-allowed", "no-sudo"), "GNU sudo asks first"
    finally:
        rules.write_text(before)


def _status(bed: Bed, node: Node, password: str | None) -> Report:
    secret = None if password is None else Secret(password)
    with closing(SshNodes(ssh_config=bed.ssh_config, sudo_password=secret)) as ssh:
        command = agent_call.status(agent_program(), sudo=True, deadline=PATIENCE)
        return parse_report(node.name, "status", ssh.run(OnNode(ssh, node, "r", 1).target, command), 1.0)
