"""The guard at boot: by systemd's own log it runs before the kubelet and every unit of the change, which wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from rollout.core.model.snapshot import ReceiptState
from tests.bed.drop_ins import LATE
from tests.bed.node import CONFIG
from tests.real.agent_calls import CONFIG_PATH, OnNode, armed_before_its_guard, eventually, kubelets, moments, receipt

pytestmark = [pytest.mark.root, pytest.mark.drawn(2)]

NEW_CONFIG = CONFIG.replace("serializeImagePulls: true", "serializeImagePulls: false").encode()
BOOT_UNIT = "rollout-guard-boot.service"
SLOW = 3.0
"""Seconds that the boot unit takes in this test."""


def _shown(hand: OnNode, name: str) -> set[str]:
    return set(hand.node.exec("systemctl", "show", "-p", name, "--value", BOOT_UNIT).split())


@contextmanager
def _booted_with(hand: OnNode, setting: str) -> Iterator[None]:
    """After a power cut, with this setting of the boot unit."""
    drop_in = Path(hand.node.root, f"etc/systemd/system/{BOOT_UNIT}.d", LATE)
    drop_in.write_text(f"[Service]\n{setting}\n", encoding="utf-8")
    hand.node.exec("sync")
    try:
        hand.node.powercut()
        hand.node.heal()
        hand.node.boot()
        hand.node.wait()
        yield
    finally:
        drop_in.unlink()
        drop_in.parent.rmdir()


def test_the_boot_unit_comes_before_every_unit_of_the_change_and_they_start_with_the_old_files(on_node: OnNode) -> None:
    assert on_node.apply(
        "tx-boot", {CONFIG_PATH: NEW_CONFIG}, guard=120, units=("docker.service", "kubelet.service")
    ).healthy
    assert _shown(on_node, "Before") >= {"docker.service", "kubelet.service"}
    assert _shown(on_node, "RequiresMountsFor") >= {"/var/lib/rollout", "/var/lib/kubelet"}
    with _booted_with(on_node, f"ExecStartPre=/bin/sleep {SLOW}"):
        eventually(lambda: {"docker.service", "kubelet.service"} <= set(moments(on_node)))
        when = moments(on_node)
        assert when[BOOT_UNIT] <= min(when["docker.service"], when["kubelet.service"])
        assert receipt(on_node, "tx-boot").cause == "boot"
        eventually(lambda: kubelets(on_node) > 0)
        assert kubelets(on_node) == 1, "it never started with the new files"
        assert on_node.read(CONFIG_PATH) == CONFIG


def test_a_boot_unit_that_fails_leaves_a_timer_of_this_boot_which_reverts_the_change(on_node: OnNode) -> None:
    """For the boot unit the kubelet's folder is read-only, as on a damaged file system."""
    assert on_node.apply("tx-again", {CONFIG_PATH: NEW_CONFIG}, guard=120).healthy
    with _booted_with(on_node, "ReadOnlyPaths=/var/lib/kubelet"):
        eventually(lambda: _shown(on_node, "Result") == {"exit-code"})
        eventually(lambda: on_node.read(CONFIG_PATH) == CONFIG)
        eventually(lambda: receipt(on_node, "tx-again").state is ReceiptState.REVERTED)
        assert receipt(on_node, "tx-again").cause == "boot"
        eventually(lambda: kubelets(on_node) == 2)
    assert on_node.cleanup().leftovers == ()


def test_a_boot_unit_that_is_killed_leaves_a_timer_of_this_boot_which_reverts_the_change(on_node: OnNode) -> None:
    assert on_node.apply("tx-killed", {CONFIG_PATH: NEW_CONFIG}, guard=120).healthy
    with _booted_with(on_node, "ExecStart=\nExecStart=/bin/sh -c 'kill -9 $$$$'"):
        eventually(lambda: _shown(on_node, "Result") == {"signal"})
        eventually(lambda: on_node.read(CONFIG_PATH) == CONFIG)
        eventually(lambda: receipt(on_node, "tx-killed").state is ReceiptState.REVERTED)
        eventually(lambda: kubelets(on_node) == 2)
    assert on_node.cleanup().leftovers == ()


def _started_it_is_old(hand: OnNode) -> bool:
    hand.node.exec(
        "systemctl", "start", BOOT_UNIT, check=False
    )  # it fails while the guard that it started has the lock
    return hand.read(CONFIG_PATH) == CONFIG


def test_the_boot_unit_started_by_hand_after_the_guard_was_stopped_restarts_what_runs(on_node: OnNode) -> None:
    """Timer and process were stopped. Then a target is reached again, and starts the units that it wants.

    Before the deadline the boot unit starts both again. After the deadline the first one reverts.
    """
    node = on_node.node

    def stop_and_start(tx: str) -> None:
        node.exec("systemctl", "stop", f"rollout-guard-{tx}.timer", f"rollout-watch-{tx}.service")
        node.exec("systemctl", "start", "multi-user.target")
        node.exec("systemctl", "start", BOOT_UNIT)

    tx = armed_before_its_guard(on_node, "tx-hand", {CONFIG_PATH: NEW_CONFIG}, then=stop_and_start)
    assert on_node.read(CONFIG_PATH) == NEW_CONFIG.decode(), "before the deadline it changes nothing"
    before = on_node.node.exec("systemctl", "show", "-p", "MainPID", "--value", "kubelet")
    eventually(partial(_started_it_is_old, on_node))
    eventually(
        lambda: on_node.node.exec("systemctl", "show", "-p", "MainPID", "--value", "kubelet") not in (before, "0\n")
    )
    assert receipt(on_node, tx).cause in ("boot", "guard")


def test_the_guard_survives_the_rescue_target_in_the_same_boot(on_node: OnNode) -> None:
    """`systemctl isolate` stops every service and timer without `IgnoreOnIsolate`."""
    node = on_node.node

    def to_rescue(tx: str) -> None:
        node.exec("systemctl", "isolate", "--no-block", "rescue.target")
        eventually(lambda: "inactive" in node.exec("systemctl", "show", "-p", "ActiveState", "kubelet"))
        assert "ActiveState=active" in node.exec("systemctl", "show", "-p", "ActiveState", f"rollout-guard-{tx}.timer")
        assert "ActiveState=active" in node.exec(
            "systemctl", "show", "-p", "ActiveState", f"rollout-watch-{tx}.service"
        )

    assert on_node.apply("tx-rescue", {CONFIG_PATH: NEW_CONFIG}, guard=120).healthy
    to_rescue("tx-rescue")
    node.exec("systemctl", "isolate", "--no-block", "multi-user.target")
    eventually(lambda: "ActiveState=active" in node.exec("systemctl", "show", "-p", "ActiveState", "kubelet"))
    assert receipt(on_node, "tx-rescue").state is ReceiptState.ARMED
    node.exec("systemctl", "stop", "rollout-guard-tx-rescue.timer", "rollout-watch-tx-rescue.service")
    assert receipt(on_node, "tx-rescue").state is ReceiptState.ARMED, "reading its state starts both again"
    for unit in ("rollout-guard-tx-rescue.timer", "rollout-watch-tx-rescue.service"):
        eventually(lambda unit=unit: "=active" in node.exec("systemctl", "show", "-p", "ActiveState", unit))  # type: ignore[misc]  # the current unit
    assert on_node.revert("tx-rescue").healthy
    assert on_node.read(CONFIG_PATH) == CONFIG
    assert on_node.cleanup().leftovers == ()


@pytest.mark.parametrize("default", ["multi-user.target", "graphical.target", "fleet.target"])
def test_with_any_default_target_the_boot_reverts_before_the_kubelet_starts(on_node: OnNode, default: str) -> None:
    """A custom target that wants the kubelet, as on appliances, never reaches multi-user.target."""
    node, tx = on_node.node, f"tx-{default.removesuffix('.target')}"
    own = Path(node.root, "etc/systemd/system/fleet.target")
    own.write_text(
        "[Unit]\nRequires=basic.target\nAfter=basic.target\nWants=kubelet.service docker.service ssh.service systemd-user-sessions.service\nAllowIsolate=yes\n",
        encoding="utf-8",
    )
    before = node.exec("systemctl", "get-default").strip()
    node.exec("systemctl", "daemon-reload")
    node.exec("systemctl", "set-default", default)
    try:
        assert on_node.apply(tx, {CONFIG_PATH: NEW_CONFIG}, guard=120).healthy
        with _booted_with(on_node, f"ExecStartPre=/bin/sleep {SLOW}"):
            eventually(lambda: "kubelet.service" in moments(on_node))
            when = moments(on_node)
            assert when[BOOT_UNIT] <= when["kubelet.service"]
            assert receipt(on_node, tx).cause == "boot"
            assert on_node.read(CONFIG_PATH) == CONFIG
            assert "ordering cycle" not in node.exec("journalctl", "-b", "--no-pager")
    finally:
        node.exec("systemctl", "set-default", before)
        own.unlink()
        node.exec("systemctl", "daemon-reload")


def test_a_default_target_that_does_not_reach_the_guard_is_refused(on_node: OnNode) -> None:
    node = on_node.node
    own = Path(node.root, "etc/systemd/system/bare.target")
    own.write_text("[Unit]\nDefaultDependencies=no\nWants=kubelet.service\nAllowIsolate=yes\n", encoding="utf-8")
    before = node.exec("systemctl", "get-default").strip()
    node.exec("systemctl", "daemon-reload")
    node.exec("systemctl", "set-default", "bare.target")
    try:
        report = on_node.apply("tx-bare", {CONFIG_PATH: NEW_CONFIG}, guard=120)
        assert report.reference == "guard-not-proven"
        assert on_node.read(CONFIG_PATH) == CONFIG
    finally:
        node.exec("systemctl", "set-default", before)
        own.unlink()
        node.exec("systemctl", "daemon-reload")
    assert on_node.cleanup().leftovers == ()
