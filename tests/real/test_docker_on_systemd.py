"""The agent and dockerd, on a real systemd: dockerd gets a SIGHUP or a restart, and each is reverted in the same way."""

from __future__ import annotations

import pytest

from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import ReceiptState
from tests.bed.node import CONFIG, DAEMON
from tests.real.agent_calls import CONFIG_PATH, DAEMON_PATH, OnNode, armed_before_its_guard, eventually, receipt
from tests.real.daemons import DOCKER, KUBELET, began, processes, reloaded, started

pytestmark = [pytest.mark.root, pytest.mark.drawn(2)]

DEFAULT, WANTED = 3, 6
NEW_DAEMON = DAEMON.replace("true", f'true,\n  "max-concurrent-downloads": {WANTED}').encode()
NEW_CONFIG = CONFIG.replace("serializeImagePulls: true", "serializeImagePulls: false").encode()


def test_the_snapshot_sees_dockerd_and_its_file(on_node: OnNode) -> None:
    found = on_node.snapshot()
    service = found.measurement.services[DOCKER]
    assert (service.unit.properties["ActiveState"], service.unit.properties["FragmentPath"]) == (
        "active",
        "/lib/systemd/system/docker.service",
    )
    assert service.process is not None
    assert service.process.command_line == ("/usr/bin/dockerd",)
    assert found.files[DAEMON_PATH].content == DAEMON.encode()
    assert found.measurement.pulls == ()


def test_an_unconfirmed_sighup_is_reverted_by_another_sighup(on_node: OnNode) -> None:
    node = on_node.node
    before, changes = processes(node), {DAEMON_PATH: NEW_DAEMON}
    said: list[int] = []

    def look(tx: str) -> None:
        said[:] = reloaded(node)

    tx = armed_before_its_guard(on_node, "tx-hup", changes, units=(), hangups=(DOCKER,), then=look)
    assert (on_node.read(DAEMON_PATH), said[-1]) == (NEW_DAEMON.decode(), WANTED)
    eventually(lambda: receipt(on_node, tx).state is ReceiptState.REVERTED)
    assert receipt(on_node, tx).cause == "guard"
    assert (on_node.read(DAEMON_PATH), reloaded(node)) == (DAEMON, [*said, DEFAULT])
    assert processes(node) == before, "neither was restarted, in apply or revert"
    eventually(lambda: on_node.leftovers() == [])


def test_a_dockerd_that_dies_of_the_sighup_is_started_with_its_old_file(on_node: OnNode) -> None:
    node = on_node.node
    before = processes(node)
    node.exec("touch", "/run/dockerd-deaf")
    try:
        report = on_node.apply("tx-deaf", {DAEMON_PATH: NEW_DAEMON}, units=(), hangups=(DOCKER,))
    finally:
        node.exec("rm", "/run/dockerd-deaf")
    assert report.receipt is not None
    assert (report.receipt.state, report.receipt.cause) == (ReceiptState.REVERTED, "health"), report
    assert (report.healthy, DOCKER in report.message) == (True, True), report
    assert (on_node.read(DAEMON_PATH), began(node)[-1]) == (DAEMON, DEFAULT)
    assert processes(node)[DOCKER] != before[DOCKER]
    assert processes(node)[KUBELET] == before[KUBELET]


def test_a_power_cut_before_a_sighup_is_confirmed_boots_dockerd_with_its_old_file(on_node: OnNode) -> None:
    node = on_node.node
    report = on_node.apply("tx-dark", {DAEMON_PATH: NEW_DAEMON}, guard=120, units=(), hangups=(DOCKER,))
    assert (report.outcome, report.healthy) == (Outcome.DONE, True), report
    node.powercut()
    assert on_node.read(DAEMON_PATH) == NEW_DAEMON.decode()
    node.heal()
    node.boot()
    node.wait()
    eventually(node.is_up)
    assert (receipt(on_node, "tx-dark").state, receipt(on_node, "tx-dark").cause) == (ReceiptState.REVERTED, "boot")
    assert on_node.read(DAEMON_PATH) == DAEMON
    assert (began(node), reloaded(node)) == ([DEFAULT], []), "the file was restored before dockerd read it"
    eventually(lambda: on_node.leftovers() == [])


def test_a_runtime_is_restarted_before_the_kubelet_in_apply_and_revert(on_node: OnNode) -> None:
    node = on_node.node
    before = processes(node)
    changes = {DAEMON_PATH: NEW_DAEMON, CONFIG_PATH: NEW_CONFIG}
    report = on_node.apply("tx-both", changes, units=(DOCKER, KUBELET))
    assert (report.outcome, report.healthy) == (Outcome.DONE, True), report
    there, moments = processes(node), [started(node, unit) for unit in (DOCKER, KUBELET)]
    assert all(there[unit] != before[unit] for unit in there)
    assert (moments, began(node)[-1]) == (sorted(moments), WANTED)
    assert on_node.confirm("tx-both").outcome is Outcome.DONE
    assert on_node.revert("tx-both").healthy is True
    back, moments = processes(node), [started(node, unit) for unit in (DOCKER, KUBELET)]
    assert all(back[unit] != there[unit] for unit in back)
    assert (moments, began(node)[-1]) == (sorted(moments), DEFAULT)
    assert (on_node.read(DAEMON_PATH), on_node.read(CONFIG_PATH)) == (DAEMON, CONFIG)


def test_a_runtime_that_dies_of_its_restart_has_its_old_file_and_both_are_healthy(on_node: OnNode) -> None:
    """Its unit starts at most three times a minute: the starts with the new files must not block the old ones."""
    node = on_node.node
    for attempt in range(3):
        changes = {DAEMON_PATH: b"BROKEN\n", CONFIG_PATH: NEW_CONFIG}
        report = on_node.apply(f"tx-dead-{attempt}", changes, units=(DOCKER, KUBELET))
        assert report.receipt is not None
        assert (report.receipt.state, report.receipt.cause) == (ReceiptState.REVERTED, "health"), report
        assert (report.healthy, DOCKER in report.message) == (True, True), report
        assert (on_node.read(DAEMON_PATH), on_node.read(CONFIG_PATH)) == (DAEMON, CONFIG)
        assert processes(node).keys() == {DOCKER, KUBELET}, "both run"
        assert began(node)[-1] == DEFAULT
        assert on_node.leftovers() == []
