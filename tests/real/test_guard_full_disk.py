"""A disk that is full to the last block and inode after arming: every kind of revert works, since it creates nothing."""

from __future__ import annotations

from functools import partial

import pytest

from rollout.core.model.report import Outcome, Report
from tests.controllers import until
from tests.real.fleet import PATIENCE, Fleet
from tests.real.guarded import TIMER, TX, Guarded, guarded

pytestmark = pytest.mark.root


def _fill(one: Guarded) -> None:
    one.node.disk.fill(leave=4_000)
    one.node.disk.use_up_inodes()
    one.node.disk.fill()


def test_guard_watch_boot_and_verb_revert_on_a_full_disk(fleet: Fleet) -> None:
    refused = "echo x 2>/dev/null >/var/lib/x; cat /var/lib/x 2>/dev/null; true >/var/lib/y 2>/dev/null && echo made; rm -f /var/lib/x /var/lib/y"
    made: list[str] = []
    asked_back: list[Report] = []

    def strike(nodes: list[Guarded]) -> None:
        _, by_process, at_boot, asked = nodes
        by_process.node.exec("systemctl", "stop", TIMER)
        for one in nodes:
            _fill(one)
        made[:] = [one.node.exec("sh", "-c", refused) for one in nodes]
        at_boot.node.disk.spare_a_little()
        at_boot.node.powercut()
        _fill(at_boot)
        asked_back[:] = [asked.hand.revert(TX)]

    def switch_on(nodes: list[Guarded]) -> None:
        nodes[2].node.heal()
        if not nodes[2].node.runs():  # a guard that fired early ended the strike before its power was cut
            nodes[2].node.boot()
        nodes[2].node.wait()

    def undo(nodes: list[Guarded]) -> None:
        for one in nodes:
            one.node.disk.free()
        switch_on(nodes)

    with guarded(fleet, strike, undo) as nodes:
        by_timer, by_process, at_boot, asked = nodes
        assert made == [""] * 4, "neither a byte nor a name"
        assert (asked_back[0].outcome, asked_back[0].healthy) == (Outcome.DONE, True), asked_back
        switch_on(nodes)
        until(by_timer.is_old, PATIENCE, "the timer's")
        until(by_process.is_old, PATIENCE, "the process's")
        for one, receipt in ((by_timer, "guard"), (by_process, "guard"), (at_boot, "boot"), (asked, "asked")):
            until(partial(one.says, f"reverted {receipt}"), PATIENCE, receipt)
            assert one.hand.read("/etc/systemd/system/kubelet.service.d/90-rollout.conf") is None
        assert [one.restarts() for one in (by_timer, by_process, asked)] == [1, 1, 1]
