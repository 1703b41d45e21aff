"""Real systemd nodes, booted once for the session."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshLimits, SshNodes
from rollout.core.model.report import Outcome
from tests.bed.bed import Bed, why_not
from tests.bed.node import CONFIG, DAEMON, FLAGS, Node
from tests.real.agent_calls import CONFIG_PATH, DAEMON_PATH, DROP_IN, FLAGS_PATH, OnNode
from tests.real.fleet import Fleet, make_fleet, written

RealNodes = Callable[[int], list[Node]]
COUNTERS = itertools.count(1)


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups in this hook too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers one of them takes all tests of one node, another those of four: each has a bed for all of its own."""
    for item in items:
        if "real_node" in item.keywords:
            group = "fleet" if "fleet" in getattr(item, "fixturenames", ()) else "real"
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Bed() as made:
        yield made


@pytest.fixture(scope="session")
def real_nodes(bed: Bed) -> RealNodes:
    """``real_nodes(n)``: the first n nodes of the bed, more booted if need be."""

    def take(count: int) -> list[Node]:
        if count > len(bed.nodes):
            bed.add(count - len(bed.nodes))
        return bed.nodes[:count]

    return take


@pytest.fixture
def ssh(bed: Bed, real_nodes: RealNodes) -> Iterator[SshNodes]:
    """SSH to the nodes with the bed's own files, as a user would."""
    real_nodes(1)
    nodes = SshNodes(ssh_config=bed.ssh_config)
    yield nodes
    nodes.close()


@pytest.fixture
def on_node(bed: Bed, real_nodes: RealNodes) -> Iterator[OnNode]:
    """A fresh run that has claimed the node; afterwards nothing may be left of it and the node is as kubeadm made it."""
    (node,) = real_nodes(1)
    ssh = SshNodes(ssh_config=bed.ssh_config, limits=SshLimits(connect=2, channel=3))
    counter = next(COUNTERS)
    hand = OnNode(ssh, node, run=f"run-{counter}", counter=counter)
    claimed = hand.claim()
    assert (claimed.outcome, claimed.token and claimed.token.run) == (Outcome.DONE, hand.run), claimed
    try:
        yield hand
        cleaned = hand.cleanup()
        assert (cleaned.outcome, cleaned.leftovers) == (Outcome.DONE, ()), cleaned
        assert hand.leftovers(loaded=True) == []
    finally:
        ssh.close()
        for path, text in ((CONFIG_PATH, CONFIG), (FLAGS_PATH, FLAGS), (DAEMON_PATH, DAEMON)):
            (node.root / path.lstrip("/")).write_text(text, encoding="utf-8")
        (node.root / DROP_IN.lstrip("/")).unlink(missing_ok=True)
        node.exec("sh", "-c", "systemctl daemon-reload && systemctl reset-failed && systemctl restart docker kubelet")


@pytest.fixture
def fleet(tmp_path: Path, bed: Bed, real_nodes: RealNodes) -> Iterator[Fleet]:
    """Four nodes that know nothing of us; a node that a test leaves otherwise than it was is made afresh."""
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
