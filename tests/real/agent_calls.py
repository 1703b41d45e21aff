"""The agent's verbs on a real node over SSH, as the controller calls them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files

from rollout.adapters.ssh import SshNodes
from rollout.app.ports import Target
from rollout.core.model.remote import RemoteAnswer, RemoteCommand
from rollout.core.model.report import Report
from rollout.core.model.snapshot import Receipt, Snapshot
from rollout.kubelet.agent import agent_call
from rollout.kubelet.agent.agent_answer import parse_report, parse_snapshot
from tests.bed.node import Node

CONFIG_PATH = "/var/lib/kubelet/config.yaml"
FLAGS_PATH = "/var/lib/kubelet/kubeadm-flags.env"
DROP_IN = "/etc/systemd/system/kubelet.service.d/90-rollout.conf"
DAEMON_PATH = "/etc/docker/daemon.json"
KEEP = 3
KUBELET = ("kubelet.service",)


def program() -> str:
    return files("rollout.agent").joinpath("agent.sh").read_text(encoding="utf-8")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(slots=True)
class OnNode:
    """One run's hand on one node."""

    ssh: SshNodes
    node: Node
    run: str
    counter: int

    @property
    def target(self) -> Target:
        return Target(name=self.node.name, address=self.node.name)

    def send(self, command: RemoteCommand) -> RemoteAnswer:
        return self.ssh.run(self.target, command)

    def snapshot(self) -> Snapshot:
        answer = self.send(
            agent_call.snapshot(program(), unit="kubelet.service", sudo=True, deadline=30, healthz_port=10248)
        )
        snapshot = parse_snapshot(self.node.name, answer)
        assert isinstance(snapshot, Snapshot), (snapshot, answer)
        return snapshot

    def claim(self) -> Report:
        claim = agent_call.Claim(self.counter, self.run, force=True)
        return self._report("status", agent_call.status(program(), claim=claim, sudo=True, deadline=30))

    def status(self, tx: str) -> Report:
        return self._report("status", agent_call.status(program(), tx=tx, sudo=True, deadline=30))

    def order(
        self,
        tx: str,
        changes: dict[str, bytes],
        *,
        guard: int = 60,
        arguments: tuple[str, ...] = (),
        units: tuple[str, ...] = KUBELET,
        hangups: tuple[str, ...] = (),
    ) -> RemoteCommand:
        """The command that applies new bytes to files as they are now."""
        found = self.snapshot()
        orders = tuple(
            agent_call.FileOrder(
                path=path,
                before=found.files[path].digest if found.files[path].kind == "regular" else "",
                after=digest(content),
                mode="644",
                content=content,
            )
            for path, content in changes.items()
        )
        order = agent_call.ApplyOrder(
            tx=tx,
            run=self.run,
            counter=self.counter,
            machine_id=found.machine_id,
            guard=guard,
            keep=KEEP,
            unit="kubelet.service",
            healthz_port=10248,
            files=orders,
            units=units,
            arguments=arguments,
            hangups=hangups,
        )
        return agent_call.apply(program(), order, sudo=True, deadline=guard)

    def apply(
        self,
        tx: str,
        changes: dict[str, bytes],
        *,
        guard: int = 60,
        arguments: tuple[str, ...] = (),
        units: tuple[str, ...] = KUBELET,
        hangups: tuple[str, ...] = (),
    ) -> Report:
        order = self.order(tx, changes, guard=guard, arguments=arguments, units=units, hangups=hangups)
        return self._report("apply", order)

    def confirm(self, tx: str) -> Report:
        call = agent_call.confirm(
            program(), tx=tx, run=self.run, counter=self.counter, keep=KEEP, sudo=True, deadline=30
        )
        return self._report("confirm", call)

    def revert(self, tx: str) -> Report:
        call = agent_call.revert(program(), tx=tx, run=self.run, counter=self.counter, sudo=True, deadline=60)
        return self._report("revert", call)

    def cleanup(self) -> Report:
        call = agent_call.cleanup(program(), run=self.run, counter=self.counter, sudo=True, deadline=30)
        return self._report("cleanup", call)

    def read(self, path: str) -> str | None:
        """A file of the node as it is, not through the agent."""
        file = self.node.root / path.lstrip("/")
        return file.read_text(encoding="utf-8") if file.exists() else None

    def leftovers(self, *, loaded: bool = False) -> list[str]:
        """What exists of ours outside /var/lib/rollout: files, units at work; ``loaded``: also what systemd remembers."""
        found = self.node.exec(
            "find", "/etc", "/run/systemd", "/var/lib/kubelet", "/usr/lib/systemd", "-name", "*rollout*"
        )
        state = () if loaded else ("--state=active,activating,deactivating,reloading,failed",)
        units = self.node.exec("systemctl", "list-units", "--all", "--plain", "--no-legend", *state, "rollout-*")
        return [*found.split("\n")[:-1], *units.split("\n")[:-1]]

    def _report(self, verb: str, command: RemoteCommand) -> Report:
        begin = time.monotonic()
        return parse_report(self.node.name, verb, self.send(command), time.monotonic() - begin)


def eventually(what: Callable[[], bool], seconds: float) -> float:
    begin = time.monotonic()
    while not what():
        assert time.monotonic() - begin < seconds, "did not happen in time"
        time.sleep(0.1)
    return time.monotonic() - begin


def kubelets(hand: OnNode) -> int:
    """How many kubelets have said in this boot that they began."""
    said = hand.node.exec("journalctl", "-b", "-u", "kubelet", "-o", "cat", "--no-pager")
    return said.count("started, pid")


def receipt(hand: OnNode, tx: str) -> Receipt:
    found = hand.status(tx).receipt
    assert found is not None
    return found
