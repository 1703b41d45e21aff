"""The state table, with a clock that only tests move."""

from __future__ import annotations

import pytest

from rollout.lab import kubelet_faults, systemctl, tools
from rollout.lab.machine import KUBELET, LabMachine, Timer
from tests.lab.trees import MemoryTree, NotingHost, kubeadm, running

CONFIG = "/var/lib/kubelet/config.yaml"
EXTRA = "/etc/default/kubelet"


@pytest.fixture
def tree() -> MemoryTree:
    return kubeadm()


@pytest.fixture
def host() -> NotingHost:
    return NotingHost()


@pytest.fixture
def machine(tree: MemoryTree, host: NotingHost) -> LabMachine:
    return running(tree, host)


def shown(machine: LabMachine, name: str, unit: str = KUBELET) -> str:
    return systemctl.of(machine, unit)[name]


def call(machine: LabMachine, line: str, now: float) -> tuple[int, tuple[str, ...]]:
    machine.advance(now)
    answer = systemctl.answer(machine, tuple(line.split()), now)
    return answer.status, answer.out


def healthz(machine: LabMachine, now: float) -> str:
    machine.advance(now)
    return tools.curl(machine, ("-s", "http://127.0.0.1:10248/healthz"), now).bare


def test_a_booted_node_runs_its_kubelet(machine: LabMachine, host: NotingHost) -> None:
    assert call(machine, "is-active kubelet", 100) == (0, ("active",))
    pid = int(shown(machine, "MainPID"))
    assert "--config=/var/lib/kubelet/config.yaml" in host.processes[pid]
    assert shown(machine, "ExecMainStartTimestampMonotonic") == "100000000"
    assert machine.due() is None


def test_healthz_answers_after_a_moment(machine: LabMachine) -> None:
    assert healthz(machine, 100.1) == ""
    assert healthz(machine, 100.4) == "ok"


def test_a_crash_loop_returns_0_and_counts_for_ever(machine: LabMachine, tree: MemoryTree, host: NotingHost) -> None:
    tree.write(EXTRA, "KUBELET_EXTRA_ARGS=--no-such-flag\n")
    assert call(machine, "restart kubelet", 200) == (0, ())
    assert call(machine, "is-active kubelet", 200) == (0, ("active",))
    assert call(machine, "is-active kubelet", 200.1) == (3, ("activating",))
    assert (shown(machine, "MainPID"), shown(machine, "SubState")) == ("0", "auto-restart")
    assert not any("kubelet" in words[0] for words in host.processes.values())
    for count, now in ((0, 210), (1, 210.06), (1, 220), (2, 220.2), (100, 1205.2)):
        machine.advance(now)
        assert shown(machine, "NRestarts") == str(count), now
    assert healthz(machine, 1206) == ""


def test_the_counter_survives_a_restart_out_of_a_crash_loop(machine: LabMachine, tree: MemoryTree) -> None:
    tree.write(EXTRA, "KUBELET_EXTRA_ARGS=--no-such-flag\n")
    call(machine, "restart kubelet", 200)
    machine.advance(215)
    tree.write(EXTRA, "KUBELET_EXTRA_ARGS=\n")
    call(machine, "restart kubelet", 216)
    assert shown(machine, "NRestarts") == "1"
    call(machine, "restart kubelet", 300)
    assert shown(machine, "NRestarts") == "0"


def test_units_are_used_as_loaded_until_daemon_reload(machine: LabMachine, tree: MemoryTree, host: NotingHost) -> None:
    tree.write(
        "/etc/systemd/system/kubelet.service.d/90.conf", "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --v=9\n"
    )
    assert shown(machine, "NeedDaemonReload") == "yes"
    call(machine, "restart kubelet", 200)
    assert "--v=9" not in host.processes[int(shown(machine, "MainPID"))]
    call(machine, "daemon-reload", 201)
    assert shown(machine, "NeedDaemonReload") == "no"
    call(machine, "restart kubelet", 202)
    assert host.processes[int(shown(machine, "MainPID"))] == ("/usr/bin/kubelet", "--v=9")


def test_stopped_masked_and_unknown(machine: LabMachine, tree: MemoryTree) -> None:
    assert call(machine, "stop kubelet", 200) == (0, ())
    assert call(machine, "is-active kubelet", 200) == (3, ("inactive",))
    assert call(machine, "restart nothing", 201)[0] == 5
    assert call(machine, "show -p LoadState --value nothing", 201) == (0, ("not-found",))
    tree.links["/etc/systemd/system/kubelet.service"] = "/dev/null"
    call(machine, "daemon-reload", 202)
    assert call(machine, "start kubelet", 203)[0] == 1
    assert shown(machine, "LoadState") == "masked"


def test_show_prints_systemds_order_whatever_the_order_of_the_request(machine: LabMachine) -> None:
    line = "show -p ActiveState -p MainPID,NRestarts --property=LoadState kubelet"
    assert [text.split("=")[0] for text in call(machine, line, 200)[1]] == [
        "MainPID",
        "NRestarts",
        "LoadState",
        "ActiveState",
    ]
    assert call(machine, "show --value -p RestartUSec kubelet.service", 200) == (0, ("10s",))
    assert call(machine, "show -p NoSuchProperty kubelet", 200) == (0, ())


def test_a_timer_runs_its_command_and_is_forgotten(machine: LabMachine, host: NotingHost) -> None:
    words = ("--on-active=5", "--timer-property=AccuracySec=100ms", "--unit=g", "/bin/sh", "-c", "x y")
    assert tools.systemd_run(machine, words, 200).status == 0
    assert tools.systemd_run(machine, words, 200).status == 1
    machine.advance(204.9)
    assert host.commands == []
    assert call(machine, "is-active g.timer", 204.9) == (0, ("active",))
    machine.advance(205)
    assert host.commands == [("g.service", ("/bin/sh", "-c", "x y"))]
    machine.ended("g.service", 0, 206)
    assert shown(machine, "LoadState", "g.timer") == "not-found"
    assert shown(machine, "LoadState", "g.service") == "not-found"


def test_without_accuracy_a_timer_is_late(machine: LabMachine, host: NotingHost) -> None:
    tools.systemd_run(machine, ("--on-active=5", "--unit=g", "true"), 200)
    machine.advance(230)
    assert host.commands == []
    machine.advance(236)
    assert len(host.commands) == 1


def test_a_stopped_timer_never_fires(machine: LabMachine, host: NotingHost) -> None:
    tools.systemd_run(machine, ("--on-active=5", "--timer-property=AccuracySec=100ms", "--unit=g", "true"), 200)
    assert call(machine, "stop g.timer", 201) == (0, ())
    machine.advance(300)
    assert host.commands == []


def test_a_failing_guard_is_started_again_if_its_unit_requests_it(machine: LabMachine, host: NotingHost) -> None:
    properties_ = ("--property=Restart=on-failure", "--property=RestartSec=5")
    tools.systemd_run(
        machine, ("--on-active=1", "--timer-property=AccuracySec=1ms", "--unit=g", *properties_, "false"), 200
    )
    machine.advance(201)
    machine.ended("g.service", 1, 202)
    machine.advance(207)
    assert len(host.commands) == 2
    machine.ended("g.service", 0, 208)
    assert "g.service" not in machine.services


def test_a_power_cut_loses_timers_and_boot_units_come_before_the_kubelet(
    machine: LabMachine, tree: MemoryTree, host: NotingHost
) -> None:
    machine.arm(Timer("g.service", 500, ("true",), {}, accuracy=0.1), 200)
    tree.write("/etc/systemd/system/b.service", "[Service]\nType=oneshot\nExecStart=/bin/sh /agent boot\n")
    tree.links["/etc/systemd/system/multi-user.target.wants/b.service"] = "../b.service"
    machine.power_off(300.0)
    assert (host.processes, machine.timers) == ({}, {})
    machine.power_on(300)
    assert host.commands == [("b.service", ("/bin/sh", "/agent", "boot"))]
    assert machine.booting == {"b.service"}
    assert systemctl.answer(machine, ("restart", "kubelet"), 301).after_boot
    assert not systemctl.answer(machine, ("restart", "--no-block", "containerd"), 301).after_boot
    machine.ended("b.service", 0, 302)
    assert not machine.booting


def test_never_healthy_affects_every_other_configuration(machine: LabMachine, tree: MemoryTree) -> None:
    well = machine.services[KUBELET].start.fingerprint
    machine.ailments.set(kubelet_faults.NEVER_HEALTHY, well, 0)
    call(machine, "restart kubelet", 200)
    assert healthz(machine, 201) == "ok"
    before = tree.read(EXTRA) or b""
    tree.write(EXTRA, "KUBELET_EXTRA_ARGS=--v=3\n")
    call(machine, "restart kubelet", 202)
    assert call(machine, "is-active kubelet", 203) == (3, ("activating",))
    tree.write(EXTRA, before.decode())
    call(machine, "restart kubelet", 204)
    assert healthz(machine, 205) == "ok"


def test_unhealthy_in_soak_begins_after_the_confirm(machine: LabMachine, tree: MemoryTree) -> None:
    machine.ailments.set(kubelet_faults.SICK_IN_SOAK, machine.services[KUBELET].start.fingerprint, 5)
    tree.write(EXTRA, "KUBELET_EXTRA_ARGS=--v=3\n")
    call(machine, "restart kubelet", 200)
    assert healthz(machine, 250) == "ok"
    machine.ailments.confirmed(260)
    assert healthz(machine, 264.9) == "ok"
    assert call(machine, "is-active kubelet", 265.1) == (3, ("activating",))
    assert shown(machine, "NRestarts") == "0"
    machine.advance(276)
    assert shown(machine, "NRestarts") == "1"


def test_deaf_in_soak_accepts_connections_and_never_answers(machine: LabMachine, tree: MemoryTree) -> None:
    machine.ailments.set(kubelet_faults.DEAF_IN_SOAK, machine.services[KUBELET].start.fingerprint, 5)
    tree.write(EXTRA, "KUBELET_EXTRA_ARGS=--v=3\n")
    call(machine, "restart kubelet", 200)
    machine.ailments.confirmed(260)
    machine.advance(266)
    answer = tools.curl(machine, ("-s", "-m", "3", "http://127.0.0.1:10248/healthz"), 266)
    assert (answer.status, answer.delay) == (28, 3.0)
    assert call(machine, "is-active kubelet", 267) == (0, ("active",))


def test_the_journal_by_unit_process_and_pattern(machine: LabMachine, tree: MemoryTree) -> None:
    tree.write(CONFIG, (tree.read(CONFIG) or b"").decode() + "serialiseImagePulls: true\n")
    call(machine, "restart kubelet", 200)
    pid = shown(machine, "MainPID")
    mine = tools.journalctl(machine, ("-q", "-b", "-o", "cat", "-n", "5000", f"_PID={pid}"), 0).out
    assert len([line for line in mine if "lenient decoding" in line]) == 1
    both = tools.journalctl(machine, ("-b", "-o", "cat", f"_PID={pid}", "_PID=1"), 0).out
    assert set(mine) < set(both), "either"
    assert tools.journalctl(machine, ("-u", "kubelet", "-g", "lenient", "-o", "cat"), 0).out == mine[:1]
    assert tools.journalctl(machine, ("-u", "containerd", "-o", "cat", "--grep=lenient"), 0).out == ()
    assert tools.journalctl(machine, ("-u", "kubelet", "--since", "@201"), 0).out == ("-- No entries --",)
