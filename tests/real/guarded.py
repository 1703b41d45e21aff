"""Transactions that nobody confirms, on four real nodes at once: what is done to a node's guard, and what becomes of the node."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rollout.adapters.ssh import SshNodes
from rollout.core.model.report import Outcome
from tests.bed.node import Node
from tests.real.agent_calls import DROP_IN, OnNode
from tests.real.fleet import Fleet

COUNTERS = itertools.count(1_000)
TX = "tx-guard"
TIMER, SERVICE, WATCH = f"rollout-guard-{TX}.timer", f"rollout-guard-{TX}.service", f"rollout-watch-{TX}.service"
NEW = b'[Service]\nEnvironment="GUARDED=1"\n'
LATER = 10
"""Seconds after the timer at which the process beside it acts."""


@dataclass(frozen=True)
class Guarded:
    """A node that was given a new drop-in."""

    hand: OnNode
    starts: int
    """How often its kubelet has been started until then, and with it."""

    @property
    def node(self) -> Node:
        return self.hand.node

    def is_old(self) -> bool:
        """No drop-in, and a kubelet that was started without it, once."""
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
        """Neither string of the guard is there any more."""
        return not self.is_active(WATCH) and not self.is_active(SERVICE) and not self.is_active(TIMER)

    def is_active(self, unit: str) -> bool:
        return self.node.exec("systemctl", "is-active", unit, check=False).strip() in ("active", "activating")


def starts(node: Node) -> int:
    """How often systemd has started this node's kubelet in this boot."""
    said = node.exec("journalctl", "-b", "-u", "kubelet", "-o", "cat", "--no-pager")
    return said.count("Started kubelet")


@contextmanager
def guarded(fleet: Fleet, guard: int) -> Iterator[list[Guarded]]:
    """Applied on all four with the same guard; afterwards nothing of ours may be left."""
    with ExitStack() as stack:
        found = []
        for node in fleet.nodes:
            ssh = SshNodes(ssh_config=fleet.bed.ssh_config)
            stack.callback(ssh.close)
            counter = next(COUNTERS)
            hand = OnNode(ssh, node, run=f"run-{counter}", counter=counter)
            assert hand.claim().outcome is Outcome.DONE
            report = hand.apply(TX, {DROP_IN: NEW}, guard=guard)
            assert (report.outcome, report.healthy) == (Outcome.DONE, True), report
            found.append(Guarded(hand, starts(node)))
        yield found
        for one in found:
            cleaned = one.hand.cleanup()
            assert (cleaned.outcome, cleaned.leftovers) == (Outcome.DONE, ()), cleaned
        fleet.nothing_left()
