"""A revert that fails at first: it is continued, and files that are not in force are not reported as if they were."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import ReceiptState
from rollout.core.run.events import Trigger, trigger_of
from tests.agent.node import CONFIG, NEW, OLD, PATIENCE, Node, order
from tests.controllers import until

pytestmark = pytest.mark.process

TIMER = "/run/standin/rollout-guard-t1.timer"
ASKED = ("daemon-reload", "restart", "--no-block restart")


def armed(node: Node) -> Node:
    assert node.apply().healthy
    return node


def asked_since(node: Node, before: list[str]) -> list[str]:
    """The calls of systemd that changed units meanwhile."""
    return [call for call in node.calls()[len(before) :] if call.startswith(ASKED)]


def wrap(node: Node, tool: str, first: str) -> None:
    """Run these lines before the tool itself."""
    path = node.bin / tool
    real = Path("/usr/bin", tool)
    if path.exists():
        real = path.with_suffix(".real")
        path.rename(real)
    path.write_text(f'#!/bin/sh\n{first}\nexec {real} "$@"\n')
    path.chmod(0o755)


# ------------------------------------------------------------------------------------ systemd does not reload its files


def unread(node: Node, refusals: int) -> Node:
    """systemd refuses this many reloads (as with little room in /run); until one succeeds, it has the new drop-in in memory."""
    armed(node)
    node.standin("unit", "reload=yes\n")
    for number in range(refusals):
        node.standin(f"refused.{number}")
    first = f"""D={node.root}/run/standin
if [ "$1" = daemon-reload ]; then
  for refusal in "$D"/refused.*; do
    [ ! -e "$refusal" ] || {{ rm "$refusal" && echo daemon-reload >>"$D/calls" && exit 1; }}
  done
  rm -f "$D/unit"
fi"""
    wrap(node, "systemctl", first)
    return node


def taken_back(node: Node, way: str) -> Report:
    """The report of the verb or trigger that reverted."""
    if way == "revert":
        return node.revert()
    if way == "boot":
        node.reboot()
    assert node.trigger(way) == 0
    return node.status("t1")


@pytest.mark.parametrize("way", ["revert", "guard", "boot"])
def test_a_refused_reload_is_repeated_before_the_restart(node: Node, way: str) -> None:
    unread(node, 1)
    before = node.calls()
    report = taken_back(node, way)
    assert (node.receipt()["state"], node.files()) == ("reverted", OLD)
    assert report.healthy is (True if way == "revert" else None), report
    restarts = [] if way == "boot" else ["restart kubelet.service"]
    assert asked_since(node, before) == ["daemon-reload", "daemon-reload", *restarts]


@pytest.mark.parametrize("way", ["revert", "guard", "boot"])
def test_a_unit_that_systemd_has_not_reloaded_is_not_reported_as_healthy(node: Node, way: str) -> None:
    """It still runs with the new flags, although its old files are there."""
    report = taken_back(unread(node, 2), way)
    assert (node.receipt()["state"], node.files()) == ("reverted", OLD)
    assert report.healthy is False, report
    assert "systemd has not read its unit files anew" in report.message
    assert trigger_of(node.status("t1")) is Trigger.STILL_UNHEALTHY
    node.at("/run/standin/unit").unlink()
    assert node.status("t1").healthy is None


def test_a_reverted_apply_reports_that_too(node: Node) -> None:
    wrap(
        node,
        "systemctl",
        f'[ "$1" != daemon-reload ] || {{ echo reload=yes >{node.root}/run/standin/unit && exit 1; }}',
    )
    report = node.apply()
    assert report.receipt is not None
    assert (report.receipt.state, report.receipt.cause, report.healthy) == (ReceiptState.REVERTED, "health", False)
    assert node.files() == OLD


def test_a_revert_that_touched_no_unit_ignores_what_others_did_to_one(node: Node) -> None:
    assert node.apply(order(new={CONFIG: b"new config\n"})).healthy
    node.standin("unit", "reload=yes\n")
    assert node.revert().healthy is True
    assert node.status("t1").healthy is None


# ------------------------------------------------------------------------------------------ others have restored the files


@pytest.mark.parametrize("way", ["revert", "guard"])
def test_after_files_were_restored_by_hand_their_units_are_restarted(node: Node, way: str) -> None:
    """Nothing is left to be renamed, but the kubelet runs with the files that it read meanwhile."""
    armed(node)
    for path, content in OLD.items():
        if content is None:
            node.at(path).unlink()
        else:
            node.write(path, content)
    before = node.calls()
    taken_back(node, way)
    assert (node.receipt()["state"], node.files()) == ("reverted", OLD)
    assert asked_since(node, before) == ["daemon-reload", "restart kubelet.service"]
    assert node.strays() == []


def test_nothing_is_restarted_if_nothing_was_renamed(node: Node) -> None:
    wrap(node, "mv", 'case "$*" in */new.1*) exit 1 ;; esac')
    before = node.calls()
    report = node.apply()
    assert report.receipt is not None
    assert report.receipt.state is ReceiptState.REVERTED
    assert asked_since(node, before) == []
    assert node.files() == OLD


# --------------------------------------------------------------------------------------------------------- time, and boots


def test_an_immediate_revert_has_its_own_time_limit(node: Node) -> None:
    """Not the rest of the time of an older transaction of the same boot."""
    armed(node).revert()
    now = round(node.now() * 1000)
    receipt = node.tx() / "receipt"
    receipt.write_text(re.sub(r"limit=\d+", f"limit={now + 20_000}", receipt.read_text()))
    bounds = node.at("/run/standin/bounds")
    wrap(node, "timeout", f'[ "$4 $5" != "systemctl restart" ] || echo "$3" >>{bounds}')
    report = node.apply(order("t2", new={CONFIG: b"LOOPING\n"}))
    assert (report.healthy, node.files()) == (True, OLD), report
    assert int(bounds.read_text().split()[-1]) == 90, "seconds for the restart with the old files"


def test_a_kubelet_may_wait_for_its_runtime_after_a_boot_that_came_later(node: Node) -> None:
    armed(node)
    assert node.trigger("guard") == 0
    node.standin("unit", "active=activating sub=auto-restart\n")
    assert trigger_of(node.status("t1")) is Trigger.STILL_UNHEALTHY, (
        "in the same boot it does not start for the first time"
    )
    node.reboot()
    assert trigger_of(node.status("t1")) is Trigger.REVERTED_BY_GUARD
    node.standin("unit", "active=failed sub=failed\n")
    assert trigger_of(node.status("t1")) is Trigger.STILL_UNHEALTHY


# ------------------------------------------------------------------------------------------------ a boot unit that fails


def once(node: Node, tool: str, on: str) -> None:
    """The tool fails the first time that its arguments match."""
    mark = node.at("/run/standin/failed-once")
    wrap(node, tool, f'case "$*" in {on}) [ -e {mark} ] || {{ true >{mark} && exit 1; }} ;; esac')


def goes_on(node: Node) -> None:
    """A timer of this boot does the boot unit's work, and then no longer exists."""
    timer = node.at(TIMER).read_text()
    assert "--no-block" in timer.split(), "at boot nothing waits"
    assert "--on-active=5" in timer.split()
    assert "--property=Restart=on-failure --property=RestartSec=5" in timer
    assert timer.rstrip().endswith(f"/bin/sh {node.tx()}/agent guard t1")
    before = node.calls()
    assert node.trigger("guard") == 0
    assert (node.receipt()["state"], node.files()) == ("reverted", OLD)
    assert asked_since(node, before) == ["daemon-reload", "restart kubelet.service"]
    assert node.strays() == []
    assert node.cleanup().leftovers == ()


@pytest.mark.parametrize(
    ("tool", "on", "state"),
    [
        ("mv", "*/next/reverting-boot*", "armed"),
        ("mv", "*/old.2*", "reverting"),
        ("mv", "*/next/reverted-*", "reverting"),
    ],
)
def test_a_boot_unit_that_fails_leaves_a_guard_that_continues(node: Node, tool: str, on: str, state: str) -> None:
    armed(node)
    node.reboot()
    once(node, tool, on)
    assert node.trigger("boot") == 1
    assert node.receipt()["state"] == state
    goes_on(node)


def test_systemd_does_not_remember_a_failed_boot_unit_without_its_file(node: Node) -> None:
    """It would count as something of rollout that was left."""
    armed(node)
    node.reboot()
    once(node, "mv", "*/old.2*")
    assert node.trigger("boot") == 1
    node.standin("rollout-guard-boot.service")
    assert node.trigger("guard") == 0
    assert node.cleanup().leftovers == ()
    assert node.strays() == []


@pytest.mark.parametrize(("old", "reloads"), [(False, 1), (True, 2)], ids=["systemd", "systemd older than 234"])
def test_a_guard_leaves_no_boot_unit_in_memory(node: Node, old: bool, reloads: int) -> None:
    """A reload for a drop-in may read it too, and there may be no cleanup after a guard."""
    if old:
        node.standin("old")
    armed(node)
    before = node.calls().count("daemon-reload")
    assert node.trigger("guard") == 0
    assert node.calls().count("daemon-reload") == before + reloads, "for the drop-in; an old systemd keeps the unit"
    assert node.strays() == []


@pytest.mark.parametrize(
    "gpu", ["/dev/nvidia0", "/run/nvidia/driver/dev/nvidia0", "/proc/driver/nvidia/gpus/0000:3b:00.0"]
)
def test_on_a_node_with_gpus_no_reload_that_no_plan_announced_removes_the_boot_unit_from_memory(
    node: Node, gpu: str
) -> None:
    """It may take GPUs from running containers; without its file the unit does nothing until the next reload."""
    node.write(gpu, b"")
    armed(node)
    before = node.calls().count("daemon-reload")
    node.standin("rollout-guard-boot.service")  # another reload has read it
    assert node.trigger("guard") == 0
    assert node.calls().count("daemon-reload") == before + 1, "the revert's own, for the drop-in of the change"
    node.standin("rollout-guard-boot.service")
    wrap(node, "systemctl", 'case "$1" in reset-failed) exit 0 ;; esac')  # basic.target wants it: systemd keeps it
    done = node.cleanup()
    assert done.leftovers == ()
    assert done.message == (
        "boot-unit-remembered systemd remembers rollout-guard-boot.service without its file until its next daemon-reload, which may take GPUs"
    )
    assert node.calls().count("daemon-reload") == before + 1
    assert node.strays() == ["run/standin/rollout-guard-boot.service"], "in memory only"


def test_a_change_of_a_unit_file_reloads_once(node: Node) -> None:
    armed(node)
    assert node.confirm().outcome is Outcome.DONE
    assert node.cleanup().leftovers == ()
    assert node.calls().count("daemon-reload") == 1
    assert node.strays() == []


def test_a_change_without_any_replaced_file_ends_with_a_healthy_node(node: Node) -> None:
    wrap(node, "mv", f'case "$*" in *"{node.at(CONFIG)}") exit 1 ;; esac')
    report = node.apply()
    assert "a rename failed" in report.message
    assert report.healthy
    assert (node.files(), node.receipt()["state"], node.strays()) == (OLD, "reverted", [])


def test_after_a_write_lost_at_boot_the_next_boot_reads_the_disk_again(node: Node) -> None:
    """Linux reports a lost write once: a second sync would succeed without the bytes. Only what a boot reads from the disk is true."""
    armed(node)
    node.reboot()
    node.standin("lost", "*/lib/kubelet\n")
    assert node.trigger("boot") == 1
    assert node.trigger("guard") == 0, "nothing in this boot can make it durable"
    assert (node.receipt()["state"], node.status("t1").reference) == ("reverting", "not-durable")
    assert node.at("/etc/systemd/system/rollout-guard-boot.service").exists()
    node.reboot()
    assert node.trigger("boot") == 0
    assert (node.receipt()["state"], node.files(), node.strays()) == ("reverted", OLD, [])


@pytest.mark.parametrize("way", ["boot", "status"])
@pytest.mark.parametrize("late", [False, True], ids=["in-time", "late"])
def test_a_guard_stopped_in_the_same_boot_is_started_again_by_boot_unit_or_status(
    node: Node, way: str, late: bool
) -> None:
    """`systemctl isolate` stops timers and services; the boot unit runs again on the return to the default target, or the controller reads the node."""
    armed(node)
    for unit in node.at("/run/standin").glob("rollout-*"):
        unit.unlink()
    if late and way == "status":
        node.pass_time(300)
    if way == "boot":
        assert node.trigger("boot") == 0
    else:
        node.status("t1")
    assert node.receipt()["state"] == "armed"
    assert node.at("/run/standin/rollout-watch-t1.service").exists()
    timer = node.at(TIMER).read_text()
    assert "--no-block" in timer.split()
    assert ("--on-active=1 " in timer) is (late and way == "status")
    calls = len(node.calls())
    node.status("t1")
    assert not [call for call in node.calls()[calls:] if not call.startswith("show")], "it runs: nothing is started"
    assert node.trigger("guard") == 0
    assert (node.receipt()["state"], node.files(), node.strays()) == ("reverted", OLD, [])


def test_a_boot_unit_that_does_not_get_the_lock_leaves_a_guard_too(node: Node) -> None:
    armed(node)
    node.reboot()
    node.at("/var/lib/rollout/holder").unlink()
    with node.locked(), node.at_work("boot") as boot:
        node.pass_time_for_who_waits()
        node.pass_time(2)
        assert boot.wait(PATIENCE) == 1
        assert node.files() == NEW
    goes_on(node)


@pytest.mark.telling
def test_a_boot_unit_that_systemd_ends_at_its_timeout_leaves_a_guard_too(node: Node) -> None:
    armed(node)
    node.reboot()
    late = node.at("/run/standin/late")
    wrap(node, "mv", f'case "$*" in */old.1*) [ -e {late} ] || {{ true >{late}; exec /usr/bin/sleep 600; }} ;; esac')
    with node.at_work("boot") as boot:
        until(late.exists, PATIENCE, "it is at its renames")
        os.killpg(boot.pid, signal.SIGTERM)
        for entry in Path("/proc").glob(
            "[0-9]*"
        ):  # timeout has made a process group of its own; systemd knows its cgroup
            with suppress(FileNotFoundError, ProcessLookupError):  # other processes end meanwhile
                if f"{node.root}/".encode() in (entry / "cmdline").read_bytes() and int(entry.name) != boot.pid:
                    os.kill(int(entry.name), signal.SIGTERM)
        assert boot.wait(PATIENCE) == -signal.SIGTERM
    assert node.receipt()["state"] == "reverting"
    goes_on(node)


def test_the_guard_of_a_later_boot_leaves_a_revert_alone_for_a_limited_time(
    tmp_path: Path,
) -> None:
    """The receipt's limit is by another boot's clock: here, weeks away."""
    node = armed(Node.make(tmp_path, "dash"))
    node.reboot()
    text = (node.tx() / "next" / "reverting-boot").read_text()
    (node.tx() / "receipt").write_text(re.sub(r"limit=\d+", "limit=2000000000", text))
    node.show(1000)
    lock, holder = node.at("/var/lib/rollout/lock"), node.at("/var/lib/rollout/holder")
    with subprocess.Popen(["sh", "-c", f"exec 9>>{lock}; flock 9; exec sleep 600"]) as held:
        until(node.is_locked, PATIENCE, "it has the lock")
        started = Path(f"/proc/{held.pid}/stat").read_text().rpartition(") ")[2].split()[19]
        holder.write_text(f"{held.pid} {started}\n")
        with node.at_work("guard") as guard:
            node.pass_time_for_who_waits()
            node.pass_time_for_who_waits(100)
            node.pass_time_for_who_waits(2)
            assert held.poll() is None, "there is time to do it all again"
            node.pass_time(12)
            assert guard.wait(PATIENCE) == 0
        assert held.wait(PATIENCE) == -signal.SIGKILL
    assert (node.receipt()["state"], node.files()) == ("reverted", OLD)


def test_whoever_reads_a_node_that_no_trigger_of_this_boot_reverts_leaves_it_one(node: Node) -> None:
    """Its boot unit never ran: systemd itself could start no process for it, nor for what comes after it."""
    armed(node)
    node.reboot()
    node.status("t1")
    goes_on(node)


def test_a_boot_unit_that_succeeds_leaves_no_guard(node: Node) -> None:
    armed(node)
    node.reboot()
    assert node.trigger("boot") == 0
    assert not node.at(TIMER).exists()


def test_a_boot_unit_started_by_hand_leaves_the_timer_as_it_is(node: Node) -> None:
    """It is still to fire; a boot unit that cannot even open the lock starts no other."""
    armed(node)
    timer = node.at(TIMER).read_text()
    wrap(node, "flock", "exit 1")
    node.at("/var/lib/rollout/holder").unlink()
    with node.at_work("boot") as boot:
        node.pass_time_for_who_waits()
        node.pass_time(2)
        assert boot.wait(PATIENCE) == 1
    assert node.at(TIMER).read_text() == timer


# ---------------------------------------------------------------------------------------------------------- finished transactions


def test_copies_restored_by_a_power_cut_are_removed_with_their_transaction(node: Node) -> None:
    """They are on another file system, and their folder was not synced when they were removed."""
    wrap(node, "ln", 'case "$*" in -s*) ;; *) exit 1 ;; esac')
    armed(node)
    twins = {path: node.at(path).read_bytes() for path in node.strays() if ".rollout-t1." in path}
    assert twins
    assert node.confirm().outcome is Outcome.DONE
    for path, content in twins.items():
        node.at(path).write_bytes(content)
    assert node.apply(order("t2", old=NEW, new={CONFIG: b"second\n"})).healthy
    assert node.confirm("t2", keep=1).outcome is Outcome.DONE
    assert not node.tx("t1").exists()
    assert node.strays() == []


def test_cleanup_stops_the_service_of_a_finished_guard(node: Node) -> None:
    """It failed, or waits to be run again: no timer shows it."""
    assert armed(node).confirm().outcome is Outcome.DONE
    node.standin("rollout-guard-t1.service")
    node.standin("rollout-guard-t0.service")
    assert node.cleanup().leftovers == ()
    assert node.strays() == []


def test_the_service_of_a_guard_that_is_needed_stays(node: Node) -> None:
    armed(node)
    node.standin("rollout-guard-t1.service")
    assert "rollout-guard-t1.service" in node.cleanup().leftovers
    assert node.at("/run/standin/rollout-guard-t1.service").exists()


def test_a_status_that_meets_the_end_of_a_transaction_starts_no_timer_for_it(node: Node) -> None:
    """The answer to a confirm was lost, and it goes on while the node is read back: it may stop the timer right before that read."""
    assert node.apply().healthy
    tool = node.bin / "systemctl"
    tool.rename(node.bin / "systemctl.real")
    tool.write_text(
        f'#!/bin/sh\ncase "$*" in show*rollout-guard-t1.timer*) mv {node.tx()}/next/confirmed {node.tx()}/receipt\n'
        f'rm -f {node.at("/run/standin")}/rollout-* ;; esac\nexec {tool}.real "$@"\n'
    )
    tool.chmod(0o755)
    node.status("t1")
    (node.bin / "systemctl.real").replace(tool)
    assert node.receipt()["state"] == "confirmed"
    assert not [unit.name for unit in node.at("/run/standin").glob("rollout-*")]
