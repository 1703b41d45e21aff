"""Each fault, as a client sees it, and its effect on the real agent."""

from __future__ import annotations

import math
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from rollout.adapters.agent_program import agent_program
from rollout.core.model.report import RemoteCommand
from rollout.kubelet.agent import agent_call
from rollout.lab import faults, kubelet_faults, launch
from tests.controllers import until
from tests.lab.labs import Lab, spec

pytestmark = [pytest.mark.process, pytest.mark.drawn(6)]

PROGRAM = agent_program()
EXTRA = "/etc/default/kubelet"
NEW = b"KUBELET_EXTRA_ARGS=--v=3\n"


def apply(lab: Lab, node: str, *, guard: int = 120, content: bytes = NEW) -> RemoteCommand:
    return agent_call.apply(PROGRAM, lab.order(node, EXTRA, content, guard=guard), sudo=True, deadline=60)


def confirm() -> RemoteCommand:
    return agent_call.confirm(PROGRAM, tx="t1", run="r1", counter=1, keep=3, sudo=True, deadline=60)


def revert() -> RemoteCommand:
    return agent_call.revert(PROGRAM, tx="t1", run="r1", counter=1, sudo=True, deadline=60)


def receipt(lab: Lab, node: str) -> dict[str, str]:
    lines = lab.verb(node, agent_call.status(PROGRAM, tx="t1", sudo=True, deadline=60))
    line = next((line for line in lines if line.startswith("receipt ")), "receipt state= finished=")
    return dict(word.split("=", 1) for word in line.split()[1:])


def until_receipt(lab: Lab, node: str, state: str) -> dict[str, str]:
    until(lambda: receipt(lab, node)["state"] == state, 300, f"the receipt of {node} is {state}")
    return receipt(lab, node)


def brief_guard(lab: Lab, node: str) -> int:
    """Seconds within which an apply certainly ends on this machine, and not many more."""
    began = time.monotonic()
    lab.verb(node, agent_call.status(PROGRAM, sudo=True, deadline=60))
    return 5 + math.ceil(6 * (time.monotonic() - began))


def extra(lab: Lab, node: str) -> bytes:
    return (lab.root(node) / EXTRA.lstrip("/")).read_bytes()


def test_a_whole_transaction_of_the_agent_leaves_nothing(small: Lab) -> None:
    before = extra(small, "lab-01")
    snapshot = agent_call.snapshot(PROGRAM, unit="kubelet.service", sudo=True, deadline=60, healthz_port=10248)
    until(lambda: "healthz ok" in small.verb("lab-01", snapshot), 60, "its kubelet has started")
    lines = small.verb("lab-01", snapshot)
    assert {"healthz ok", "lenient 0", "fact kubelet-version Kubernetes v1.20.15", "end snapshot"} <= set(lines)
    assert any(line.startswith("healthy yes") for line in small.verb("lab-01", apply(small, "lab-01")))
    assert extra(small, "lab-01") == NEW
    assert "rollout-guard-t1.timer" in small.ssh("lab-01", "systemctl list-timers").stdout.decode()
    small.verb("lab-01", confirm())
    assert receipt(small, "lab-01")["state"] == "confirmed"
    assert any(line.startswith("healthy yes") for line in small.verb("lab-01", revert()))
    assert extra(small, "lab-01") == before
    left = small.verb("lab-01", agent_call.cleanup(PROGRAM, run="r1", counter=1, sudo=True, deadline=60))
    assert left == ["end cleanup"]
    assert (
        small.ssh("lab-01", "systemctl list-timers; find $ROLLOUT_ROOT/etc $ROLLOUT_ROOT/run -name '*rollout*'").stdout
        == b""
    )


def test_a_lab_in_memory_looks_like_one_on_disk() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        lab = Lab(Path(folder) / "fleet", spec(1))
        launch.up(lab.spec, lab.directory)
        try:
            assert any(line.startswith("healthy yes") for line in lab.verb("lab-01", apply(lab, "lab-01")))
        finally:
            launch.down(lab.directory)


def test_refuse(small: Lab) -> None:
    small.fault("lab-01", faults.REFUSE)
    answer = small.ssh("lab-01", "true")
    assert (answer.returncode, b"Connection refused" in answer.stderr) == (255, True)
    assert small.ssh("lab-02", "true").returncode == 0
    small.clear("lab-01")
    assert small.ssh("lab-01", "true").returncode == 0


def test_hang_before_the_banner(small: Lab) -> None:
    small.fault("lab-01", faults.HANG)
    answer = small.ssh("lab-01", "true", b"", "-o", "ConnectTimeout=1")
    assert (answer.returncode, b"banner" in answer.stderr) == (255, True)
    small.clear("lab-01")
    assert small.ssh("lab-01", "true").returncode == 0


def test_a_drop_cuts_the_connection_and_the_apply_continues(slow: Lab) -> None:
    slow.fault("lab-01", faults.DROP, 2.0)
    command = apply(slow, "lab-01")
    answer = slow.ssh("lab-01", command.line, command.stdin)
    assert answer.returncode == 255
    assert b"end apply" not in answer.stdout
    until(lambda: receipt(slow, "lab-01")["finished"] == "1", 120, "the apply has ended")
    assert extra(slow, "lab-01") == NEW
    slow.verb("lab-01", confirm())
    assert receipt(slow, "lab-01")["state"] == "confirmed"


def test_never_healthy_reverts_itself(small: Lab) -> None:
    before = extra(small, "lab-01")
    small.fault("lab-01", kubelet_faults.NEVER_HEALTHY)
    lines = small.verb("lab-01", apply(small, "lab-01"))
    assert any(line.startswith("healthy no") for line in lines)
    assert any("state=reverted cause=health" in line for line in lines)
    assert extra(small, "lab-01") == before
    small.until_state("lab-01", "running")


def test_unhealthy_in_soak_after_the_confirm_and_healthy_after_the_revert(small: Lab) -> None:
    small.fault("lab-01", kubelet_faults.SICK_IN_SOAK, 0.5)
    small.verb("lab-01", apply(small, "lab-01"))
    assert small.state("lab-01") == "running"
    small.verb("lab-01", confirm())
    small.until_state("lab-01", "crash-looping")
    assert any(line.startswith("healthy yes") for line in small.verb("lab-01", revert()))
    small.until_state("lab-01", "running")


def test_a_soak_fault_begins_so_long_after_the_confirm_once_and_not_before() -> None:
    found = kubelet_faults.Ailments()
    found.set(kubelet_faults.SICK_IN_SOAK, "the old configuration", 0.5)
    assert not found.strike(1e9), "there is no confirm"
    found.confirmed(10.0)
    assert [found.strike(now) for now in (10.0, 10.49, 10.5, 11.0)] == [False, False, True, False]


def test_deaf_in_soak(small: Lab) -> None:
    small.fault("lab-01", kubelet_faults.DEAF_IN_SOAK, 0.0)
    small.verb("lab-01", apply(small, "lab-01"))
    small.verb("lab-01", confirm())
    measured = agent_call.status(PROGRAM, measure=agent_call.Measure(healthz_port=10248), sudo=True, deadline=60)
    assert "healthz timeout" in small.verb("lab-01", measured)


def test_the_guard_reverts_an_unconfirmed_change(small: Lab) -> None:
    before = extra(small, "lab-01")
    small.verb("lab-01", apply(small, "lab-01", guard=brief_guard(small, "lab-01")))
    assert extra(small, "lab-01") == NEW
    assert until_receipt(small, "lab-01", "reverted")["cause"] == "guard"
    assert extra(small, "lab-01") == before
    small.until_state("lab-01", "running")


def test_an_armed_change_is_reverted_at_boot_after_a_power_cut(small: Lab) -> None:
    before = extra(small, "lab-01")
    boot_id = small.ssh("lab-01", "cat $ROLLOUT_ROOT/proc/sys/kernel/random/boot_id").stdout
    small.verb("lab-01", apply(small, "lab-01"))
    small.fault("lab-01", faults.DIES, lasting=86400)
    assert small.ssh("lab-01", "true").returncode == 255
    small.fault("lab-01", faults.REBOOT, 0.1)  # which boots it
    small.until_state("lab-01", "running")
    assert until_receipt(small, "lab-01", "reverted")["cause"] == "boot"
    assert extra(small, "lab-01") == before
    assert small.ssh("lab-01", "cat $ROLLOUT_ROOT/proc/sys/kernel/random/boot_id").stdout != boot_id
    until(lambda: small.ssh("lab-01", "systemctl list-timers --all").stdout == b"", 60, "its timers are gone")


def test_a_power_cut_in_the_middle_of_an_apply(slow: Lab) -> None:
    before = extra(slow, "lab-01")
    command = apply(slow, "lab-01")
    with subprocess.Popen(
        ["ssh", "-F", str(slow.directory / "ssh_config"), "lab-01", command.line],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as client:
        assert client.stdin is not None
        client.stdin.write(command.stdin)
        client.stdin.close()
        until(lambda: extra(slow, "lab-01") != before, 120, "the file is exchanged")
        slow.fault("lab-01", faults.REBOOT, 0.2)
        assert client.wait(120) == 255
    slow.until_state("lab-01", "running")
    until_receipt(slow, "lab-01", "reverted")
    assert extra(slow, "lab-01") == before
