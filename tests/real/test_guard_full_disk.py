"""A disk that is full to the last block and the last inode once armed: every way back works, as it makes nothing that was not there."""

from __future__ import annotations

from functools import partial

import pytest

from rollout.core.model.report import Outcome
from tests.controllers import until
from tests.real.fleet import Fleet
from tests.real.guarded import LATER, TIMER, TX, Guarded, guarded

pytestmark = pytest.mark.real_node

GUARD = 15
FREE = 30


def _fill(one: Guarded) -> None:
    one.node.disk.fill(leave=4_000)
    one.node.disk.use_up_inodes()
    one.node.disk.fill()


def test_guard_watch_boot_and_verb_take_back_on_a_full_disk(fleet: Fleet) -> None:
    with guarded(fleet, GUARD) as nodes:
        by_timer, by_process, at_boot, asked = nodes
        by_process.node.exec("systemctl", "stop", TIMER)
        for one in nodes:
            _fill(one)
            refused = "echo x 2>/dev/null >/var/lib/x; cat /var/lib/x 2>/dev/null; true >/var/lib/y 2>/dev/null && echo made; rm -f /var/lib/x /var/lib/y"
            assert one.node.exec("sh", "-c", refused) == "", "neither a byte nor a name"
        at_boot.node.disk.spare_a_little()
        at_boot.node.powercut()
        _fill(at_boot)
        report = asked.hand.revert(TX)
        assert (report.outcome, report.healthy) == (Outcome.DONE, True), report
        at_boot.node.heal()
        at_boot.node.boot()
        at_boot.node.wait()
        until(by_timer.is_old, GUARD + FREE, "the timer's")
        until(by_process.is_old, LATER + FREE, "the process's")
        for one, receipt in ((by_timer, "guard"), (by_process, "guard"), (at_boot, "boot"), (asked, "asked")):
            until(partial(one.says, f"reverted {receipt}"), FREE, receipt)
            assert one.hand.read("/etc/systemd/system/kubelet.service.d/90-rollout.conf") is None
        assert [one.restarts() for one in (by_timer, by_process, asked)] == [1, 1, 1]
