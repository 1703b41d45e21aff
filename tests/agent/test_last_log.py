"""The log of a change that was reverted, under a node's shell: how its process ended, and its last lines."""

from __future__ import annotations

import pytest

from rollout.core.model.report import LastLog, Report
from rollout.core.model.snapshot import ReceiptState
from rollout.kubelet.agent import agent_call
from tests.agent.node import BOOTED_FOR, CONFIG, PROGRAM, Node, order

pytestmark = pytest.mark.process

EXITED = "systemd[1]: kubelet.service: Main process exited, code=exited, status=1/FAILURE"


AT_THE_RESTART = None
"""When a line was written: at the first restart, which is after the arming and before the revert."""


def log_of(node: Node, *lines: tuple[float | None, str], unit: str = "kubelet.service") -> None:
    """The journal of a unit: lines with their seconds since the test began."""
    begins = {after: "[RESTART]" if after is None else f"[{BOOTED_FOR + after:12.6f}]" for after, _ in lines}
    texts = [f"{begins[after]} node {text}\n" for after, text in lines]
    node.standin(f"log.{unit}", "".join(texts))


def reverted_and_healthy(report: Report) -> bool:
    assert report.receipt is not None
    return (report.receipt.state, report.healthy) == (ReceiptState.REVERTED, True)


@pytest.mark.telling
def test_the_log_of_a_change_that_was_reverted_is_in_the_answer(node: Node) -> None:
    """Only from its restart to its revert: neither the exit before nor the start after is that of the new files."""
    log_of(
        node,
        (-5.0, "systemd[1]: kubelet.service: Main process exited, code=killed, status=15/TERM"),
        *((AT_THE_RESTART, f"kubelet[101]: line {number}") for number in range(30)),
        (AT_THE_RESTART, "kubelet[101]: E1124 \x1b[31m--token=abcdef failed to load"),
        (AT_THE_RESTART, EXITED),
        (300.0, "kubelet[102]: I1124 started with the old files"),
    )
    report = node.apply(order(new={CONFIG: b"DEAD\n"}))
    assert reverted_and_healthy(report)
    assert report.log is not None
    assert report.log.exited == "code=exited, status=1/FAILURE"
    assert len(report.log.lines) == 20
    assert report.log.lines[-2:] == ("kubelet[101]: E1124  [31m--token=<redacted> failed to load", EXITED)
    assert report.log.lines[0] == "kubelet[101]: line 12"


def test_a_log_of_long_lines_is_cut(node: Node) -> None:
    log_of(node, *((AT_THE_RESTART, f"kubelet[101]: {number} {'x' * 3000}") for number in range(9)))
    report = node.apply(order(new={CONFIG: b"DEAD\n"}))
    assert reverted_and_healthy(report)
    assert report.log is not None
    assert [len(line) for line in report.log.lines] == [1000] * 3
    assert report.log.lines[-1].startswith("kubelet[101]: 8 ")


def test_the_log_is_that_of_the_runtime_that_failed(node: Node) -> None:
    node.serve("containerd.service", "containerd")
    log_of(node, (AT_THE_RESTART, "kubelet[101]: fine"))
    log_of(node, (AT_THE_RESTART, "containerd[301]: failed to load TOML"), unit="containerd.service")
    node.write("/etc/containerd/config.toml", b"old\n")
    old = {"/etc/containerd/config.toml": b"old\n"}
    units = ("containerd.service", "kubelet.service")
    report = node.apply(order(old=old, new={"/etc/containerd/config.toml": b"DEAD\n"}, units=units, arguments=()))
    assert reverted_and_healthy(report)
    assert report.log == LastLog(lines=("containerd[301]: failed to load TOML",))


def test_a_journal_that_hangs_delays_no_revert(node: Node) -> None:
    (node.bin / "journalctl").write_text("#!/bin/sh\nexec hangs\n")
    report = node.apply(order(new={CONFIG: b"DEAD\n"}))
    assert reverted_and_healthy(report)
    assert report.log is None


def test_a_requested_revert_has_the_log_if_the_controller_asks(node: Node) -> None:
    assert node.apply().healthy
    log_of(node, (AT_THE_RESTART, EXITED), (500.0, "kubelet[102]: with the old files"))
    command = agent_call.revert(PROGRAM, tx="t1", run="run-1", counter=1, evidence=True, sudo=False, deadline=60)
    assert node.report("revert", command).log == LastLog("code=exited, status=1/FAILURE", (EXITED,))
    assert node.apply(order("t2")).healthy
    assert node.revert("t2").log is None


def test_the_log_of_a_change_that_its_guard_reverted_is_in_the_next_answer(node: Node) -> None:
    """No answer could have it when the guard fired. Lines from before the change and after the revert are not in it."""
    assert node.apply(order(guard=120)).healthy
    before = (-60.0, "kubelet[100]: before the change")
    log_of(node, before, (AT_THE_RESTART, EXITED), (500.0, "kubelet[102]: with the old files"))
    node.pass_time(130)
    assert node.trigger("guard") == 0
    node.kubelet_started(0)
    report = node.status("t1")
    assert report.receipt is not None
    assert (report.receipt.state, report.receipt.cause) == (ReceiptState.REVERTED, "guard")
    assert report.log == LastLog("code=exited, status=1/FAILURE", (EXITED,))
    assert node.status().log is None


def test_a_kubelet_that_a_guard_did_not_restart_has_no_log_of_its_change(node: Node) -> None:
    node.serve("containerd.service", "containerd")
    node.write("/etc/containerd/config.toml", b"old\n")
    old, new = {"/etc/containerd/config.toml": b"old\n"}, {"/etc/containerd/config.toml": b"new\n"}
    assert node.apply(order(old=old, new=new, units=("containerd.service",), arguments=())).healthy
    log_of(node, (AT_THE_RESTART, "kubelet[101]: fine"))
    node.pass_time(130)
    assert node.trigger("guard") == 0
    assert node.status("t1").log is None
