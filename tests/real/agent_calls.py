"""The agent's verbs on a real node over SSH, as the controller calls them."""

from __future__ import annotations

import hashlib
import itertools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rollout.adapters.agent_program import agent_program
from rollout.adapters.ssh import SshNodes
from rollout.app.ports import Target
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.report import Outcome, RemoteAnswer, RemoteCommand, Report
from rollout.core.model.snapshot import Receipt, ReceiptState, Snapshot
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report, parse_snapshot
from tests.bed.node import Node
from tests.bed.shell import BedError
from tests.controllers import until

CONFIG_PATH = "/var/lib/kubelet/config.yaml"
FLAGS_PATH = "/var/lib/kubelet/kubeadm-flags.env"
DROP_IN = "/etc/systemd/system/kubelet.service.d/90-rollout.conf"
DAEMON_PATH = "/etc/docker/daemon.json"
KEEP = 3
PATIENCE = 300.0
"""Seconds: a safety net for what hangs, not a verdict."""
GUARDS = (6, 30, 120)
"""Seconds of guards, tried one after the other if a test waits for the guard to fire."""
KUBELET = ("kubelet.service",)
COUNTERS = itertools.count(1)
"""Of tokens."""


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(slots=True)
class OnNode:
    """One run's access to one node."""

    ssh: SshNodes
    node: Node
    run: str = ""
    counter: int = 0

    @property
    def target(self) -> Target:
        return Target(name=self.node.name, address=self.node.name)

    def send(self, command: RemoteCommand) -> RemoteAnswer:
        return self.ssh.run(self.target, command)

    def snapshot(self) -> Snapshot:
        answer = self.send(
            agent_call.snapshot(
                agent_program(), unit="kubelet.service", sudo=True, deadline=PATIENCE, healthz_port=10248
            )
        )
        snapshot = parse_snapshot(self.node.name, answer)
        assert isinstance(snapshot, Snapshot), (snapshot, answer)
        return snapshot

    def claim_anew(self) -> Report:
        """With a higher token than the node has, which may be of a run by the command line: one that has ended is never accepted again."""
        held = self._report("status", agent_call.status(agent_program(), sudo=True, deadline=PATIENCE)).token
        self.counter = max(next(COUNTERS), held.counter + 1 if held else 0)
        self.run = f"run-{self.counter}"
        return self.claim()

    def claim(self) -> Report:
        claim = agent_call.Claim(self.counter, self.run, force=True)
        return self._report("status", agent_call.status(agent_program(), claim=claim, sudo=True, deadline=PATIENCE))

    def status(self, tx: str) -> Report:
        return self._report("status", agent_call.status(agent_program(), tx=tx, sudo=True, deadline=PATIENCE))

    def order(
        self,
        tx: str,
        changes: dict[str, bytes],
        *,
        guard: int = 120,
        arguments: tuple[str, ...] = (),
        units: tuple[str, ...] = KUBELET,
        hangups: tuple[str, ...] = (),
    ) -> RemoteCommand:
        """The command that applies new bytes to files as they are now."""
        found = self.snapshot()
        files = tuple(FileChange(path, found.files[path].content, content) for path, content in changes.items())
        order = agent_call.ApplyOrder(
            tx=tx,
            run=self.run,
            counter=self.counter,
            machine_id=found.machine_id,
            guard=guard,
            keep=KEEP,
            unit="kubelet.service",
            change=Change(files, units, arguments=arguments, healthz_port=10248, hangups=hangups),
        )
        return agent_call.apply(agent_program(), order, sudo=True, deadline=PATIENCE)

    def apply(
        self,
        tx: str,
        changes: dict[str, bytes],
        *,
        guard: int = 120,
        arguments: tuple[str, ...] = (),
        units: tuple[str, ...] = KUBELET,
        hangups: tuple[str, ...] = (),
    ) -> Report:
        order = self.order(tx, changes, guard=guard, arguments=arguments, units=units, hangups=hangups)
        return self._report("apply", order)

    def confirm(self, tx: str) -> Report:
        call = agent_call.confirm(
            agent_program(), tx=tx, run=self.run, counter=self.counter, keep=KEEP, sudo=True, deadline=PATIENCE
        )
        return self._report("confirm", call)

    def revert(self, tx: str) -> Report:
        call = agent_call.revert(
            agent_program(), tx=tx, run=self.run, counter=self.counter, sudo=True, deadline=PATIENCE
        )
        return self._report("revert", call)

    def cleanup(self) -> Report:
        call = agent_call.cleanup(agent_program(), run=self.run, counter=self.counter, sudo=True, deadline=PATIENCE)
        return self._report("cleanup", call)

    def read(self, path: str) -> str | None:
        """A file of the node, read without the agent."""
        file = self.node.root / path.lstrip("/")
        return file.read_text(encoding="utf-8") if file.exists() else None

    def leftovers(self, *, loaded: bool = False) -> list[str]:
        """What exists of rollout outside /var/lib/rollout: files, active units; ``loaded``: also what systemd remembers."""
        found = self.node.exec(
            "find", "/etc", "/run/systemd", "/var/lib/kubelet", "/usr/lib/systemd", "-name", "*rollout*"
        )
        state = () if loaded else ("--state=active,activating,deactivating,reloading,failed",)
        units = self.node.exec("systemctl", "list-units", "--all", "--plain", "--no-legend", *state, "rollout-*")
        return [*found.split("\n")[:-1], *units.split("\n")[:-1]]

    def _report(self, verb: str, command: RemoteCommand) -> Report:
        begin = time.monotonic()
        return parse_report(self.node.name, verb, self.send(command), time.monotonic() - begin)


def eventually(holds: Callable[[], bool]) -> None:
    until(holds, PATIENCE, "the expected condition")


def armed_before_its_guard(
    hand: OnNode,
    name: str,
    changes: dict[str, bytes],
    *,
    units: tuple[str, ...] = KUBELET,
    hangups: tuple[str, ...] = (),
    then: Callable[[str], object] = lambda tx: None,
    undo: Callable[[], object] = lambda: None,
) -> str:
    """The transaction, with a guard that will fire soon, after ``then`` was done to the node. If a machine is too slow for a
    guard of a few seconds, a longer one is tried.
    """
    for guard in GUARDS:
        tx = f"{name}-{hand.counter}-{guard}"
        hand.apply(tx, changes, guard=guard, units=units, hangups=hangups)
        failed: BedError | None = None
        try:
            then(tx)
        except BedError as error:  # its units no longer exist, if the guard has fired before
            failed = error
        found = on_disk(hand.node, tx)
        if (found.get("state"), found.get("finished")) == ("armed", "1"):
            if failed:
                raise failed
            return tx
        undo()
        eventually(lambda tx=tx: _is_over(hand.status(tx)))  # type: ignore[misc]  # the current tx
    raise AssertionError(f"not armed for long enough within {GUARDS[-1]} s")


def _is_over(report: Report) -> bool:
    """Whether the node has answered that it reverted, or that it has no such transaction. A node that has just resumed may not answer yet."""
    return report.outcome is Outcome.DONE and (report.receipt is None or report.receipt.state is ReceiptState.REVERTED)


def on_disk(node: Node, tx: str) -> dict[str, str]:
    """The node's own record, read from outside: the node may be down."""
    path = node.root / "var/lib/rollout/tx" / tx / "receipt"
    text = path.read_text() if path.exists() else ""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def seconds_left(node: Node, tx: str) -> float:
    """Until its guard fires; negative afterwards. (This machine's clock is the node's.)"""
    return int(on_disk(node, tx)["deadline"]) / 1000 - float(Path("/proc/uptime").read_text().split()[0])


def moments(hand: OnNode) -> dict[str, float]:
    """When this boot's systemd first logged that it had started or finished a service."""
    lines = hand.node.exec("journalctl", "-b", "-o", "short-monotonic", "--no-pager", "_PID=1").splitlines()
    found: dict[str, float] = {}
    for line in lines:
        match = re.search(r"\[ *(\d+\.\d+)\].* (?:Started|Finished) (\S+\.service)", line)
        if match:
            found.setdefault(match[2], float(match[1]))
    return found


def kubelets(hand: OnNode) -> int:
    """The number of kubelets that logged their start in this boot."""
    said = hand.node.exec("journalctl", "-b", "-u", "kubelet", "-o", "cat", "--no-pager")
    return said.count("started, pid")


def receipt(hand: OnNode, tx: str) -> Receipt:
    found = hand.status(tx).receipt
    assert found is not None
    return found
