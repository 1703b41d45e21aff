"""Slow, full and read-only disks: their effect on any program of the node, and on the agent at each moment."""

from __future__ import annotations

import time

import pytest

from rollout.kubelet.agent import agent_call
from rollout.lab import disk, faults, kubelet_faults
from tests.lab.labs import Lab
from tests.lab.test_faults import (
    NEW,
    PROGRAM,
    apply,
    brief_guard,
    confirm,
    extra,
    receipt,
    revert,
    until_receipt,
)

pytestmark = [pytest.mark.process, pytest.mark.drawn(8)]

NODE = "lab-01"


def sh(lab: Lab, line: str) -> tuple[int, str]:
    answer = lab.ssh(NODE, f"cd $ROLLOUT_ROOT; {line}")
    return answer.returncode, (answer.stdout + answer.stderr).decode()


def said(lines: list[str], start: str) -> bool:
    return any(line.startswith(start) for line in lines)


def nothing_left(lab: Lab) -> bool:
    return lab.verb(NODE, agent_call.cleanup(PROGRAM, run="r1", counter=1, sudo=True, deadline=60)) == ["end cleanup"]


def test_a_full_disk_accepts_names_but_no_bytes(small: Lab) -> None:
    sh(small, "echo kept > var/log/old; echo old > etc/old")
    small.fault(NODE, disk.FULL)
    status, text = sh(small, "echo more > var/log/new")
    assert (status != 0, "No space left on device" in text or "I/O error" in text) == (True, True), text
    assert (small.root(NODE) / "var/log/new").read_bytes() == b"", "an empty file is left behind, as on a real one"
    assert "No space left" in sh(small, "cp etc/old etc/copy")[1]
    assert "No space left" in sh(small, "mkdir var/log/folder")[1]
    assert sh(small, "mkdir -p var/log")[0] == 0, "an existing name needs no change"
    assert sh(small, "ln etc/old etc/link && mv etc/link etc/moved && rm etc/moved")[0] == 0
    assert sh(small, "printf 12345678 1<> etc/old && cat etc/old") == (0, "12345678"), "its block is already allocated"
    assert sh(small, "echo volatile > run/x && echo lost > /dev/null")[0] == 0, "not on the disk"
    assert sh(small, "stat -f -c %a .")[1] == "0\n"
    assert small.ssh("lab-02", "cd $ROLLOUT_ROOT; echo more > var/log/new").returncode == 0
    small.clear(NODE)
    assert sh(small, "echo more > var/log/new; cat var/log/new") == (0, "more\n")
    assert int(sh(small, "stat -f -c %a .")[1]) > 0


def test_a_read_only_disk_refuses_every_change(small: Lab) -> None:
    sh(small, "echo old > etc/old")
    small.fault(NODE, disk.READ_ONLY)
    for line in ("echo x > etc/new", "echo x >> etc/old", ": > etc/old", "mkdir etc/folder", "ln etc/old etc/link"):
        status, text = sh(small, line)
        assert (status != 0, "Read-only file system" in text) == (True, True), (line, text)
    for line in (
        "mv etc/old etc/new",
        "rm etc/old",
        "rmdir var/log",
        "chmod 600 etc/old",
        "ln -s x etc/s",
        "touch etc/old",
    ):
        status, text = sh(small, line)
        assert (status != 0, "Read-only file system" in text) == (True, True), (line, text)
    assert sh(small, "cat etc/old; mkdir -p etc; echo x > run/x; echo x > /dev/null") == (0, "old\n")
    small.clear(NODE)
    assert sh(small, "rm etc/old")[0] == 0


def test_a_slow_disk_delays_each_sync_and_rename(small: Lab) -> None:
    sh(small, "echo x > etc/x")
    small.fault(NODE, disk.SLOW, lasting=0.4)
    assert sh(small, "echo y > etc/x; cat etc/x") == (0, "y\n")
    began = time.monotonic()
    assert sh(small, "sync etc/x; mv etc/x etc/y")[0] == 0
    assert time.monotonic() - began > 0.8
    assert (small.root(NODE) / "etc/y").exists()


def test_an_apply_on_a_slow_disk_ends_well(small: Lab) -> None:
    small.fault(NODE, disk.SLOW, lasting=0.2)
    lines = small.verb(NODE, apply(small, NODE))
    assert said(lines, "healthy yes"), lines
    assert extra(small, NODE) == NEW
    small.verb(NODE, confirm())
    assert receipt(small, NODE)["state"] == "confirmed"


@pytest.mark.parametrize(
    ("kind", "at", "reference"),
    [
        (disk.FULL, faults.NOW, "state-not-writable"),
        (disk.FULL, disk.STAGING, "no-room"),
        (disk.READ_ONLY, faults.NOW, "state-not-writable"),
        (disk.READ_ONLY, disk.STAGING, "read-only"),
        (disk.READ_ONLY, disk.RECEIPT, "state-not-writable"),
    ],
)
def test_before_the_receipt_a_broken_disk_changes_nothing(small: Lab, kind: str, at: str, reference: str) -> None:
    before = extra(small, NODE)
    small.fault(NODE, kind, at=at)
    lines = small.verb(NODE, apply(small, NODE))
    assert said(lines, f"refused {reference}"), lines
    assert extra(small, NODE) == before
    small.until_state(NODE, "running")
    small.clear(NODE)
    assert said(small.verb(NODE, apply(small, NODE)), "healthy yes"), "after the fault the change succeeds"
    small.verb(NODE, confirm())
    assert nothing_left(small)


@pytest.mark.parametrize("at", [disk.RECEIPT, disk.SWITCH, disk.CONFIRM])
def test_after_the_receipt_a_full_disk_does_not_stop_a_change(small: Lab, at: str) -> None:
    """But before the guard has stored what it tried, the change is refused: a trial without a result proves nothing."""
    small.fault(NODE, disk.FULL, at=at)
    lines = small.verb(NODE, apply(small, NODE))
    if at == "receipt":
        assert said(lines, "refused guard-not-proven")
        small.clear(NODE)
        assert nothing_left(small)
        assert extra(small, NODE) != NEW
        return
    assert said(lines, "healthy yes")
    small.verb(NODE, confirm())
    assert receipt(small, NODE)["state"] == "confirmed"
    assert extra(small, NODE) == NEW


def test_a_revert_needs_no_free_space(small: Lab) -> None:
    before = extra(small, NODE)
    small.verb(NODE, apply(small, NODE))
    small.fault(NODE, disk.FULL)
    lines = small.verb(NODE, revert())
    assert said(lines, "healthy yes"), lines
    assert receipt(small, NODE)["state"] == "reverted"
    assert extra(small, NODE) == before


def test_an_unhealthy_change_on_a_full_disk_reverts_itself(small: Lab) -> None:
    before = extra(small, NODE)
    small.fault(NODE, kubelet_faults.NEVER_HEALTHY)
    small.fault(NODE, disk.FULL, at=disk.SWITCH, add=True)
    lines = small.verb(NODE, apply(small, NODE))
    assert any("state=reverted cause=health" in line for line in lines), lines
    assert extra(small, NODE) == before
    small.until_state(NODE, "running")


def test_the_guard_needs_no_free_space(small: Lab) -> None:
    before = extra(small, NODE)
    small.verb(NODE, apply(small, NODE, guard=brief_guard(small, NODE)))
    small.fault(NODE, disk.FULL)
    assert until_receipt(small, NODE, "reverted")["cause"] == "guard"
    assert extra(small, NODE) == before


def test_a_change_on_a_disk_that_turns_read_only_while_armed_is_reverted_once_it_is_writable(small: Lab) -> None:
    before = extra(small, NODE)
    guard = brief_guard(small, NODE)
    small.fault(NODE, disk.READ_ONLY, at=disk.SWITCH)
    lines = small.verb(NODE, apply(small, NODE, guard=guard))
    assert said(lines, "healthy no"), lines
    assert extra(small, NODE) == before, "no rename could be done: old files"
    small.clear(NODE)
    assert until_receipt(small, NODE, "reverted")["cause"] in {"guard", "health"}
    assert extra(small, NODE) == before


@pytest.mark.parametrize("at", disk.MOMENTS)
def test_a_power_cut_at_any_moment_ends_with_old_or_new_files(small: Lab, at: str) -> None:
    before = extra(small, NODE)
    small.fault(NODE, faults.DIES, lasting=0.3, at=at)
    boot_id = (small.root(NODE) / "proc/sys/kernel/random/boot_id").read_text()
    small.ssh(NODE, *_words(apply(small, NODE)))
    if at == disk.CONFIRM:
        small.ssh(NODE, *_words(confirm()))
    if at == disk.REVERT:
        small.ssh(NODE, *_words(revert()))
    small.until_state(NODE, "running")
    assert (small.root(NODE) / "proc/sys/kernel/random/boot_id").read_text() != boot_id
    assert extra(small, NODE) == before
    assert sh(small, "ls -A etc/systemd/system | grep rollout")[1] == ""


def _words(command: object) -> tuple[str, bytes]:
    return command.line, command.stdin  # type: ignore[attr-defined]
