"""The agent ends while its node stays up: it is killed, or the kernel has no memory left for it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rollout.core.run.state import NodeRecord
from tests.bed.node import Node
from tests.bed.shell import BedError
from tests.chaos.fault import Fault
from tests.chaos.instants import LOOK_EVERY

MEMORY = Path("/sys/fs/cgroup/memory")
"""The kernel's memory controller, version 1: there a process can get a limit without systemd's knowledge."""
PIDS = Path("/sys/fs/cgroup/pids")
"""The same for the number of processes."""
KIB = 200
"""Less memory than a process needs to start another one."""


class KillAgent(Fault):
    """``kill -9`` of the processes of a verb on the node. Its sshd, its systemd and its guard stay alive."""

    def strike(self) -> None:
        for node in self.nodes:
            for pid in self._chosen(at_work(self, node)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _chosen(self, found: Mapping[int, str]) -> list[int]:
        """The processes that the variant kills, of PID → role."""
        wanted = {
            "its shell": "shell",
            "what it started": "child",
            "its guard": "guard",
            "the elevated shell": "conversation",
        }.get(self.draw.variant)
        return [pid for pid, role in found.items() if wanted in (None, role)]


class OutOfMemory(Fault):
    """The processes of a verb get no more memory, and the kernel's OOM killer chooses among them."""

    def strike(self) -> None:
        for number, node in enumerate(self.nodes):
            group = self._group(number)
            group.mkdir(exist_ok=True)
            (group / "memory.limit_in_bytes").write_text(str(KIB * 1024))
            for pid, role in at_work(self, node).items():
                if role != "guard" or self.draw.variant == "the guard too":
                    with suppress(OSError):  # it has just ended
                        (group / "cgroup.procs").write_text(str(pid))

    def heal(self) -> None:
        for number, _ in enumerate(self.nodes):
            group = self._group(number)
            if not group.exists():
                continue
            (group / "memory.limit_in_bytes").write_text("-1")
            while members := (group / "cgroup.procs").read_text().split():
                for pid in members:
                    with suppress(OSError):
                        (MEMORY / "cgroup.procs").write_text(pid)
            group.rmdir()

    def _group(self, number: int) -> Path:
        if not (MEMORY / "memory.limit_in_bytes").exists():
            raise BedError(f"this machine has no memory controller at {MEMORY}")
        return MEMORY / f"{self.site.bed.bridge}-{number}"


class NoProcess(Fault):
    """Every fork on the node answers EAGAIN. What could not be started shows nothing of files or of the disk."""

    untrue = frozenset(
        {
            "not-durable",
            "drifted",
            "foreign-bytes",
            "not-as-ordered",
            "torn-program",
            "no-room",
            "read-only",
            "kubelet-changed",
        }
    )

    def strike(self) -> None:
        for number, node in enumerate(self.nodes):
            group = self._group(number)
            group.mkdir(exist_ok=True)
            for _ in range(2):  # a process that starts meanwhile is in its parent's group
                for procs in node.cgroup.rglob("cgroup.procs"):
                    for pid in procs.read_text().split():
                        with suppress(OSError):  # it has just ended
                            (group / "cgroup.procs").write_text(pid)
            (group / "pids.max").write_text((group / "pids.current").read_text())

    def heal(self) -> None:
        for number, _ in enumerate(self.nodes):
            group = self._group(number)
            if not group.exists():
                continue
            (group / "pids.max").write_text("max")
            while members := (group / "cgroup.procs").read_text().split():
                for pid in members:
                    with suppress(OSError):
                        (PIDS / "cgroup.procs").write_text(pid)
            group.rmdir()

    def unexplained(self, record: NodeRecord) -> str:
        if record.reference not in self.untrue:
            return ""
        return f"{record.state} [{record.reference}], though nothing was wrong but the number of processes: {record.message}"

    def _group(self, number: int) -> Path:
        if not PIDS.is_dir():
            raise BedError(f"this machine has no controller of processes at {PIDS}")
        return PIDS / f"{self.site.bed.bridge}-{number}"


def at_work(fault: Fault, node: Node) -> Mapping[int, str]:
    """The node's agent processes as soon as a verb or a guard runs, by PID; none if the run ends before."""
    while (
        not {"shell", "guard"} & {*(found := dict(agents(node))).values()}
        and fault.controller
        and fault.controller.poll() is None
    ):
        time.sleep(LOOK_EVERY)
    return found


def agents(node: Node) -> Iterator[tuple[int, str]]:
    """The node's agent processes by this machine's PIDs, with their roles: guard, sudo, conversation, shell of a verb, child."""
    for procs in node.cgroup.rglob("cgroup.procs"):
        yield from _agents([int(pid) for pid in procs.read_text().split()])


def _agents(pids: Iterable[int]) -> Iterator[tuple[int, str]]:
    """A process without a role that an agent process started is a child, or a guard if its parent is one.

    A verb has the command line of the conversation that started it.
    """
    roles: dict[int, str] = {}
    for pid in sorted(pids):  # a process is younger than its parent
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            role = _role(words)
            if role == "conversation" and roles.get(parent) in ("conversation", "shell"):
                role = "shell"
            role = role or {"guard": "guard", "shell": "child", "child": "child"}.get(roles.get(parent, ""), "")
            if role:
                roles[pid] = role
                yield pid, role


def _role(words: Sequence[str]) -> str:
    if words[0] == "sudo":
        return "sudo"
    if words[1:2] and words[1].startswith("/var/lib/rollout/tx/"):
        return "guard"
    return "conversation" if "rollout" in words else ""
