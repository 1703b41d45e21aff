"""A small lab for tests, and actions of tests on its nodes."""

from __future__ import annotations

import socket
import subprocess
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path

import paramiko
import pytest

from rollout.core.model.plan import Change, FileChange
from rollout.core.model.report import RemoteCommand
from rollout.kubelet.agent.agent_call import ApplyOrder
from rollout.kubelet.agent.agent_lines import answered
from rollout.lab import control, launch
from rollout.lab.spec import LabSpec, NodeSpec, addresses
from tests.controllers import Forked, fork_server, until

KINDS = (
    ("v1.20.15", "dockershim", "kubeadm-deb"),
    ("v1.20.15", "dockershim", "kubeadm-rpm"),
    ("v1.21.14", "dockershim", "plain"),
    ("v1.22.17", "cri-dockerd", "kubeadm-deb"),
    ("v1.23.17", "containerd", "kubeadm-deb"),
    ("v1.23.17", "containerd", "kubeadm-rpm"),
    ("v1.23.17", "containerd", "plain"),
    ("v1.27.3", "containerd", "kubeadm-deb"),
)
RESTART_SEC = 0.5


def spec(count: int = 8, restart_sec: float = RESTART_SEC) -> LabSpec:
    nodes = tuple(
        NodeSpec(f"lab-{number:02d}", f"10.0.0.{number}", address, labels(number - 1))
        for number, address in enumerate(addresses(count), start=1)
    )
    return LabSpec("test", nodes, restart_sec, {"rack1": ("lab-01", "lab-02")})


def labels(number: int) -> dict[str, str]:
    version, runtime, layout = KINDS[number % len(KINDS)]
    return {"kubeletVersion": version, "containerRuntime": runtime, "layout": layout}


@dataclass(slots=True)
class Lab:
    """A running lab and its directory."""

    directory: Path
    spec: LabSpec

    def up(self) -> None:
        """Its process is forked from one that has everything in memory."""

        begun: list[Forked] = []

        def served(directory: Path, output: BufferedWriter) -> Forked:
            begun.append(fork_server().begin("rollout.lab.serve", [str(directory)], Path.cwd(), output, output, None))
            return begun[-1]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(launch, "served", served)
            launch.up(self.spec, self.directory)
        for process in begun:
            process.leave()

    def root(self, node: str) -> Path:
        return self.directory / "nodes" / node

    def ssh(self, node: str, line: str, stdin: bytes = b"", *options: str) -> subprocess.CompletedProcess[bytes]:
        """With the OpenSSH client."""
        command = ["ssh", "-F", str(self.directory / "ssh_config"), *options, node, line]
        return subprocess.run(command, input=stdin, capture_output=True, timeout=300, check=False)

    def verb(self, node: str, command: RemoteCommand) -> list[str]:
        """An agent's verb: the lines of its answer."""
        answer = self.ssh(node, command.line, command.stdin)
        assert answer.returncode == 0, answer
        return answered(answer.stdout).decode().splitlines()

    def fault(self, node: str, kind: str, after: float | None = None, **order: float | str) -> None:
        """``order``: ``lasting``, ``at``, ``add``."""
        control.ask(self.directory, {"op": "fault", "nodes": [node], "kind": kind, "after": after, **order})

    def clear(self, node: str) -> None:
        control.ask(self.directory, {"op": "clear", "nodes": [node]})

    def state(self, node: str) -> str:
        states = control.ask(self.directory, {"op": "status"})["states"]
        assert isinstance(states, dict)
        return next(str(word) for word, names in states.items() if node in names)

    def until_state(self, node: str, state: str) -> None:
        until(lambda: self.state(node) == state, 120, f"{node} is {state}")

    def order(
        self, node: str, path: str, content: bytes, *, tx: str = "t1", guard: int = 120, run: str = "r1"
    ) -> ApplyOrder:
        """Exchange one file and restart the kubelet."""
        target = self.root(node) / path.lstrip("/")
        file = FileChange(path, target.read_bytes() if target.exists() else None, content)
        machine = (self.root(node) / "etc/machine-id").read_text(encoding="ascii").strip()
        unit = "kubelet.service"
        return ApplyOrder(tx, run, 1, machine, guard, 3, unit, Change((file,), (unit,), healthz_port=10248))


def connect(lab: Lab, node: str) -> paramiko.SSHClient:
    """A client that verifies the host's key."""
    found = paramiko.SSHConfig.from_path(str(lab.directory / "ssh_config")).lookup(node)
    client = paramiko.SSHClient()
    client.load_host_keys(found["userknownhostsfile"])
    plug = socket.create_connection((found["hostname"], int(found["port"])), 60)
    plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.connect(
        found["hostname"],
        int(found["port"]),
        found["user"],
        key_filename=found["identityfile"],
        look_for_keys=False,
        allow_agent=False,
        sock=plug,
    )
    return client


@dataclass(slots=True)
class LabSubject:
    """A lab's node as the contract's ``Subject``."""

    lab: Lab
    client: paramiko.SSHClient
    name: str
    version: str
    restart_sec: float = RESTART_SEC

    @property
    def prefix(self) -> str:
        return str(self.lab.root(self.name))

    def run(self, line: str, stdin: bytes = b"") -> tuple[int, str]:
        source, output, _ = self.client.exec_command(line, timeout=300)
        source.write(stdin)
        source.channel.shutdown_write()
        return output.channel.recv_exit_status(), output.read().decode()

    def read(self, path: str) -> bytes | None:
        target = Path(f"{self.prefix}{path}")
        return target.read_bytes() if target.exists() else None

    def write(self, path: str, content: bytes | None) -> None:
        target = Path(f"{self.prefix}{path}")
        if content is None:
            target.unlink(missing_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
