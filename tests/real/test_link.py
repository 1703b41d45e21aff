"""Nodes that lose their network while they are armed: for less than the guard's time, for more, and for good."""

from __future__ import annotations

import signal

import pytest

from tests.controllers import until
from tests.real.fleet import PATIENCE, Fleet

pytestmark = [pytest.mark.root, pytest.mark.drawn(1)]

ARMED = "*/new.1 *"  # nothing renamed yet


def test_a_link_that_is_cut_for_less_than_the_guards_time_for_more_and_before_the_first_request(fleet: Fleet) -> None:
    fleet.one_rack()
    before = fleet.everything()
    short, long, gone, well = fleet.nodes
    for node in (short, long):
        node.hold(ARMED)
    fleet.plan()
    with fleet.begun("apply", "p.json", "--yes") as process:
        until(lambda: short.holds() and long.holds(), PATIENCE, "both canaries are armed")
        for node in (short, long, gone):
            node.cut()
        for node in (short, long):
            node.let_go()
        until(lambda: fleet.finished(short), PATIENCE, "it finished its change behind a dead link")
        short.heal()
        until(
            lambda: fleet.receipt(short) == "confirmed -", PATIENCE, "the run continues with it before its guard fires"
        )
        fleet.fires(long)
        until(lambda: fleet.receipt(long) == "reverted guard", PATIENCE, "alone, it saves itself")
        assert not fleet.is_new(long)
        assert not fleet.runs_new(long)
        assert fleet.status()["counts"].get("confirmed", 0) == 1, "an unread node is no success"
        long.heal()
        code = process.wait(PATIENCE)
    assert code == 4, fleet.said()

    found = fleet.status()
    assert found["counts"] == {"confirmed": 2, "reverted": 1, "unreachable": 1}
    # the second: its answer was on its way for so short a time that the run asked it to confirm
    assert fleet.standing(long) in ("reverted not-confirmed-in-time", "reverted too-late")
    assert (fleet.standing(gone).split()[0], found["pendingRecovery"]["nodes"]) == ("unreachable", gone.name)
    assert f"pending recovery (the change is still to be applied or reverted there): {gone.name}" in fleet.said()
    assert fleet.receipts(gone) == []
    assert fleet.runs_new(well), "no other node delayed it"
    gone.heal()
    back = fleet.rollout("rollback", found["run"], "--yes")
    assert back.code == 0, back.all
    assert fleet.everything() == before
    fleet.nothing_left()


def test_a_controller_that_is_stopped_while_a_link_is_cut_reports_correctly_and_resumes(fleet: Fleet) -> None:
    fleet.playbook("[canary, rest]", "[rest]")
    gone = fleet.nodes[0]
    gone.hold(ARMED)
    fleet.plan()
    with fleet.begun("apply", "p.json", "--yes") as process:
        until(gone.holds, PATIENCE, "it is armed")
        until(lambda: fleet.status()["counts"].get("confirmed") == 3, PATIENCE, "the others are confirmed")
        gone.cut()
        gone.let_go()
        process.send_signal(signal.SIGINT)
        until(lambda: "stopping" in fleet.said(), PATIENCE, "it reports that it finishes the nodes in flight")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    assert fleet.status()["counts"] == {"confirmed": 3, "applying": 1}
    fleet.fires(gone)
    until(lambda: fleet.receipt(gone) == "reverted guard", PATIENCE, "alone, it saves itself")
    assert not fleet.is_new(gone)
    gone.heal()
    resumed = fleet.rollout("resume", "--yes")
    assert resumed.code == 0, resumed.all
    assert fleet.status()["counts"] == {"confirmed": 4}, (
        "its controller had stopped: the node is not charged, and is tried again"
    )
    assert [fleet.runs_new(node) for node in fleet.nodes] == [True] * 4
    fleet.nothing_left()
