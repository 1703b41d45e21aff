"""Four real nodes: dockerd changes with the kubelet, or alone. A run waits for pulls that a restart would cancel."""

from __future__ import annotations

import pytest

from tests.bed.node import Node
from tests.controllers import until
from tests.real.daemons import DOCKER, KUBELET, processes, reloaded
from tests.real.fleet import PATIENCE, Fleet

pytestmark = [pytest.mark.root, pytest.mark.drawn(1)]

DEFAULT, WANTED = 3, 6
DAEMON_FILE = "etc/docker/daemon.json"
LAYER = "/var/lib/docker/tmp/GetImageBlob4071"
EMERGENCY = ("rollback", "--cluster", "real", "--emergency", "--yes")


@pytest.fixture(autouse=True)
def loaded(fleet: Fleet) -> None:
    """Each dockerd starts after its file was written: the test before made nodes forget that a SIGHUP had loaded it."""
    for node in fleet.nodes:
        node.exec("systemctl", "reset-failed", DOCKER)  # its starts are counted, and restarts are many here
        node.exec("systemctl", "restart", DOCKER)


def downloads(fleet: Fleet, *, alone: bool = False) -> None:
    """The playbook sets them, in addition to its settings or instead of them."""
    here = f"maxConcurrentDownloads: {WANTED}"
    fleet.playbook("imagePullProgressDeadline: 5m, serializeImagePulls: false", here) if alone else fleet.playbook(
        "serializeImagePulls: false", here
    )


def of_all(fleet: Fleet, unit: str) -> list[tuple[str, ...]]:
    return [processes(node)[unit] for node in fleet.nodes]


def said(fleet: Fleet) -> dict[str, list[int]]:
    return {node.name: reloaded(node) for node in fleet.nodes}


def and_then(before: dict[str, list[int]], *values: int) -> dict[str, list[int]]:
    return {name: [*told, *values] for name, told in before.items()}


def pull(node: Node) -> None:
    """A layer is being pulled."""
    node.exec("touch", LAYER)


def test_a_flag_of_the_kubelet_and_a_key_of_dockerd_in_one_playbook_are_applied_and_reverted(fleet: Fleet) -> None:
    downloads(fleet)
    before, told, dockerds, kubelets = (
        fleet.everything(),
        said(fleet),
        of_all(fleet, DOCKER),
        of_all(fleet, KUBELET),
    )
    planned = fleet.rollout("plan", "--cluster", "real", "--out", "p.json", "--exit-code")
    assert planned.code == 10, planned.all
    assert "SIGHUP to docker.service" in planned.out

    applied = fleet.rollout("apply", "p.json", "--yes")
    assert applied.code == 0, applied.all
    assert [fleet.is_new(node) and fleet.runs_new(node) for node in fleet.nodes] == [True] * 4
    assert said(fleet) == and_then(told, WANTED), "each has read its new file, once"
    assert of_all(fleet, DOCKER) == dockerds
    assert all(then != now for then, now in zip(kubelets, of_all(fleet, KUBELET), strict=True))
    fleet.nothing_left()
    again = fleet.rollout("plan", "--cluster", "real", "--out", "again.json", "--exit-code")
    assert again.code == 0, again.all

    back = fleet.rollout("rollback", fleet.status()["run"], "--yes")
    assert back.code == 0, back.all
    assert fleet.everything() == before
    assert said(fleet) == and_then(told, WANTED, DEFAULT)
    assert of_all(fleet, DOCKER) == dockerds
    fleet.nothing_left()


def test_dockerd_alone_restarts_nothing_waits_for_no_pulls_and_is_reverted_without_a_journal(fleet: Fleet) -> None:
    downloads(fleet, alone=True)
    before, told = fleet.everything(), said(fleet)
    processes_before = [processes(node) for node in fleet.nodes]
    pull(fleet.nodes[0])
    fleet.plan()
    armed = fleet.nodes[-1]
    armed.hold("*/next/finished *")
    with fleet.begun("apply", "p.json", "--yes") as process:
        until(armed.holds, PATIENCE, "the last node is armed and has got its SIGHUP")
        assert (fleet.receipt(armed), reloaded(armed)[-1]) == ("armed -", WANTED), "guarded like any change"
        armed.let_go()
        assert process.wait(PATIENCE) == 0, fleet.said()
    fleet.nodes[0].exec("rm", LAYER)
    assert [fleet.receipt(node) for node in fleet.nodes] == ["confirmed -"] * 4
    assert said(fleet) == and_then(told, WANTED)

    emergency = fleet.rollout(*EMERGENCY, "--state", "elsewhere")
    assert emergency.code == 0, emergency.all
    assert fleet.everything() == before
    assert said(fleet) == and_then(told, WANTED, DEFAULT)
    assert [processes(node) for node in fleet.nodes] == processes_before, "changed and reverted by SIGHUP alone"
    fleet.nothing_left()


def test_a_node_that_pulls_images_is_changed_last_after_its_pulls(fleet: Fleet) -> None:
    fleet.playbook("[canary, rest]", "[rest]")
    fleet.one_rack()
    busy, *others = fleet.nodes
    pull(busy)
    untouched = processes(busy)
    with fleet.begun("apply", "--cluster", "real", "--yes") as process:
        until(
            lambda: [fleet.receipt(node) for node in others] == ["confirmed -"] * 3,
            PATIENCE,
            "the others are changed first",
        )
        assert f"waits: 1 node pulls images ({busy.name})" in fleet.rollout("status").out
        assert (fleet.receipts(busy), processes(busy)) == ([], untouched), "rollout has not touched it"
        busy.exec("rm", LAYER)
        assert process.wait(PATIENCE) == 0, fleet.said()
    assert fleet.status()["counts"] == {"confirmed": 4}
    assert fleet.runs_new(busy)
    back = fleet.rollout(*EMERGENCY)
    assert back.code == 0, back.all
