"""A node reverts itself although a part of its guard is stopped, masked, deleted or killed: of timer and process, one is enough."""

from __future__ import annotations

import pytest

from tests.bed.node import Node
from tests.controllers import until
from tests.real.fleet import PATIENCE, Fleet
from tests.real.guarded import SERVICE, TIMER, TX, WATCH, Guarded, guarded

pytestmark = [pytest.mark.root, pytest.mark.drawn(1)]


def test_one_part_may_be_stopped_masked_or_deleted(fleet: Fleet) -> None:
    watched: list[bool] = []

    def strike(nodes: list[Guarded]) -> None:
        stopped, masked, deleted, unwatched = nodes
        stopped.node.exec("systemctl", "stop", TIMER)
        masked.node.exec("systemctl", "mask", "--now", TIMER)
        deleted.node.exec("sh", "-c", "rm -f /run/systemd/transient/rollout-* && systemctl daemon-reload")
        unwatched.node.exec("systemctl", "stop", WATCH)
        watched[:] = [one.is_active(WATCH) for one in nodes]

    def undo(nodes: list[Guarded]) -> None:
        unmask(nodes[1].node)
        until(lambda: not nodes[2].says("armed "), PATIENCE, "it reverts, although its units are deleted")

    with guarded(fleet, strike, undo) as nodes:
        assert watched == [True, True, True, False]
        for one in nodes:
            until(one.is_old, PATIENCE, "its old files are in force")
        for one in nodes:
            until(one.has_taken_itself_back, PATIENCE, "its receipt is reverted")
            assert one.restarts() == 1
        unmask(nodes[1].node)
    assert [one.restarts() for one in nodes] == [1, 1, 1, 1]


def unmask(node: Node) -> None:
    """The test made the mask, so it removes it."""
    (node.root / f"etc/systemd/system/{TIMER}").unlink(missing_ok=True)
    node.exec("systemctl", "daemon-reload")


def hold(nodes: list[Guarded], instant: str) -> None:
    for one in nodes:
        one.node.hold(instant)


def let_go(nodes: list[Guarded]) -> None:
    for one in nodes:
        one.node.let_go()


def test_a_guard_that_dies_at_work_is_started_again_or_replaced(fleet: Fleet) -> None:
    """Each is held at its first rename, and killed or stopped there; the watching process is stopped before."""

    def strike(nodes: list[Guarded]) -> None:
        *held, watch = nodes
        hold(held, "*/next/reverting-guard *")
        watch.node.exec("systemctl", "stop", TIMER)
        watch.node.exec("systemctl", "kill", "-s", "KILL", WATCH)

    with guarded(fleet, strike, undo=let_go) as (killed, terminated, stopped, watch):
        for one, way in ((killed, "kill -s KILL"), (terminated, "kill -s TERM"), (stopped, "stop")):
            until(one.node.holds, PATIENCE, "the timer's guard is at work")
            one.node.exec("systemctl", *way.split(), SERVICE)
            one.node.let_go()
        for one in (killed, terminated, stopped, watch):
            until(one.is_old, PATIENCE, "its old files are in force")
            until(one.has_taken_itself_back, PATIENCE, "its receipt is reverted")
            assert one.restarts() == 1
        assert [one.hand.status(TX).receipt is not None for one in (killed, watch)] == [True, True]


def test_both_parts_fire_and_the_kubelet_is_restarted_once(fleet: Fleet) -> None:
    """The timer's guard is slow, so that the process beside it starts meanwhile: it waits, and finds nothing to do."""
    with guarded(fleet, lambda nodes: hold(nodes, "*/next/reverted-guard *"), undo=let_go) as nodes:
        for one in nodes:
            until(one.node.holds, PATIENCE, "old files and a restarted kubelet, but not yet the receipt")
        for one in nodes:
            until(one.watch_waits, PATIENCE, "the other has started, and waits for the lock")
        let_go(nodes)
        for one in nodes:
            until(one.has_taken_itself_back, PATIENCE, "its receipt is reverted")
        for one in nodes:
            until(one.has_ended, PATIENCE, "both have ended")
            assert (one.is_old(), one.restarts()) == (True, 1)
