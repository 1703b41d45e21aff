"""Each fault, as a client meets it; and the real agent under them."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from rollout.adapters.lab import ailments, faults, launch
from rollout.core.model.remote import RemoteCommand
from rollout.kubelet.agent import agent_call
from tests.lab.labs import Lab, spec

PROGRAM = (Path(__file__).parents[2] / "rollout/agent/agent.sh").read_text(encoding="utf-8")
EXTRA = "/etc/default/kubelet"
NEW = b"KUBELET_EXTRA_ARGS=--v=3\n"


def apply(lab: Lab, node: str, *, guard: int = 20, content: bytes = NEW) -> RemoteCommand:
    return agent_call.apply(PROGRAM, lab.order(node, EXTRA, content, guard=guard), sudo=True, deadline=60)


def confirm() -> RemoteCommand:
    return agent_call.confirm(PROGRAM, tx="t1", run="r1", counter=1, keep=3, sudo=True, deadline=60)


def revert() -> RemoteCommand:
    return agent_call.revert(PROGRAM, tx="t1", run="r1", counter=1, sudo=True, deadline=60)


def receipt(lab: Lab, node: str) -> dict[str, str]:
    lines = lab.verb(node, agent_call.status(PROGRAM, tx="t1", sudo=True, deadline=60))
    (line,) = [line for line in lines if line.startswith("receipt ")]
    return dict(word.split("=", 1) for word in line.split()[1:])


def until_receipt(lab: Lab, node: str, state: str, seconds: float) -> dict[str, str]:
    deadline = time.monotonic() + seconds
    while (found := receipt(lab, node))["state"] != state:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def extra(lab: Lab, node: str) -> bytes:
    return (lab.root(node) / EXTRA.lstrip("/")).read_bytes()


def test_the_agents_whole_way_and_nothing_left(small: Lab) -> None:
    before = extra(small, "lab-01")
    snapshot = agent_call.snapshot(PROGRAM, unit="kubelet.service", sudo=True, deadline=60, healthz_port=10248)
    time.sleep(0.4)
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


def test_a_drop_cuts_the_connection_and_the_apply_goes_on(small: Lab) -> None:
    small.fault("lab-01", faults.DROP, 0.4)
    command = apply(small, "lab-01")
    begun = time.monotonic()
    answer = small.ssh("lab-01", command.line, command.stdin)
    assert answer.returncode == 255
    assert b"end apply" not in answer.stdout
    assert time.monotonic() - begun < 1.0
    deadline = time.monotonic() + 5
    while receipt(small, "lab-01")["finished"] != "1":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert extra(small, "lab-01") == NEW
    small.verb("lab-01", confirm())
    assert receipt(small, "lab-01")["state"] == "confirmed"


def test_never_healthy_reverts_itself(small: Lab) -> None:
    before = extra(small, "lab-01")
    small.fault("lab-01", ailments.NEVER_HEALTHY)
    lines = small.verb("lab-01", apply(small, "lab-01"))
    assert any(line.startswith("healthy no") for line in lines)
    assert any("state=reverted cause=health" in line for line in lines)
    assert extra(small, "lab-01") == before
    small.until_state("lab-01", "running")


def test_sick_in_soak_after_the_confirm_and_well_after_the_revert(small: Lab) -> None:
    small.fault("lab-01", ailments.SICK_IN_SOAK, 0.5)
    small.verb("lab-01", apply(small, "lab-01"))
    time.sleep(0.6)
    assert small.state("lab-01") == "running"
    small.verb("lab-01", confirm())
    assert small.state("lab-01") == "running"
    small.until_state("lab-01", "crash-looping")
    assert any(line.startswith("healthy yes") for line in small.verb("lab-01", revert()))
    small.until_state("lab-01", "running")


def test_deaf_in_soak(small: Lab) -> None:
    small.fault("lab-01", ailments.DEAF_IN_SOAK, 0.0)
    small.verb("lab-01", apply(small, "lab-01"))
    small.verb("lab-01", confirm())
    measured = agent_call.status(PROGRAM, measure=agent_call.Measure(healthz_port=10248), sudo=True, deadline=60)
    assert "healthz timeout" in small.verb("lab-01", measured)


def test_an_unconfirmed_change_is_taken_back_by_the_guard(small: Lab) -> None:
    before = extra(small, "lab-01")
    small.verb("lab-01", apply(small, "lab-01", guard=5))
    assert extra(small, "lab-01") == NEW
    assert until_receipt(small, "lab-01", "reverted", 8)["cause"] == "guard"
    assert extra(small, "lab-01") == before
    small.until_state("lab-01", "running")


def test_a_power_cut_while_armed_is_taken_back_at_boot(small: Lab) -> None:
    before = extra(small, "lab-01")
    boot_id = small.ssh("lab-01", "cat $ROLLOUT_ROOT/proc/sys/kernel/random/boot_id").stdout
    small.verb("lab-01", apply(small, "lab-01", guard=60))
    small.fault("lab-01", faults.REBOOT, 0.3)
    assert small.ssh("lab-01", "true").returncode == 255
    small.until_state("lab-01", "running")
    time.sleep(0.1)
    assert extra(small, "lab-01") == before
    assert receipt(small, "lab-01")["cause"] == "boot"
    assert small.ssh("lab-01", "cat $ROLLOUT_ROOT/proc/sys/kernel/random/boot_id").stdout != boot_id
    assert small.ssh("lab-01", "systemctl list-timers --all").stdout == b""


def test_a_power_cut_in_the_middle_of_an_apply(small: Lab) -> None:
    before = extra(small, "lab-01")
    command = apply(small, "lab-01", guard=60)
    with subprocess.Popen(
        ["ssh", "-F", str(small.directory / "ssh_config"), "lab-01", command.line],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as client:
        assert client.stdin is not None
        client.stdin.write(command.stdin)
        client.stdin.close()
        deadline = time.monotonic() + 5
        while extra(small, "lab-01") == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        small.fault("lab-01", faults.REBOOT, 0.2)
        assert client.wait(10) == 255
    small.until_state("lab-01", "running")
    assert extra(small, "lab-01") == before
    assert receipt(small, "lab-01")["state"] == "reverted"
