"""A region without a worker, with a real OpenSSH server: this machine reads its node only if the inventory allows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rollout.adapters.ssh import SshNodes
from rollout.app.node_access import access_to
from rollout.core.model.report import Outcome
from rollout.core.reading.inventory_file import load_inventory
from rollout.core.run.events import AWAY
from rollout.errors import InputError
from rollout.features.regions.client.nodes import RegionNodes
from rollout.features.regions.client.workers import NoScheduler
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report
from tests.adapters.ssh.sshd import PATIENT, Sshd, require
from tests.agent.node import PROGRAM, Node, order

pytestmark = pytest.mark.process

PATIENCE = 600.0
INVENTORY = (
    "cluster: c\napiServer: v1.34.2\nnodes: {n1: {rack: r, zone: eu-a}, n2: {rack: q, zone: us}}\ncontrollerSsh: [eu]\n"
)


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    require()
    server = Sshd(tmp_path)
    node = Node.make(tmp_path / "node", "dash")
    server.options = f"SetEnv {' '.join(f'{name}={value}' for name, value in node.env().items())}"
    server.start()
    try:
        yield server
    finally:
        server.stop()


def test_only_nodes_of_regions_in_the_inventory_are_reached_and_nothing_is_applied(sshd: Sshd) -> None:
    targets = access_to(load_inventory(INVENTORY, "c.yaml"), PROGRAM, ("n1", "n2")).targets
    status = agent_call.status(PROGRAM, sudo=False, deadline=PATIENCE)
    apply = agent_call.apply(PROGRAM, order(), sudo=False, deadline=PATIENCE)
    said: list[str] = []
    with closing(
        RegionNodes(NoScheduler(), SshNodes(ssh_config=sshd.ssh_config, limits=PATIENT), said.append)
    ) as nodes:
        assert parse_report("n1", "status", nodes.run(targets["n1"], status), 0.0).outcome is Outcome.DONE
        refused = [nodes.run(targets["n1"], apply), nodes.run(targets["n2"], status), nodes.run(targets["n2"], apply)]
    assert [(answer.started, answer.reference) for answer in refused] == [(False, AWAY)] * 3
    assert sshd.accepted() == 1
    assert len(said) == 2, "once for each zone"


def test_a_region_of_no_zone_is_a_mistake_of_the_inventory() -> None:
    with pytest.raises(InputError) as caught:
        load_inventory(INVENTORY.replace("[eu]", "[eu, asia]"), "c.yaml")
    said = "c.yaml:4:21: `asia` is the region of no zone (the zones: eu-a, us) [unknown-region]"
    assert str(caught.value) == said
