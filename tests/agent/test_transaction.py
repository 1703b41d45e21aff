"""One node's transaction, rule by rule, with the real program under a node's shell; the most important tests under two."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome, RemoteCommand, Report
from rollout.core.model.snapshot import ReceiptState, Snapshot, Token
from rollout.core.run.events import Trigger, trigger_of
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.node import CONFIG, DROPIN, FLAGS, MACHINE, NEW, OLD, PATIENCE, Node, order
from tests.controllers import until

pytestmark = pytest.mark.process

BOOT_UNIT = "/etc/systemd/system/rollout-guard-boot.service"


def applied(node: Node, tx: str = "t1", **changes: object) -> Node:
    report = node.apply(order(tx, **changes))  # type: ignore[arg-type]  # the tests' own keywords
    assert (report.outcome, report.healthy) == (Outcome.DONE, True), report
    return node


# ------------------------------------------------------------------------------------------------- apply and confirm


@pytest.mark.telling
def test_an_applied_node_has_the_new_files_and_an_armed_guard(node: Node) -> None:
    report = node.apply()
    assert report.outcome is Outcome.DONE
    assert report.healthy is True
    assert report.receipt is not None
    assert report.receipt.state is ReceiptState.ARMED
    assert report.receipt.finished
    assert 50 < report.receipt.left <= 60
    assert node.files() == NEW
    timer = node.at("/run/standin/rollout-guard-t1.timer").read_text()
    assert "--on-active=60 --timer-property=AccuracySec=100ms --timer-property=RemainAfterElapse=no " in timer
    assert "--timer-property=IgnoreOnIsolate=yes --collect --property=IgnoreOnIsolate=yes" in timer
    assert timer.rstrip().endswith(f"/bin/sh {node.tx()}/agent guard t1")


def test_the_boot_unit_runs_before_the_units_and_after_the_mounts(node: Node) -> None:
    text = applied(node).at(BOOT_UNIT).read_text()
    assert "Before=basic.target shutdown.target kubelet.service\n" in text
    assert "RequiresMountsFor=/var/lib/rollout /var/lib/kubelet /etc/default" in text
    assert f"ExecStart=/bin/sh {node.tx()}/agent boot\n" in text
    assert node.at("/etc/systemd/system/basic.target.wants/rollout-guard-boot.service").is_symlink()


def test_a_confirmed_node_keeps_the_files_and_nothing_else_of_ours(node: Node) -> None:
    report = applied(node).confirm()
    assert report.outcome is Outcome.DONE
    assert report.receipt is not None
    assert report.receipt.state is ReceiptState.CONFIRMED
    assert node.files() == NEW
    assert node.strays() == []
    assert node.cleanup().leftovers == ()
    assert node.status().token == Token(1, "run-1", live=False)


def test_daemon_reload_only_when_a_unit_file_changes(node: Node) -> None:
    applied(node, new={CONFIG: b"new config\n"})
    assert "daemon-reload" not in node.calls()
    node.revert()
    assert "daemon-reload" not in node.calls()


def test_a_reload_keeps_what_others_have_in_the_folder_that_hides_the_boot_unit(node: Node) -> None:
    theirs = node.at("/run/systemd/transient/basic.target.wants/other.service")
    theirs.parent.mkdir()
    theirs.touch()
    applied(node)
    assert "daemon-reload" in node.calls()
    assert [path.name for path in theirs.parent.iterdir()] == ["other.service"]


def test_mode_owner_and_attributes_are_those_of_the_target(node: Node) -> None:
    node.at(CONFIG).chmod(0o604)
    os.chown(node.at(CONFIG), 12, 34) if os.geteuid() == 0 else None
    before = node.at(CONFIG).stat()
    applied(node)
    after = node.at(CONFIG).stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert node.at(DROPIN).stat().st_mode & 0o777 == 0o640
    node.revert()
    back = node.at(CONFIG).stat()
    assert (back.st_mode, back.st_uid, back.st_ino) == (before.st_mode, before.st_uid, before.st_ino)


def test_what_stays_on_the_node_is_for_root_only(node: Node) -> None:
    applied(node)
    assert node.at("/var/lib/rollout").stat().st_mode & 0o777 == 0o700
    assert (node.tx() / "agent").stat().st_mode & 0o777 == 0o600


def test_an_empty_file_and_a_large_one_arrive_whole(node: Node) -> None:
    large = bytes(range(256)) * 500
    applied(node, new={CONFIG: large, FLAGS: b""})
    assert node.read(CONFIG) == large
    assert node.read(FLAGS) == b""


# ------------------------------------------------------------------------------------------------------- refusals


def test_a_drifted_file_is_not_touched(node: Node) -> None:
    node.write(FLAGS, b"SOMEBODY=else\n")
    report = node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "drifted")
    assert node.files() == {**OLD, FLAGS: b"SOMEBODY=else\n"}
    assert node.receipt() == {}
    assert node.strays() == []


def test_a_file_that_appeared_is_drift(node: Node) -> None:
    node.write(DROPIN, b"theirs\n")
    assert node.apply().reference == "drifted"
    assert node.read(DROPIN) == b"theirs\n"


@pytest.mark.telling
def test_drift_while_staging_undoes_everything(node: Node) -> None:
    """The stand-in for systemd-run changes a file: between the first check and the renames."""
    tool = node.bin / "systemd-run"
    tool.write_text(
        tool.read_text()
        + f'printf "late\\n" >"$ROLLOUT_ROOT{FLAGS}.x" && mv "$ROLLOUT_ROOT{FLAGS}.x" "$ROLLOUT_ROOT{FLAGS}"\n'
    )
    assert node.apply().reference == "drifted"
    assert node.files() == {**OLD, FLAGS: b"late\n"}
    assert not node.tx().exists()
    assert node.strays() == []


@pytest.mark.parametrize("tool", ["cp", "systemd-run"])
def test_an_apply_that_froze_while_it_prepared_changes_nothing_afterwards(node: Node, tool: str) -> None:
    """While the new files were staged, or the guard was armed. Its controller has given up, and may have uncordoned the node."""
    path = node.bin / tool
    rest = path.read_text() if path.exists() else f'exec {shutil.which(tool)} "$@"\n'
    path.unlink(missing_ok=True)
    jump = f"{node.bin}/sleep 200 9>&-"
    path.write_text(f"#!/bin/sh\n{jump}\n{rest}")
    path.chmod(0o755)
    report = node.apply()
    assert report.reference == "too-late"
    assert re.fullmatch(r"the preparation took [0-9]+ s, of at most [0-9]+", report.message), (
        "what was seen, and no cause"
    )
    assert node.files() == OLD
    assert not node.tx().exists()
    assert node.strays() == []


@pytest.mark.parametrize("kind", ["symlink", "directory", "parent is a file"])
def test_only_regular_files(node: Node, kind: str) -> None:
    target = node.at(FLAGS)
    target.rename(target.with_name("real"))
    path = FLAGS
    if kind == "symlink":
        target.symlink_to("real")
    elif kind == "directory":
        target.mkdir()
    else:
        path = "/etc/default/real/kubelet"
    report = node.apply(order(new={path: b"x\n"}))
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-a-regular-file")


@pytest.mark.parametrize("what", [CONFIG, DROPIN.rpartition("/")[0]])
def test_a_target_that_is_a_mount_of_its_own_is_refused(node: Node, what: str) -> None:
    """A rename cannot replace a mounted file, nor cross from the parent of a mounted ``.d`` folder, which holds the copies."""
    node.write(DROPIN.replace("90-rollout", "10-kubeadm"), b"theirs\n")
    table = f"29 1 254:0 / / rw - ext4 /dev/vda rw\n30 29 254:0 {FLAGS} /elsewhere rw - ext4 /dev/vda rw\n"
    node.write("/proc/self/mountinfo", table.encode())
    before = node.strays()
    node.write("/proc/self/mountinfo", f"{table}31 29 254:0 /x {what} rw,relatime - ext4 /dev/vda rw\n".encode())
    report = node.apply(order())
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-renameable")
    assert what in report.message
    assert node.files() == OLD
    assert node.strays() == before
    node.write("/proc/self/mountinfo", table.encode())
    applied(node)


def test_a_drop_in_folder_on_another_file_system_is_refused(node: Node, tmp_path: Path) -> None:
    folder = node.at(DROPIN).parent
    other = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        if other.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("/dev/shm is not another file system here")
        folder.symlink_to(other)
        report = node.apply(order())
        assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-renameable")
        assert node.files() == OLD
        assert list(other.iterdir()) == []
    finally:
        other.rmdir()


def test_another_machine_id(node: Node) -> None:
    report = node.apply(order(machine_id="f" * 32))
    assert (report.reference, MACHINE in report.message, "f" * 32 in report.message) == (
        "machine-id-changed",
        True,
        True,
    )
    assert node.files() == OLD


@pytest.mark.parametrize(
    ("unit", "reference"),
    [
        ("reload=yes", "need-daemon-reload"),
        ("load=masked", "unit-masked"),
        ("load=not-found", "unit-not-found"),
        ("pause=1min", "guard-too-short"),
        ("pause='1h 2s'", "guard-too-short"),
    ],
)
def test_a_unit_that_cannot_be_handled(node: Node, unit: str, reference: str) -> None:
    node.standin("unit", unit)
    assert node.apply().reference == reference
    assert node.files() == OLD
    assert node.strays() == []


def test_a_guard_that_systemd_did_not_start(node: Node) -> None:
    node.standin("no-timer")
    assert node.apply().reference == "guard-not-proven"
    assert node.files() == OLD
    assert node.strays() == []
    assert not node.tx().exists()


def test_a_boot_unit_that_is_not_enabled(node: Node) -> None:
    node.standin("disabled")
    assert node.apply().reference == "guard-not-proven"
    assert node.strays() == []


def test_a_default_target_that_does_not_reach_the_boot_unit(node: Node) -> None:
    node.standin("unreached")
    assert node.apply().reference == "guard-not-proven"
    assert node.strays() == []


def test_a_default_target_of_ones_own_that_reaches_the_boot_unit(node: Node) -> None:
    """By other units than multi-user.target."""
    node.standin("roundabout")
    assert node.apply().healthy


def test_a_boot_unit_of_an_earlier_version_is_removed_too(node: Node) -> None:
    """It was wanted by multi-user.target."""
    applied(node)
    once = node.at("/etc/systemd/system/multi-user.target.wants/rollout-guard-boot.service")
    once.parent.mkdir()
    once.symlink_to("../rollout-guard-boot.service")
    assert node.confirm().outcome is Outcome.DONE
    assert node.cleanup().leftovers == ()
    assert node.strays() == []


def test_a_state_directory_in_memory(node: Node) -> None:
    tool = node.bin / "stat"
    tool.write_text('#!/bin/sh\n[ "$1" = -f ] && echo tmpfs 999999 4096 && exit\nexec /usr/bin/stat "$@"\n')
    tool.chmod(0o755)
    assert node.apply().reference == "state-not-persistent"


def test_no_room(node: Node) -> None:
    tool = node.bin / "stat"
    tool.write_text('#!/bin/sh\n[ "$1" = -f ] && echo ext4 10 4096 && exit\nexec /usr/bin/stat "$@"\n')
    tool.chmod(0o755)
    assert node.apply().reference == "no-room"


@pytest.mark.telling
def test_a_torn_program_runs_nothing(node: Node) -> None:
    command = agent_call.apply(node.program, order(), sudo=False, deadline=60)
    for length in (0, 5_000, len(command.stdin) - 1):
        torn = RemoteCommand(command.line, command.stdin[:length], 60)
        assert node.report("apply", torn).reference == "torn-program"
    assert not node.at("/var/lib/rollout").exists()


# ------------------------------------------------------------------------------------------------------- fencing


@pytest.mark.telling
def test_an_older_token_is_fenced(node: Node) -> None:
    assert node.status(claim=Claim(7, "run-7")).token == Token(7, "run-7", live=True)
    assert node.apply(order(counter=6)).reference == "fenced"
    assert node.apply(order(counter=7, run="other")).reference == "fenced"
    assert node.files() == OLD


def test_a_live_claim_of_another_run_holds(node: Node) -> None:
    node.status(claim=Claim(1, "run-1"))
    assert node.status(claim=Claim(2, "run-2")).reference == "claimed"
    assert node.status(claim=Claim(2, "run-2", force=True)).token == Token(2, "run-2", live=True)
    assert node.apply().reference == "fenced"


def test_an_ended_claim_admits_the_next_run_but_not_its_own_late_apply(node: Node) -> None:
    node.status(claim=Claim(1, "run-1"))
    node.cleanup()
    assert node.apply().reference == "ended-here"
    assert applied(node, run="run-2", counter=2).files() == NEW


def test_a_longer_token_leaves_no_trace_in_a_shorter_one(node: Node) -> None:
    node.status(claim=Claim(1, "a-run-with-a-long-name"))
    node.status(claim=Claim(2, "b", force=True))
    assert node.status().token == Token(2, "b", live=True)


# ------------------------------------------------------------------------------------------------ verbs may be repeated


def test_a_repeated_apply_only_reports(node: Node) -> None:
    applied(node)
    before = node.calls()
    report = node.apply()
    assert (report.outcome, report.healthy) == (Outcome.DONE, None)
    assert report.receipt is not None
    assert report.receipt.finished
    assert node.calls() == before


@pytest.mark.telling
def test_confirm_revert_and_cleanup_may_be_repeated(node: Node) -> None:
    applied(node)
    for _ in range(2):
        assert node.confirm().outcome is Outcome.DONE
    assert node.files() == NEW
    for _ in range(2):
        report = node.revert()
        assert report.outcome is Outcome.DONE
        assert report.receipt is not None
        assert (report.receipt.state, report.receipt.cause) == (ReceiptState.REVERTED, "asked")
    assert node.files() == OLD
    for _ in range(2):
        report = node.cleanup()
        assert (report.outcome, report.leftovers) == (Outcome.DONE, ())


def test_cleanup_finishes_what_a_killed_confirm_began(node: Node) -> None:
    """Its receipt was durable; timer, watch and boot unit are still there."""
    applied(node)
    (node.tx() / "next" / "confirmed").rename(node.tx() / "receipt")
    assert len(node.strays()) == 12, (
        "two units, the link and unit of a third, and a folder of drop-ins for each unit and the timer"
    )
    assert node.cleanup().leftovers == ()
    assert node.strays() == []
    assert node.files() == NEW


def test_cleanup_lists_what_an_armed_transaction_still_needs(node: Node) -> None:
    left = applied(node).cleanup().leftovers
    wanted = "/etc/systemd/system/basic.target.wants/rollout-guard-boot.service"
    units = ["rollout-guard-t1.timer", "rollout-watch-t1.service"]
    drop_ins = [f"/run/systemd/system/{unit}.d" for unit in ("rollout-guard-t1.service", *units)]
    assert sorted(left) == [wanted, BOOT_UNIT, f"{BOOT_UNIT}.d/~~~~~~~~-rollout.conf", *drop_ins, *units]
    assert node.trigger("guard") == 0
    assert node.cleanup().leftovers == ()


def test_unknown_transactions_are_reported_as_unknown(node: Node) -> None:
    assert node.confirm("t9").reference == "no-transaction"
    assert node.revert("t9").reference == "no-transaction"
    report = node.status("t9")
    assert (report.outcome, report.receipt) == (Outcome.DONE, None)


def test_one_transaction_at_a_time(node: Node) -> None:
    applied(node)
    assert node.apply(order("t2", old=NEW, new={CONFIG: b"2\n"})).reference == "armed-by-another"


# ------------------------------------------------------------------------------------------------------- the guard


@pytest.mark.telling
def test_the_guard_reverts_an_unconfirmed_change(node: Node) -> None:
    applied(node)
    assert node.trigger("guard") == 0
    assert node.files() == OLD
    assert (node.receipt()["state"], node.receipt()["cause"]) == ("reverted", "guard")
    assert node.calls().count("restart kubelet.service") == 2
    assert node.strays() == []
    assert not node.at(DROPIN).parent.exists()


def given_back_to_a_kubelet_that_fails(node: Node) -> Node:
    """It does not start with its old files: it ran with a configuration that it read before them."""
    old = b"FAILS\n"
    node.write(CONFIG, old)
    return applied(node, old={CONFIG: old}, new={CONFIG: b"sound\n"})


def test_later_requests_report_units_that_fail_with_the_files_that_a_guard_restored(node: Node) -> None:
    given_back_to_a_kubelet_that_fails(node)
    assert node.trigger("guard") == 0
    said = "kubelet.service is auto-restart with the old files"
    for report in (node.status("t1"), node.confirm(), node.revert()):
        assert (report.healthy, trigger_of(report)) == (False, Trigger.STILL_UNHEALTHY), report.verb
    assert node.status("t1").message == said
    assert node.status().healthy is None, "nothing is reported of a transaction that was not requested"


def test_a_late_confirm_that_reverts_reports_that_too(node: Node) -> None:
    given_back_to_a_kubelet_that_fails(node)
    node.pass_time(61)
    assert trigger_of(node.confirm()) is Trigger.STILL_UNHEALTHY


def test_after_a_boot_a_kubelet_may_still_wait_for_its_runtime(node: Node) -> None:
    applied(node)
    node.reboot()
    assert node.trigger("boot") == 0
    node.at("/run/standin/unit").write_text("active=activating sub=auto-restart\n")
    assert trigger_of(node.status("t1")) is Trigger.REVERTED_BY_GUARD
    node.at("/run/standin/unit").write_text("active=failed sub=failed\n")
    assert trigger_of(node.status("t1")) is Trigger.STILL_UNHEALTHY


def test_the_guard_of_a_confirmed_change_removes_itself(node: Node) -> None:
    applied(node).confirm()
    assert node.trigger("guard") == 0
    assert node.files() == NEW
    assert node.receipt()["state"] == "confirmed"


def test_confirm_after_the_deadline_reverts(node: Node) -> None:
    applied(node)
    node.pass_time(61)
    report = node.confirm()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "too-late")
    assert report.receipt is not None
    assert (report.receipt.state, report.receipt.cause) == (ReceiptState.REVERTED, "guard")
    assert node.files() == OLD
    assert node.confirm().reference == "too-late"


@pytest.mark.telling
def test_power_loss_while_armed_reverts_at_boot_without_waiting_for_the_kubelet(node: Node) -> None:
    applied(node)
    node.reboot()
    assert [receipt.left for receipt in node.status().receipts] == [0]
    before = node.calls()
    assert node.trigger("boot") == 0
    assert node.files() == OLD
    assert node.receipt()["cause"] == "boot"
    assert [call for call in node.calls()[len(before) :] if "restart" in call] == []
    assert "daemon-reload" in node.calls()[len(before) :]
    assert node.strays() == []


def test_the_boot_unit_leaves_a_guarded_change_of_this_boot_alone(node: Node) -> None:
    applied(node)
    assert node.trigger("boot") == 0
    assert node.files() == NEW
    assert node.at(BOOT_UNIT).exists()


def test_confirm_after_a_reboot_is_too_late(node: Node) -> None:
    applied(node)
    node.reboot()
    report = node.confirm()
    assert (report.reference, report.message) == ("too-late", "the node has booted since the apply")
    assert node.files() == OLD


def _descendants(pid: int) -> list[int]:
    parents = {
        int(entry.name): _stat(int(entry.name))[1:2] for entry in Path("/proc").iterdir() if entry.name.isdigit()
    }
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == [str(one)]]
    return found[1:]


def _condition(pid: int) -> str:
    return "".join(_stat(pid)[:1])


def _stat(pid: int) -> list[str]:
    """What follows the command's name in ``/proc/PID/stat``; nothing if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return []


def test_the_guard_kills_a_stuck_holder_and_its_children(node: Node) -> None:
    """The recorded process holds the lock for good: after ten seconds the guard takes over, and no late write of it follows."""
    applied(node)
    lock, holder = node.at("/var/lib/rollout/lock"), node.at("/var/lib/rollout/holder")
    late = f"sleep 600; echo late >{node.at(CONFIG)}"
    line = f"exec 9>>{lock}; flock 9; sh -c '{late}; :' 9>&- & wait"
    with subprocess.Popen(["sh", "-c", line]) as stuck:
        until(lambda: len(_descendants(stuck.pid)) == 2, PATIENCE, "both of its children run")
        family = _descendants(stuck.pid)
        started = Path(f"/proc/{stuck.pid}/stat").read_text().rpartition(") ")[2].split()[19]
        holder.write_text(f"{stuck.pid} {started}\n")
        with node.at_work("guard") as guard:
            node.tire_who_waits()
            assert guard.wait(PATIENCE) == 0
        assert stuck.wait(PATIENCE) == -signal.SIGKILL
    assert node.files() == OLD
    assert [pid for pid in family if _condition(pid) not in {"", "Z"}] == []


def test_the_guard_kills_no_process_that_it_cannot_identify(node: Node) -> None:
    """Another process has the number now: its start time differs, and it is not killed."""
    applied(node)
    with node.locked(), subprocess.Popen(["sleep", "600"]) as other:
        node.at("/var/lib/rollout/holder").write_text(f"{other.pid} 1\n")
        with node.at_work("guard") as guard:
            node.tire_who_waits()
            assert guard.wait(PATIENCE) == 1
        assert other.poll() is None
        other.kill()
    assert node.files() == NEW


@pytest.mark.telling
def test_no_child_holds_the_lock_after_the_agent_died(node: Node) -> None:
    """The restart hangs; the agent is killed; the lock is free although the child still runs."""
    command = agent_call.apply(node.program, order(new={CONFIG: b"STUCK\n"}), sudo=False, deadline=60)
    with subprocess.Popen(
        [str(node.bin / "sh"), "-c", command.line], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=node.env()
    ) as agent:
        assert agent.stdin is not None
        agent.stdin.write(command.stdin)
        agent.stdin.close()
        until(lambda: "restart kubelet.service" in node.calls(), PATIENCE, "the restart is requested")
        pid = int(node.at("/var/lib/rollout/holder").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
    node.write("/run/standin/unit", b"")
    assert not node.is_locked()


# ------------------------------------------------------------------------------------------------------- revert


def test_revert_needs_no_room_on_the_disk(node: Node) -> None:
    applied(node)
    report = node.revert(full_disk=True)
    assert node.files() == OLD
    assert report.receipt is not None
    assert report.receipt.state is ReceiptState.REVERTED


@pytest.mark.telling
def test_the_guard_needs_no_room_on_the_disk(node: Node) -> None:
    applied(node)
    assert node.trigger("guard", full_disk=True) == 0
    assert node.files() == OLD
    assert node.receipt()["state"] == "reverted"


def test_an_emergency_of_a_newer_run_needs_no_room_either(node: Node) -> None:
    applied(node).confirm()
    node.cleanup()
    report = node.revert(run="run-2", counter=2, full_disk=True)
    assert node.files() == OLD
    assert report.receipt is not None
    assert report.receipt.state is ReceiptState.REVERTED


def test_a_full_disk_at_apply_changes_nothing(node: Node) -> None:
    command = agent_call.apply(node.program, order(), sudo=False, deadline=60)
    report = node.report("apply", command, full_disk=True)
    assert report.outcome is Outcome.REFUSED
    assert node.files() == OLD
    assert node.strays() == []


def test_revert_removes_the_files_and_folders_it_made(node: Node) -> None:
    node.serve("containerd.service", "containerd")
    path = "/etc/containerd/certs.d/docker.io/hosts.toml"
    applied(node, new={**NEW, path: b"made\n"})
    assert node.at("/etc/containerd/certs.d").stat().st_mode & 0o777 == 0o755
    node.revert()
    assert not node.at("/etc/containerd").exists()
    assert not node.at(DROPIN).parent.exists()


def test_a_folder_that_somebody_uses_meanwhile_stays(node: Node) -> None:
    applied(node)
    node.write("/etc/systemd/system/kubelet.service.d/50-theirs.conf", b"theirs\n")
    node.revert()
    assert node.files() == OLD
    assert node.read("/etc/systemd/system/kubelet.service.d/50-theirs.conf") == b"theirs\n"


def test_foreign_bytes_are_refused_unless_forced_and_kept(node: Node) -> None:
    applied(node).confirm()
    node.write(CONFIG, b"kubeadm was here\n")
    report = node.revert()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "foreign-bytes")
    assert node.files() == {**NEW, CONFIG: b"kubeadm was here\n"}
    assert node.revert(force=True).outcome is Outcome.DONE
    assert node.files() == OLD
    assert (node.tx() / "kept.1").read_bytes() == b"kubeadm was here\n"


def test_another_kubelet_is_refused(node: Node) -> None:
    applied(node).confirm()
    tool = node.bin / "kubelet"
    tool.write_text("#!/bin/sh\necho Kubernetes v1.21.0 # upgraded\n")
    assert node.revert().reference == "kubelet-changed"
    assert node.revert(force=True).outcome is Outcome.DONE


def test_a_confirmed_change_is_reverted_later(node: Node) -> None:
    applied(node).confirm()
    node.cleanup()
    report = node.revert(run="run-2", counter=2)
    assert (report.outcome, report.healthy) == (Outcome.DONE, True)
    assert node.files() == OLD
    assert node.strays() == []


def test_targets_on_another_file_system(node: Node) -> None:
    """Where no hard link reaches, copies are beside the target, or in the parent of a ``.d`` folder, until confirmed."""
    tool = node.bin / "ln"
    tool.write_text('#!/bin/sh\ncase "$*" in -s*) exec /usr/bin/ln "$@" ;; esac\nexit 1\n')
    tool.chmod(0o755)
    node.write(DROPIN.replace("90-rollout", "10-kubeadm"), b"theirs\n")
    applied(node)
    assert sorted(path for path in node.strays() if ".rollout-" in path) == [
        "etc/default/.rollout-t1.2.old",
        "var/lib/kubelet/.rollout-t1.1.old",
    ]
    node.confirm()
    assert node.strays() == []
    node.revert()
    assert node.files() == OLD
    assert node.strays() == []
    node.cleanup()
    applied(node, tx="t2", run="run-2", counter=2)
    assert node.trigger("guard", "t2", full_disk=True) == 0
    assert node.files() == OLD


# ------------------------------------------------------------------------------------------------------- health


def given_back(report: Report) -> bool:
    """The change made the kubelet unhealthy; with its old files it is healthy."""
    assert report.outcome is Outcome.DONE, report
    assert report.receipt is not None
    return (report.receipt.state, report.receipt.cause, report.healthy) == (ReceiptState.REVERTED, "health", True)


@pytest.mark.telling
@pytest.mark.parametrize("config", [b"BROKEN\n", b"LOOPING\n", b"DEAD\n", b"LENIENT\n"])
def test_a_kubelet_that_does_not_accept_its_new_file_is_reverted_at_once(node: Node, config: bytes) -> None:
    started = node.now()
    report = node.apply(order(new={CONFIG: config, FLAGS: b"NEW=1\n"}))
    assert node.now() - started < 15
    assert given_back(report)
    assert node.files() == OLD
    assert node.strays() == []


def test_a_restart_that_was_due_during_ours_does_not_count_against_the_old_files(node: Node) -> None:
    """A restart of a unit in ``auto-restart`` keeps NRestarts, which rose between our look and that restart."""
    node.standin("due")
    assert given_back(node.apply(order(new={CONFIG: b"DEAD\n", FLAGS: b"NEW=1\n"})))


def test_a_missing_argument_is_unhealthy(node: Node) -> None:
    report = node.apply(order(arguments=("--image-pull-progress-deadline=5m",)))
    assert given_back(report)
    assert "argument" in report.message
    assert node.files() == OLD


def test_a_restart_that_hangs_ends_before_the_guard_fires(node: Node) -> None:
    started = node.now()
    report = node.apply(order(new={CONFIG: b"HANGING\n"}, guard=6))
    assert 1 < node.now() - started < 6
    assert given_back(report)
    assert node.files() == OLD


def test_healthz_that_is_never_ok_ends_before_the_guard_fires(node: Node) -> None:
    started = node.now()
    report = node.apply(order(new={CONFIG: b"SICK\n"}, guard=5))
    assert 1 < node.now() - started < 5
    assert given_back(report)
    assert "500" in report.message
    assert node.files() == OLD


def test_a_node_that_is_unhealthy_with_its_old_files_too_is_reported(node: Node) -> None:
    node.write(CONFIG, b"BROKEN\n")
    report = node.apply(order(old={CONFIG: b"BROKEN\n"}, new={CONFIG: b"LOOPING\n"}))
    assert report.receipt is not None
    assert (report.receipt.state, report.receipt.cause, report.healthy) == (ReceiptState.REVERTED, "health", False)


def test_healthz_off_is_not_requested(node: Node) -> None:
    assert node.apply(order(new={CONFIG: b"SICK\n"}, healthz_port=0)).healthy is True


# ------------------------------------------------------------------------------------------------------- the rest


def test_pruning_keeps_the_newest_and_the_last_confirmed(node: Node) -> None:
    content = OLD[CONFIG]
    for number in range(1, 6):
        node.apply(order(f"t{number}", old={CONFIG: content}, new={CONFIG: b"%d\n" % number}))
        content = b"%d\n" % number
        node.confirm(f"t{number}", keep=2)
    assert [receipt.tx for receipt in node.status().receipts] == ["t5", "t4"]
    for number in (5, 4):
        node.revert(f"t{number}")
    node.apply(order("t6", old={CONFIG: b"3\n"}, new={CONFIG: b"6\n"}))
    node.confirm("t6", keep=1)
    assert [receipt.tx for receipt in node.status().receipts] == ["t6", "t5", "t4"], "a reverted one takes no place"
    content = b"6\n"
    for number in range(7, 11):
        node.apply(order(f"t{number}", old={CONFIG: content}, new={CONFIG: b"%d\n" % number}))
        node.revert(f"t{number}")
    node.apply(order("t11", old={CONFIG: content}, new={CONFIG: b"11\n"}))
    node.confirm("t11", keep=1)
    assert [receipt.tx for receipt in node.status().receipts] == ["t11", "t10", "t9", "t8", "t7"]


def test_a_rehearsal_takes_no_copy_from_an_earlier_change(node: Node) -> None:
    """Each canary is applied, reverted, and applied again: two transactions a change."""
    content = OLD[CONFIG]
    for number in range(1, 5):
        new = b"%d\n" % number
        for attempt in (1, 2):
            tx = f"t{number}-{attempt}"
            assert node.apply(order(tx, old={CONFIG: content}, new={CONFIG: new})).healthy
            assert (node.revert(tx) if attempt == 1 else node.confirm(tx, keep=3)).outcome is Outcome.DONE
        content = new
    assert [receipt.tx for receipt in node.status().receipts if receipt.state is ReceiptState.CONFIRMED] == [
        "t4-2",
        "t3-2",
        "t2-2",
    ]
    for number in (4, 3, 2):
        assert node.revert(f"t{number}-2").outcome is Outcome.DONE
    assert node.read(CONFIG) == b"1\n"


def test_a_broken_output_harms_nothing(node: Node) -> None:
    """The connection ends at once: nobody reads the agent's output."""
    command = agent_call.apply(node.program, order(), sudo=False, deadline=60)
    read, write = os.pipe()
    os.close(read)
    subprocess.run(
        [str(node.bin / "sh"), "-c", command.line],
        input=command.stdin,
        stdout=write,
        stderr=write,
        env=node.env(),
        check=False,
    )
    os.close(write)
    assert node.files() == NEW
    report = node.status("t1")
    assert report.receipt is not None
    assert report.receipt.finished


def test_a_systemd_that_does_not_answer(node: Node) -> None:
    node.standin("silent")
    assert node.apply().reference == "systemd-not-answering"
    assert node.files() == OLD


@pytest.mark.telling
def test_a_snapshot_reads_all_and_writes_nothing(node: Node) -> None:
    before = node.tree()
    snapshot = node.snapshot()
    assert node.tree() == before
    assert isinstance(snapshot, Snapshot), snapshot
    assert (snapshot.machine_id, snapshot.kubelet_version) == (MACHINE, "1.20.15")
    assert snapshot.boot_id == "00000000-0000-0000-0000-000000000001"
    assert snapshot.token == Token()
    assert {path: snapshot.files[path].content for path in OLD} == OLD
    assert snapshot.files[DROPIN].kind == "absent"
    assert snapshot.files[CONFIG].mode == "644"
    assert snapshot.measurement.process is not None
    assert snapshot.measurement.process.command_line == ("kubelet", "--config=/var/lib/kubelet/config.yaml")
    assert snapshot.measurement.unit is not None
    assert snapshot.measurement.unit.properties["RestartUSec"] == "100ms"
    assert (snapshot.measurement.healthz, snapshot.measurement.lenient) == ("ok", 0)
    assert set(snapshot.facts) >= {"room-kib", "state-dir-fs", "hostname", "uptime"}


@pytest.mark.telling
def test_measure(node: Node) -> None:
    gates = (
        agent_call.NodeCommand("good", 5, 'test "a  b" = "a  b"'),
        agent_call.NodeCommand("bad", 5, "exit 7"),
        agent_call.NodeCommand("slow", 1, "echo still at it; hangs"),
        agent_call.NodeCommand("talks", 5, r"seq 1000; printf 'pods: 3 \033[31mfail\n  twice\n' >&2; exit 1"),
    )
    report = node.status(measure=agent_call.Measure("kubelet.service", 10248, (CONFIG, DROPIN), gates))
    assert report.measurement is not None
    assert report.measurement.commands == {"good": 0, "bad": 7, "slow": 124, "talks": 1}
    assert set(report.measurement.outputs) == {"slow", "talks"}
    assert report.measurement.outputs["slow"] == "still at it"
    assert report.measurement.outputs["talks"].endswith("999 1000 pods: 3 [31mfail twice")
    assert len(report.measurement.outputs["talks"]) <= 200
    assert report.measurement.healthz == "ok"
    assert report.measurement.files[DROPIN].kind == "absent"
    assert report.measurement.files[CONFIG].size == len(OLD[CONFIG] or b"")


def test_a_gate_may_leave_a_process_behind(node: Node) -> None:
    """Another process holds its output open; the status is reported anyway, and the lock is free. In real time: nothing hangs."""
    (node.bin / "timeout").unlink()
    left = node.at("/run/standin/left")
    gates = (agent_call.NodeCommand("starts", 1, f"/usr/bin/sleep 600 & echo $! >{left}; exit 3"),)
    measure = agent_call.Measure("kubelet.service", 10248, (), gates)
    report = node.status(claim=Claim(1, "run-1"), measure=measure)
    assert report.measurement is not None
    assert report.measurement.commands == {"starts": 3}
    os.kill(int(left.read_text()), signal.SIGKILL)  # it still ran
    assert node.status(claim=Claim(1, "run-1")).outcome is Outcome.DONE
