"""Unconfirmed transactions on four real nodes at once: what is done to a node's guard, and the result for the node."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import pytest

from rollout.adapters.ssh import SshNodes
from rollout.core.model.report import Outcome
from tests.bed.node import Node
from tests.bed.shell import BedError
from tests.controllers import until
from tests.real.agent_calls import DROP_IN, OnNode, seconds_left
from tests.real.fleet import PATIENCE, Fleet

COUNTERS = itertools.count(1_000)
TX = "tx-guard"
TIMER, SERVICE, WATCH = f"rollout-guard-{TX}.timer", f"rollout-guard-{TX}.service", f"rollout-watch-{TX}.service"
NEW = b'[Service]\nEnvironment="GUARDED=1"\n'
GUARDS = (10, 45, 240)
"""Seconds of guards, tried one after the other."""


@dataclass(frozen=True)
class Guarded:
    """A node that got a new drop-in."""

    hand: OnNode
    starts: int
    """The number of starts of its kubelet before the drop-in, and with it."""
    was_armed: bool

    @property
    def node(self) -> Node:
        return self.hand.node

    def is_old(self) -> bool:
        """No drop-in, and a kubelet that was started once without it."""
        if self.hand.read(DROP_IN) is not None or starts(self.node) == self.starts:
            return False
        pid = self.node.exec("systemctl", "show", "-p", "MainPID", "--value", "kubelet").strip()
        return pid != "0" and "GUARDED" not in self.node.exec("sh", "-c", f"tr '\\0' '\\n' </proc/{pid}/environ || :")

    def restarts(self) -> int:
        return starts(self.node) - self.starts

    def receipt(self) -> str:
        found = self.hand.status(TX).receipt
        return f"{found.state.value} {found.cause}" if found else ""

    def says(self, receipt: str) -> bool:
        return self.receipt() == receipt

    def has_taken_itself_back(self) -> bool:
        return self.says("reverted guard")

    def has_ended(self) -> bool:
        """Timer and process of the guard no longer exist."""
        return not self.is_active(WATCH) and not self.is_active(SERVICE) and not self.is_active(TIMER)

    def watch_waits(self) -> bool:
        """The process beside the timer has started: it has the lock's file open, and the timer's guard holds the lock."""
        pid = self.node.exec("systemctl", "show", "-p", "MainPID", "--value", WATCH).strip()
        return "lock" in self.node.exec("sh", "-c", f"readlink /proc/{pid}/fd/9 || :")

    def is_active(self, unit: str) -> bool:
        return self.node.exec("systemctl", "is-active", unit, check=False).strip() in ("active", "activating")


def starts(node: Node) -> int:
    """The number of starts of this node's kubelet in this boot."""
    said = node.exec("journalctl", "-b", "-u", "kubelet", "-o", "cat", "--no-pager")
    return said.count("Started kubelet")


@contextmanager
def guarded(
    fleet: Fleet,
    strike: Callable[[list[Guarded]], object],
    undo: Callable[[list[Guarded]], object] = lambda nodes: None,
) -> Iterator[list[Guarded]]:
    """Applied on all four with the same guard, and ``strike`` done before any of them fired. If a machine is too slow for a
    guard of a few seconds, a longer one is tried. Afterwards nothing of rollout may be left.
    """
    with ExitStack() as stack:
        for guard in GUARDS:
            found = _apply(fleet, guard, stack)
            with suppress(BedError):  # its units no longer exist: the guard has fired before
                strike(found)
                if all(one.was_armed and seconds_left(one.node, TX) > 0 for one in found):
                    break
            undo(found)
            for one in found:
                until(one.has_ended, PATIENCE, "its guard has ended")
                one.hand.node.exec("rm", "-rf", "/var/lib/rollout")
        else:
            pytest.fail(f"this machine needs more than {GUARDS[-1]} s for a strike, or the strike is wrong")
        yield found
        for one in found:
            cleaned = one.hand.cleanup()
            assert (cleaned.outcome, cleaned.leftovers) == (Outcome.DONE, ()), cleaned
        fleet.nothing_left()


def _apply(fleet: Fleet, guard: int, stack: ExitStack) -> list[Guarded]:
    """On all four at once."""

    def one(node: Node) -> Guarded:
        ssh = SshNodes(ssh_config=fleet.bed.ssh_config)
        stack.callback(ssh.close)
        counter = next(COUNTERS)
        hand = OnNode(ssh, node, run=f"run-{counter}", counter=counter)
        assert hand.claim().outcome is Outcome.DONE
        report = hand.apply(TX, {DROP_IN: NEW}, guard=guard)
        armed = (report.outcome, report.healthy) == (Outcome.DONE, True)
        return Guarded(hand, starts(node), was_armed=armed and hand.read(DROP_IN) == NEW.decode())

    with ThreadPoolExecutor(len(fleet.nodes)) as pool:
        return list(pool.map(one, fleet.nodes))
