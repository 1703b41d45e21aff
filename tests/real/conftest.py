"""Fixtures for real systemd nodes: requests over SSH, one node in a run of its own, a rollout on four."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshNodes
from rollout.core.model.report import Outcome
from tests.bed.bed import Bed
from tests.bed.node import CONFIG, DAEMON, FLAGS
from tests.bed.plugin import RealNodes
from tests.real.agent_calls import CONFIG_PATH, DAEMON_PATH, DROP_IN, FLAGS_PATH, OnNode
from tests.real.fleet import Fleet, make_fleet, written


@pytest.fixture
def ssh(bed: Bed, real_nodes: RealNodes) -> Iterator[SshNodes]:
    """SSH to the nodes with the bed's own files, as for a user."""
    real_nodes(1)
    nodes = SshNodes(ssh_config=bed.ssh_config)
    yield nodes
    nodes.close()


@pytest.fixture
def on_node(bed: Bed, real_nodes: RealNodes) -> Iterator[OnNode]:
    """A new run that has claimed the node. Afterwards nothing may be left of it, and the node is as kubeadm made it."""
    (node,) = real_nodes(1)
    ssh = SshNodes(ssh_config=bed.ssh_config)
    hand = OnNode(ssh, node)
    claimed = hand.claim_anew()
    assert (claimed.outcome, claimed.token and claimed.token.run) == (Outcome.DONE, hand.run), claimed
    try:
        yield hand
        cleaned = hand.cleanup()
        assert (cleaned.outcome, cleaned.leftovers) == (Outcome.DONE, ()), cleaned
        assert hand.leftovers(loaded=True) == []
    finally:
        ssh.close()
        node.heal()
        node.resume()
        node.let_go()
        for path, text in ((CONFIG_PATH, CONFIG), (FLAGS_PATH, FLAGS), (DAEMON_PATH, DAEMON)):
            (node.root / path.lstrip("/")).write_text(text, encoding="utf-8")
        (node.root / DROP_IN.lstrip("/")).unlink(missing_ok=True)
        node.exec("sh", "-c", "systemctl daemon-reload && systemctl reset-failed && systemctl restart docker kubelet")


@pytest.fixture
def fleet(tmp_path: Path, bed: Bed, real_nodes: RealNodes) -> Iterator[Fleet]:
    """Four nodes without any state of rollout; a node that a test has changed is made again."""
    nodes = real_nodes(4)
    for node in nodes:
        node.exec("rm", "-rf", "/var/lib/rollout")
    pristine = {node.name: dict(written(node)) for node in nodes}
    yield make_fleet(tmp_path, bed, nodes)
    for node in nodes:
        node.disk.free()
        node.heal()
        if dict(written(node)) != pristine[node.name] or not node.is_up():
            bed.renew(node)
        node.let_go()
