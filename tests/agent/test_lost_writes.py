"""A disk that reports a lost write, once: the change is refused, or reverted, or the node is failed. The sync is never repeated."""

from __future__ import annotations

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rollout.core.model.report import Outcome
from rollout.core.model.snapshot import ReceiptState
from rollout.core.run.events import Trigger, reference_of, trigger_of
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_call import Claim
from tests.agent.node import CONFIG, NEW, OLD, PATIENCE, Node, killed, order
from tests.controllers import until

pytestmark = pytest.mark.process


def lose(node: Node, pattern: str) -> None:
    """The next sync of a matching name fails; later ones do not."""
    node.standin("lost", pattern + "\n")


@pytest.mark.parametrize("name", ["*/agent", "*/file.1", "*/old.1", "*/next/confirmed", "*/new.2", "*/next", "*/tx/t1"])
def test_a_failed_sync_of_staging_prevents_arming(node: Node, name: str) -> None:
    lose(node, name)
    report = node.apply()
    if name == "*/old.1":  # a hard link: nothing new was written
        assert report.healthy
        return
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-durable")
    assert (node.files(), node.strays()) == (OLD, [])


def test_a_node_with_a_sync_that_takes_no_names_is_refused(node: Node) -> None:
    node.standin("no-names")
    assert node.apply().reference == "sync-without-names"
    assert (node.files(), node.strays()) == (OLD, [])


@pytest.mark.parametrize("verb", ["claim", "apply"])
def test_a_lost_token_is_not_accepted(node: Node, verb: str) -> None:
    lose(node, "*/rollout/token")
    report = node.status(claim=Claim(1, "run-1")) if verb == "claim" else node.apply()
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-durable")


@pytest.mark.parametrize("name", ["*/rollout/token", "*/etc/systemd/system"])
def test_a_cleanup_whose_sync_is_lost_says_so_and_the_next_one_writes_the_token_again(node: Node, name: str) -> None:
    """Until the end of the token is on the disk, what was voided is refused by its own name."""
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    void = agent_call.status(node.program, tx="t9", claim=Claim(1, "run-1"), void=True, sudo=False, deadline=60)
    assert node.report("status", void).voided == "t9"
    lose(node, name)
    asked = agent_call.cleanup(node.program, run="run-1", counter=1, sudo=False, deadline=60)
    assert node.report("cleanup", asked).leftovers == ("what was removed, after a power cut: sync failed",)
    assert node.at("/var/lib/rollout/token").read_text().split()[2] == "lost"
    assert node.apply(order("t9")).reference == "voided"
    assert node.report("cleanup", asked).leftovers == ()
    assert node.at("/var/lib/rollout/token").read_text().split()[2] == "ended"
    assert node.apply(order("t9")).reference == "ended-here"


@pytest.mark.parametrize("voided", [True, False])
def test_a_cleanup_forgets_what_was_voided_and_the_file_laid_for_it(node: Node, voided: bool) -> None:
    claim = Claim(1, "run-1")
    command = agent_call.status(node.program, tx="t9", claim=claim, void=voided, sudo=False, deadline=60)
    assert node.report("status", command).voided == ("t9" if voided else "")
    assert node.cleanup().leftovers == ()
    assert not list(node.at("/var/lib/rollout").glob("void*"))


def test_a_lost_void_is_not_said(node: Node) -> None:
    assert node.status(claim=Claim(1, "run-1")).outcome is Outcome.DONE
    lose(node, "*/lib/rollout")
    command = agent_call.status(node.program, tx="t1", claim=Claim(1, "run-1"), void=True, sudo=False, deadline=60)
    found = node.report("status", command)
    assert (found.outcome, found.reference, found.voided) == (Outcome.REFUSED, "not-durable", "")
    assert node.report("status", command).voided == "t1", "its name is made anew"
    lose(node, "*/lib/rollout")
    assert node.report("status", command).reference == "not-durable", "it is repeated, and made anew once more"
    assert node.apply().reference == "voided", "it was told before"
    assert node.report("status", command).voided == "t1"


def told_later(node: Node) -> tuple[str, Trigger]:
    """By a read that has nothing but the receipt."""
    report = node.status("t1")
    return reference_of(report, trigger_of(report)), trigger_of(report)


def test_lost_new_files_are_reverted_at_once(node: Node) -> None:
    lose(node, "*/lib/kubelet")
    report = node.apply()
    assert (report.reference, trigger_of(report)) == ("not-durable", Trigger.REVERTED_UNHEALTHY)
    assert "sync failed" in report.message
    assert (node.files(), node.receipt()["state"]) == (OLD, "reverted")
    assert told_later(node) == ("not-durable", Trigger.REVERTED_UNHEALTHY)


def test_old_files_that_are_lost_too_fail_the_node(node: Node) -> None:
    lose(node, "*/lib/kubelet\n*/etc/default")
    report = node.apply()
    assert (report.reference, trigger_of(report)) == ("not-durable", Trigger.STUCK)
    assert node.receipt()["state"] == "reverting"
    node.reboot()
    assert node.trigger("boot") == 0
    assert told_later(node) == ("not-durable", Trigger.REVERTED_UNHEALTHY)


def test_a_lost_confirm_is_reverted(node: Node) -> None:
    assert node.apply().healthy
    lose(node, "*/tx/t1")
    report = node.confirm()
    assert (report.reference, trigger_of(report)) == ("not-durable", Trigger.REVERTED_UNHEALTHY)
    assert (node.files(), node.receipt()["state"], node.strays()) == (OLD, "reverted", [])
    assert told_later(node) == ("not-durable", Trigger.REVERTED_UNHEALTHY)


def test_of_a_change_that_an_earlier_version_has_armed_the_cause_is_the_nearest_one(node: Node) -> None:
    """It laid no receipt for a lost write: the revert must not fail for that."""
    assert node.apply().healthy
    for name in ("reverting", "reverted"):
        (node.tx() / "next" / f"{name}-not-durable").unlink()
    lose(node, "*/tx/t1")
    report = node.confirm()
    assert (report.reference, trigger_of(report)) == ("not-durable", Trigger.REVERTED_UNHEALTHY)
    assert (node.files(), node.receipt()["cause"]) == (OLD, "health")


@pytest.mark.parametrize("name", ["*/tx/t1", "*/lib/kubelet", "*/etc/default"])
def test_lost_old_files_fail_the_node_without_a_retry(node: Node, name: str) -> None:
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    lose(node, name)
    report = node.revert()
    assert trigger_of(report) is Trigger.STUCK
    assert reference_of(report, trigger_of(report)) == "not-durable"
    assert report.receipt is not None
    assert report.receipt.state is ReceiptState.REVERTING
    restarts = node.calls().count("restart kubelet.service")
    assert restarts == 2, "the old files are in force anyway"
    assert node.files() == OLD
    assert node.revert().reference == node.status("t1").reference == "not-durable"
    assert node.calls().count("restart kubelet.service") == restarts
    node.reboot()
    assert node.trigger("boot") == 0
    assert (node.files(), node.receipt()["state"], node.strays()) == (OLD, "reverted", [])


def test_nothing_is_lost_where_no_sync_fails(node: Node) -> None:
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    assert node.files() == NEW


# -------------------------------------------------------------------------------------------------- four ends of a sync


STAGED = ("*/agent", "*/file.1", "*/next/confirmed", "*/new.2", "*/next", "*/tx")
WORDS = {"126": "could not be started", "killed": "was killed", "hangs": "has not ended"}
ENDS = tuple(WORDS)
"""The ends that tell nothing about the disk; by themselves, syncs of these tests succeed."""


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", STAGED)
def test_before_anything_is_armed_a_sync_without_a_result_refuses_and_is_named(node: Node, name: str, end: str) -> None:
    lose(node, f"{name} {end}")
    report = node.apply()
    if end == "126":
        assert report.healthy, "it is started again"
        return
    assert (report.outcome, report.reference) == (Outcome.REFUSED, "not-durable")
    assert WORDS[end] in report.message
    assert (node.files(), node.strays()) == (OLD, [])


def test_a_sync_that_hangs_ends_no_timeout_outside_the_node(node: Node) -> None:
    """These tests may run under a timeout: it was ended, and they with it."""
    outside = subprocess.Popen(["/usr/bin/timeout", "3600", node.bin / "hangs"], env=node.env(), start_new_session=True)
    children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children")
    try:

        def hangs() -> bool:
            return outside.poll() is not None or "3600" in Path(
                f"/proc/{children.read_text().strip()}/cmdline"
            ).read_text().split("\0")

        until(hangs, PATIENCE, "it sleeps")
        assert outside.poll() is None
    finally:
        os.killpg(outside.pid, signal.SIGKILL)
        outside.wait()


@pytest.mark.parametrize("end", ENDS)
def test_new_files_without_a_result_are_reverted(node: Node, end: str) -> None:
    lose(node, f"*/lib/kubelet {end}")
    report = node.apply()
    if end == "126":
        assert report.healthy
        return
    assert (report.reference, trigger_of(report)) == ("not-durable", Trigger.REVERTED_UNHEALTHY)
    assert WORDS[end] in report.message
    assert (node.files(), node.receipt()["state"]) == (OLD, "reverted")


@pytest.mark.parametrize("then", ["guard", "watch", "confirm", "revert"])
@pytest.mark.parametrize("end", ENDS)
def test_a_confirm_without_a_result_is_written_again(node: Node, end: str, then: str) -> None:
    """By the confirm itself; if that ends without a result too, by whatever comes next in this boot. Until then no change is confirmed."""
    assert node.apply().healthy
    lose(node, f"*/tx/t1 {end}" + ("\n*/receipt.new hangs" if end == "hangs" else ""))
    laid = (node.tx() / "next" / "confirmed").stat().st_ino
    report = node.confirm()
    if end == "hangs":
        assert (report.reference, trigger_of(report)) == ("durability-unknown", Trigger.ARMED)
        assert node.at("/run/standin/rollout-guard-t1.timer").exists(), "its guard is still armed"
        assert trigger_of(node.status("t1")) is Trigger.ARMED
        if then == "revert":
            assert node.revert().outcome is Outcome.DONE
            assert (node.files(), node.receipt()["state"]) == (OLD, "reverted")
            return
        assert trigger_of(node.confirm()) is Trigger.CONFIRMED if then == "confirm" else node.trigger(then) == 0
    else:
        assert (report.outcome, trigger_of(report)) == (Outcome.DONE, Trigger.CONFIRMED)
    assert ((node.tx() / "receipt").stat().st_ino == laid) is (end == "126")
    assert trigger_of(node.status("t1")) is Trigger.CONFIRMED
    assert (node.files(), node.receipt()["state"]) == (NEW, "confirmed")
    assert set(node.strays()) <= {"run/standin/rollout-watch-t1.service"}, "a watch does not stop itself"


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", ["*/tx/t1", "*/lib/kubelet", "*/etc/default"])
def test_old_files_without_a_result_are_written_again_by_the_guard(node: Node, name: str, end: str) -> None:
    assert node.apply().healthy
    assert node.confirm().outcome is Outcome.DONE
    lose(node, f"{name} {end}")
    old = (node.tx() / "old.1").stat().st_ino
    report = node.revert()
    restarts = node.calls().count("restart kubelet.service")
    if end != "126":
        assert (reference_of(report, trigger_of(report)), trigger_of(report)) == ("durability-unknown", Trigger.STUCK)
        assert WORDS[end] in report.message
        assert node.receipt()["state"] == "reverting"
        assert node.at("/run/standin/rollout-guard-t1.timer").exists(), "a trigger of this boot"
        assert node.trigger("guard") == 0
        assert node.at(CONFIG).stat().st_ino != old, "its bytes are in a new inode"
    assert (node.files(), node.receipt()["state"], node.strays()) == (OLD, "reverted", [])
    assert node.calls().count("restart kubelet.service") == restarts == 2
    assert trigger_of(node.status("t1")) is Trigger.REVERTED_ON_REQUEST


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("what", ["guard", "watch", "boot"])
def test_a_guard_without_a_result_tries_again(node: Node, what: str, end: str) -> None:
    assert node.apply().healthy
    if what == "boot":
        node.reboot()
    lose(node, f"*/lib/kubelet {end}")
    assert node.trigger(what) == (end != "126")
    if end != "126":
        assert node.receipt()["state"] == "reverting"
        assert node.at("/run/standin/rollout-guard-t1.timer").exists(), "a trigger of this boot"
        assert node.trigger("guard") == 0
    assert (node.files(), node.receipt()["state"]) == (OLD, "reverted")


@pytest.mark.parametrize("ends", ["*/tx/t1 1", "*/tx/t1 hangs\n*/receipt.new hangs"])
def test_a_boot_unit_whose_last_sync_failed_leaves_a_guard(node: Node, ends: str) -> None:
    """Its files are old and its receipt is `reverted`, but the disk may still have `reverting`."""
    assert node.apply().healthy
    node.reboot()
    lose(node, f"*/tx/t1 0\n{ends}")
    assert node.trigger("boot") == 1
    assert node.receipt()["state"] == "reverted"
    assert node.at("/run/standin/rollout-guard-t1.timer").exists(), "a trigger of this boot"
    assert node.trigger("guard") == 0
    assert trigger_of(node.status("t1")) is Trigger.REVERTED_BY_GUARD
    assert (node.files(), node.strays()) == (OLD, [])


def test_a_revert_whose_last_sync_has_no_result_is_not_reported_as_reverted(node: Node) -> None:
    assert node.apply().healthy
    lose(node, "*/tx/t1 0\n*/tx/t1 hangs\n*/receipt.new hangs")  # the receipt `reverting`; `reverted`; and that again
    report = node.revert()
    assert trigger_of(report) is Trigger.BUSY
    assert node.at("/run/standin/rollout-guard-t1.timer").exists()
    assert node.trigger("guard") == 0
    assert trigger_of(node.status("t1")) is Trigger.REVERTED_ON_REQUEST
    assert (node.files(), node.strays()) == (OLD, [])


@pytest.mark.parametrize("by", ["cleanup", "forget", "t2"])
def test_what_the_disk_may_still_have_armed_keeps_its_guard(node: Node, by: str) -> None:
    """A confirm without a result, then what removes guards: it writes the receipt again first, or leaves the guard."""
    assert node.apply().healthy
    lose(node, "*/tx/t1 hangs\n*/receipt.new hangs\n*/receipt.new hangs")
    assert trigger_of(node.confirm()) is Trigger.ARMED
    if by == "t2":
        assert node.apply(order("t2", old=NEW, new=OLD)).outcome is Outcome.REFUSED
    else:
        command = getattr(agent_call, by)(node.program, run="run-1", counter=1, sudo=False, deadline=60)
        node.report(by, command)
    assert node.at("/etc/systemd/system/rollout-guard-boot.service").exists(), "the disk may have the receipt `armed`"
    assert node.at("/run/standin/rollout-guard-t1.timer").exists()
    assert node.trigger("guard") == 0
    assert trigger_of(node.status("t1")) is Trigger.CONFIRMED
    assert (node.files(), node.strays()) == (NEW, [])


def test_a_cleanup_leaves_what_a_reverting_transaction_needs_until_the_disk_has_its_end(node: Node) -> None:
    assert node.apply().healthy
    lose(node, "*/tx/t1 0\n*/tx/t1 hangs\n*/receipt.new hangs\n*/receipt.new hangs")
    assert trigger_of(node.revert()) is Trigger.BUSY
    node.report("cleanup", agent_call.cleanup(node.program, run="run-1", counter=1, sudo=False, deadline=60))
    assert (node.tx() / "next").exists(), "the old files and the receipts are removed with it"
    assert node.at("/run/standin/rollout-guard-t1.timer").exists()
    assert node.trigger("guard") == 0
    assert trigger_of(node.status("t1")) is Trigger.REVERTED_ON_REQUEST
    assert (node.files(), node.strays()) == (OLD, [])


def test_a_second_claim_after_a_lost_token_writes_and_syncs_it_again(node: Node) -> None:
    """The file has the token already: its bytes in the cache are no proof."""
    lose(node, "*/rollout/token")
    assert node.status(claim=Claim(1, "run-1")).reference == "not-durable"
    lose(node, "*/rollout/token")
    assert node.status(claim=Claim(1, "run-1")).reference == "not-durable"
    assert node.status(claim=Claim(1, "run-1")).outcome is Outcome.DONE


def test_a_slow_disk_delays_no_restart_of_a_revert(node: Node) -> None:
    """The sync ends after the time for which a revert waits before it restarts the units: its result counts then."""
    assert node.apply().healthy
    slow = node.bin / "sync"
    slow.rename(node.bin / "sync.real")
    calls = node.at("/run/standin/calls")
    before = node.calls().count("restart kubelet.service")
    waits = f'while [ "$(grep -c "restart kubelet" {calls})" = {before} ]; do /usr/bin/sleep 0.01; done'
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in */lib/kubelet*) exec {node.bin}/late "$@" ;; esac\nexec {slow}.real "$@"\n'
    )
    (node.bin / "late").write_text(f'#!/bin/sh\n{waits}\nexec {slow}.real "$@"\n')
    for tool in (slow, node.bin / "late"):
        tool.chmod(0o755)
    assert node.trigger("guard") == 0
    assert (node.files(), node.receipt()["state"]) == (OLD, "reverted")


def test_a_guard_that_takes_over_lets_a_running_sync_end(tmp_path: Path) -> None:
    """It kills the holder of the lock and its children, but that sync may have the only report of a lost write."""
    node = Node.make(tmp_path, "dash")
    assert node.apply().healthy
    slow, waits, pid = node.bin / "sync", node.at("/run/standin/waits"), node.at("/run/standin/pid")
    slow.rename(node.bin / "sync.real")
    waits.touch()
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in */tx/t1) echo $$ >{pid}.new && mv {pid}.new {pid}; while [ -e {waits} ]; do /usr/bin/sleep 0.02; done ;; esac\n'
        f'exec {slow}.real "$@"\n'
    )
    slow.chmod(0o755)
    command = agent_call.confirm(node.program, tx="t1", run="run-1", counter=1, keep=3, sudo=False, deadline=60)
    with ThreadPoolExecutor(1) as pool:
        confirm = pool.submit(node.run, command)
        until(pid.exists, PATIENCE, "the receipt is being synced")
        slow.unlink()
        (node.bin / "sync.real").rename(slow)  # the guard's own syncs are not slow
        with node.at_work("guard") as guard:
            node.tire_who_waits()
            assert guard.wait(PATIENCE) == 0
        assert killed(confirm.result())
        name, state = Path(f"/proc/{pid.read_text().strip()}/stat").read_text().split()[1:3]
        waits.unlink()
    assert (name, state in "RSD") == ("(sync)", True), f"it ended or was stopped: {state}"
    assert (node.files(), node.receipt()["state"]) == (NEW, "confirmed")
    assert trigger_of(node.status("t1")) is Trigger.CONFIRMED


@pytest.mark.parametrize("verb", ["revert", "confirm"])
def test_whoever_looks_at_a_verb_that_was_killed_leaves_it_a_trigger(node: Node, verb: str) -> None:
    """A revert of a confirmed change has no guard; a killed confirm may have lost its own."""
    assert node.apply().healthy
    if verb == "revert":
        assert node.confirm().outcome is Outcome.DONE
    lose(node, "*/tx/t1 killed" if verb == "revert" else "*/tx/t1 hangs\n*/receipt.new hangs")
    getattr(node, verb)()
    timer = node.at("/run/standin/rollout-guard-t1.timer")
    timer.unlink()
    state = node.status("t1").receipt
    assert state is not None
    assert state.state in (ReceiptState.REVERTING, ReceiptState.ARMED)
    assert timer.exists()
    assert node.trigger("guard") == 0
    assert node.receipt()["state"] == ("reverted" if verb == "revert" else "confirmed")
