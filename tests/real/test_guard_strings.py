"""A node saves itself though somebody stops, masks, deletes or kills a part of its guard: a timer and a process, of which one is enough."""

from __future__ import annotations

import time

import pytest

from tests.controllers import until
from tests.real.fleet import Fleet
from tests.real.guarded import LATER, SERVICE, TIMER, TX, WATCH, guarded

pytestmark = pytest.mark.real_node

GUARD = 12
FREE = 20
"""Seconds that systemd, a restart of the kubelet and a busy machine may take besides."""


def test_one_string_may_be_stopped_masked_or_deleted(fleet: Fleet) -> None:
    begin = time.monotonic()
    with guarded(fleet, GUARD) as (stopped, masked, deleted, unwatched):
        stopped.node.exec("systemctl", "stop", TIMER)
        masked.node.exec("systemctl", "mask", "--now", TIMER)
        deleted.node.exec("sh", "-c", "rm -f /run/systemd/transient/rollout-* && systemctl daemon-reload")
        unwatched.node.exec("systemctl", "stop", WATCH)
        assert [one.is_active(WATCH) for one in (stopped, masked, deleted, unwatched)] == [True, True, True, False]
        for one in (stopped, masked, deleted, unwatched):
            until(one.is_old, GUARD + LATER + FREE, "its old files are in force")
            assert time.monotonic() - begin < 300
        for one in (stopped, masked, deleted, unwatched):
            until(one.has_taken_itself_back, FREE, "it says so")
            assert one.restarts() == 1
        (masked.node.root / f"etc/systemd/system/{TIMER}").unlink()  # theirs
        masked.node.exec("systemctl", "daemon-reload")
    assert [one.restarts() for one in (stopped, masked, deleted, unwatched)] == [1, 1, 1, 1]


def test_a_guard_that_dies_at_its_work_is_begun_again_or_stood_in_for(fleet: Fleet) -> None:
    """Each is held at its first rename, and struck there; the process that watches is struck before."""
    with guarded(fleet, GUARD) as (killed, terminated, stopped, watch):
        for one in (killed, terminated, stopped):
            one.node.hold("*/next/reverting-guard *")
        watch.node.exec("systemctl", "stop", TIMER)
        watch.node.exec("systemctl", "kill", "-s", "KILL", WATCH)
        for one, strike in ((killed, "kill -s KILL"), (terminated, "kill -s TERM"), (stopped, "stop")):
            until(one.node.holds, GUARD + FREE, "the timer's guard is at work")
            one.node.exec("systemctl", *strike.split(), SERVICE)
            one.node.let_go()
        for one in (killed, terminated, stopped, watch):
            until(one.is_old, LATER + FREE, "its old files are in force")
            until(one.has_taken_itself_back, FREE, "it says so")
            assert one.restarts() == 1
        assert [one.hand.status(TX).receipt is not None for one in (killed, watch)] == [True, True]


def test_both_strings_fire_and_the_node_is_restarted_once(fleet: Fleet) -> None:
    """The timer's guard is slow, so that the process beside it comes while it is at work: it waits, and finds nothing to do."""
    with guarded(fleet, GUARD) as nodes:
        for one in nodes:
            one.node.hold("*/next/reverted-guard *")
        for one in nodes:
            until(one.node.holds, GUARD + FREE, "old files, a restarted kubelet, only the receipt does not say so yet")
        time.sleep(LATER + 2)  # the instant at which the other begins is past
        assert [one.is_active(WATCH) for one in nodes] == [True] * 4, "it waits for the lock"
        for one in nodes:
            one.node.let_go()
        for one in nodes:
            until(one.has_taken_itself_back, FREE, "it says so")
        for one in nodes:
            until(one.has_ended, FREE, "both have ended")
            assert (one.is_old(), one.restarts()) == (True, 1)
