"""The agent's transaction on a real systemd, over real SSH: guard, power cut, boot unit, revert."""

from __future__ import annotations

import pytest

from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import ReceiptState
from tests.bed.node import CONFIG, FLAGS
from tests.real.agent_calls import (
    CONFIG_PATH,
    DROP_IN,
    FLAGS_PATH,
    OnNode,
    armed_before_its_guard,
    eventually,
    kubelets,
    moments,
    on_disk,
    receipt,
    seconds_left,
)

pytestmark = [pytest.mark.root, pytest.mark.drawn(6)]
LATER = 20.0
"""systemd may be late by some seconds on a loaded machine, and then starts all that is due in any order. By default a timer may be a minute late."""

NEW_CONFIG = CONFIG.replace("serializeImagePulls: true", "serializeImagePulls: false").encode()
DEADLINE_FLAG = "--image-pull-progress-deadline=5m0s"
NEW_FLAGS = FLAGS.replace('3.2"', f'3.2 {DEADLINE_FLAG}"').encode()


def test_the_snapshot_sees_the_node_as_kubeadm_made_it(on_node: OnNode) -> None:
    found = on_node.snapshot()
    assert found.kubelet_version == "1.20.15"
    assert found.files[CONFIG_PATH].content == CONFIG.encode()
    assert found.files[FLAGS_PATH].content == FLAGS.encode()
    assert found.files[DROP_IN].kind == "absent"
    assert {"/lib/systemd/system/kubelet.service", "/usr/lib/systemd/system/kubelet.service"} & set(found.files)
    assert "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf" in found.files
    assert found.measurement.unit is not None
    assert found.measurement.unit.properties["ActiveState"] == "active"
    assert found.measurement.process is not None
    assert "--network-plugin=cni" in found.measurement.process.command_line
    assert found.measurement.lenient == 0
    assert found.machine_id == (on_node.read("/etc/machine-id") or "").strip()


def test_the_snapshot_sees_what_settings_may_need_on_the_node(on_node: OnNode) -> None:
    found = on_node.snapshot().surroundings
    assert found is not None
    assert found.kubelet_root == "/var/lib/kubelet"
    assert (found.has_cgroup("/system.slice"), found.has_cgroup("/kube-reserved.slice")) == (True, False)
    assert found.sockets is not None
    assert found.sockets.whole
    assert found.swaps is not None
    assert found.sysctls.keys() >= {"vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "kernel.panic_on_oops"}
    room = found.room("kubelet")
    assert room is not None
    kind, blocks, free = on_node.node.exec("stat", "-f", "-c", "%T %b %a", "/var/lib/kubelet").split()
    assert (room.kind, room.size > 0, 0 < room.free <= room.size) == (kind, int(blocks) > 0, int(free) > 0)
    assert [each.folder for each in found.manifests] == ["/etc/kubernetes/manifests"]


def test_apply_then_confirm_then_revert(on_node: OnNode) -> None:
    report = on_node.apply("tx-1", {CONFIG_PATH: NEW_CONFIG, FLAGS_PATH: NEW_FLAGS}, arguments=(DEADLINE_FLAG,))
    assert (report.outcome, report.healthy) == (Outcome.DONE, True), report
    assert report.receipt is not None
    assert (report.receipt.state, report.receipt.finished) == (ReceiptState.ARMED, True)
    assert on_node.read(CONFIG_PATH) == NEW_CONFIG.decode()
    process = on_node.snapshot().measurement.process
    assert process is not None
    assert DEADLINE_FLAG in process.command_line
    assert on_node.leftovers() != []
    confirmed = on_node.confirm("tx-1")
    assert confirmed.receipt is not None
    assert confirmed.receipt.state is ReceiptState.CONFIRMED
    assert on_node.leftovers() == []
    taken_back = on_node.revert("tx-1")
    assert (taken_back.outcome, taken_back.healthy) == (Outcome.DONE, True), taken_back
    assert receipt(on_node, "tx-1").state is ReceiptState.REVERTED
    assert (on_node.read(CONFIG_PATH), on_node.read(FLAGS_PATH)) == (CONFIG, FLAGS)


def test_after_its_guard_has_fired_a_node_tells_how_the_kubelet_ended_and_its_last_lines(on_node: OnNode) -> None:
    def crash(_: str) -> None:
        on_node.node.exec("systemctl", "kill", "-s", "ABRT", "kubelet")

    before = kubelets(on_node)
    tx = armed_before_its_guard(on_node, "log", {CONFIG_PATH: NEW_CONFIG}, then=crash)
    eventually(lambda: receipt(on_node, tx).state is ReceiptState.REVERTED)
    report = on_node.status(tx)
    assert (report.receipt is not None and report.receipt.cause) == "guard"
    assert report.log is not None, report
    assert "status=6/ABRT" in report.log.exited
    started = [line for line in report.log.lines if "started, pid" in line]
    assert 1 <= len(started) <= kubelets(on_node) - before - 1, (
        "neither the kubelet before the change nor after the revert"
    )


def test_a_new_drop_in_is_loaded_and_removed_again(on_node: OnNode) -> None:
    text = b'[Service]\nEnvironment="KUBELET_EXTRA_ARGS=--v=3"\n'
    report = on_node.apply("tx-drop", {DROP_IN: text}, arguments=("--v=3",))
    assert (report.outcome, report.healthy) == (Outcome.DONE, True), report
    assert on_node.node.exec("systemctl", "show", "-p", "NeedDaemonReload", "--value", "kubelet").strip() == "no"
    assert on_node.revert("tx-drop").outcome is Outcome.DONE
    assert on_node.read(DROP_IN) is None
    assert on_node.node.exec("systemctl", "show", "-p", "NeedDaemonReload", "--value", "kubelet").strip() == "no"


def test_a_drifted_file_is_refused_untouched(on_node: OnNode) -> None:
    order = on_node.order("tx-drift", {CONFIG_PATH: NEW_CONFIG})
    (on_node.node.root / CONFIG_PATH.lstrip("/")).write_text(f"{CONFIG}# somebody was here\n", encoding="utf-8")
    answer = on_node.send(order)
    assert b"refused drifted" in answer.stdout
    assert on_node.read(CONFIG_PATH) == f"{CONFIG}# somebody was here\n"
    assert on_node.leftovers() == []


@pytest.mark.parametrize(
    "bad", [b"", NEW_CONFIG + b"BROKEN\n", NEW_CONFIG.replace(b"110", b'"fifty"'), NEW_CONFIG + b"noSuchField: 1\n"]
)
def test_the_agent_reverts_a_kubelet_that_becomes_unhealthy(on_node: OnNode, bad: bytes) -> None:
    report = on_node.apply(f"tx-sick-{on_node.counter}", {CONFIG_PATH: bad})
    assert report.healthy is not None, report
    assert report.receipt is not None
    assert (report.receipt.state, report.receipt.cause) == (ReceiptState.REVERTED, "health"), report
    assert report.log is not None, "the kubelet's last lines before the revert"
    assert any(line.startswith("kubelet[") for line in report.log.lines), report.log
    assert report.log.exited == ("" if b"noSuchField" in bad else "code=exited, status=1/FAILURE"), report.log
    assert on_node.read(CONFIG_PATH) == CONFIG
    assert on_node.node.exec("systemctl", "is-active", "kubelet").strip() == "active"


def test_without_a_confirm_the_guard_reverts(on_node: OnNode) -> None:
    """At its time: after its deadline, and before another timer that is set for `LATER` seconds later."""
    node = on_node.node

    def cut(tx: str) -> None:
        node.cut()
        shown = node.exec("systemctl", "show", "-p", "LoadState", "-p", "AccuracyUSec", f"rollout-guard-{tx}.timer")
        if "LoadState=not-found" in shown:
            return  # on a busy machine its time may be over: a longer guard is tried then
        assert "AccuracyUSec=100ms" in shown.splitlines(), (
            "by default systemd may be a minute late: the later timer shows that only in some boots"
        )
        left = max(seconds_left(node, tx), 0.0)  # on a slow machine its time may be over: a longer guard is tried then
        timer = ("--on-active", f"{left + LATER:.1f}", "--timer-property=AccuracySec=100ms", f"--unit=later-{tx}")
        node.exec("systemd-run", "--quiet", *timer, "true")

    tx = armed_before_its_guard(on_node, "tx-guard", {CONFIG_PATH: NEW_CONFIG}, then=cut, undo=node.heal)
    deadline = int(on_disk(node, tx)["deadline"]) / 1000
    try:
        eventually(lambda: on_node.read(CONFIG_PATH) == CONFIG)
    finally:
        node.heal()
    eventually(lambda: receipt(on_node, tx).state is ReceiptState.REVERTED)
    assert receipt(on_node, tx).cause == "guard"
    eventually(lambda: on_node.leftovers() == [])
    eventually(lambda: f"later-{tx}.service" in moments(on_node))
    assert deadline <= moments(on_node)[f"rollout-guard-{tx}.service"] <= moments(on_node)[f"later-{tx}.service"]


def test_a_power_cut_while_armed_boots_with_the_old_files(on_node: OnNode) -> None:
    report = on_node.apply("tx-power", {CONFIG_PATH: NEW_CONFIG}, guard=120)
    assert (report.outcome, report.healthy) == (Outcome.DONE, True), report
    on_node.node.powercut()
    assert on_node.read(CONFIG_PATH) == NEW_CONFIG.decode()
    on_node.node.heal()
    on_node.node.boot()
    on_node.node.wait()
    eventually(lambda: receipt(on_node, "tx-power").state is ReceiptState.REVERTED)
    assert receipt(on_node, "tx-power").cause == "boot"
    assert on_node.read(CONFIG_PATH) == CONFIG
    eventually(lambda: kubelets(on_node) > 0)
    assert kubelets(on_node) == 1
    eventually(lambda: on_node.leftovers() == [])


def test_the_guard_of_a_frozen_node_wins_over_a_late_confirm(on_node: OnNode) -> None:
    node = on_node.node
    changes = {CONFIG_PATH: NEW_CONFIG}
    tx = armed_before_its_guard(on_node, "tx-frozen", changes, then=lambda _: node.pause(), undo=node.resume)
    eventually(lambda: seconds_left(node, tx) < -1)
    node.resume()
    late = on_node.confirm(tx)
    assert late.receipt is None or late.receipt.state is not ReceiptState.CONFIRMED, late
    eventually(lambda: receipt(on_node, tx).state is ReceiptState.REVERTED)
    assert on_node.read(CONFIG_PATH) == CONFIG
    eventually(lambda: on_node.leftovers() == [])


def test_a_reboot_after_confirm_keeps_the_new_files(on_node: OnNode) -> None:
    assert on_node.apply("tx-keep", {CONFIG_PATH: NEW_CONFIG}).healthy is True
    assert on_node.confirm("tx-keep").outcome is Outcome.DONE
    on_node.node.reboot()
    on_node.node.wait()
    assert on_node.read(CONFIG_PATH) == NEW_CONFIG.decode()
    assert receipt(on_node, "tx-keep").state is ReceiptState.CONFIRMED
    assert on_node.revert("tx-keep").outcome is Outcome.DONE
    assert on_node.read(CONFIG_PATH) == CONFIG
