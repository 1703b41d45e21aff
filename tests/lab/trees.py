"""A node's files in memory, and a host that only records: for tests of the state table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rollout.lab import layouts
from rollout.lab.machine import LabMachine
from rollout.lab.spec import NodeSpec


@dataclass(slots=True)
class MemoryTree:
    """Files by path; each write gets a later stamp."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    _stamps: itertools.count[int] = field(default_factory=itertools.count)

    def write(self, path: str, content: str) -> None:
        self.files[path] = (content.encode(), next(self._stamps))

    def read(self, path: str) -> bytes | None:
        return self.files[path][0] if path in self.files else None

    def names(self, path: str) -> tuple[str, ...]:
        inside = [name[len(path) + 1 :] for name in (*self.files, *self.links) if name.startswith(f"{path}/")]
        return tuple(sorted({name.split("/")[0] for name in inside}))

    def is_folder(self, path: str) -> bool:
        return any(name.startswith(f"{path}/") for name in self.files)

    def stamp(self, path: str) -> int | None:
        return self.files[path][1] if path in self.files else None

    def target(self, path: str) -> str | None:
        return self.links.get(path)


@dataclass(slots=True)
class NotingHost:
    """Records simulated processes and commands to run."""

    processes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    commands: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    layers: set[str] = field(default_factory=set)
    logged: list[tuple[str, str]] = field(default_factory=list)
    _pids: itertools.count[int] = field(default_factory=lambda: itertools.count(100))

    def pid(self) -> int:
        return next(self._pids)

    def appear(self, pid: int, arguments: tuple[str, ...], started: float, port: int, parent: int = 1) -> None:
        self.processes[pid] = arguments

    def vanish(self, pid: int) -> None:
        del self.processes[pid]

    def run(self, unit: str, arguments: tuple[str, ...], variables: Mapping[str, str]) -> None:
        self.commands.append((unit, arguments))

    def log(self, path: str, lines: Iterator[str]) -> None:
        self.logged.extend((path, line) for line in lines)

    def lay(self, path: str) -> None:
        self.layers.add(path)

    def lift(self, path: str) -> None:
        self.layers.discard(path)

    def kill(self, unit: str) -> None:
        self.killed.append(unit)


def kubeadm(
    version: str = "v1.20.15", layout: str = "kubeadm-deb", restart_sec: float = 10, runtime: str = ""
) -> MemoryTree:
    """A node's files as the lab creates them."""
    tree = MemoryTree(links={"/etc/systemd/system/multi-user.target.wants/kubelet.service": "x"})
    labels = {"kubeletVersion": version, "layout": layout, **({"containerRuntime": runtime} if runtime else {})}
    spec = NodeSpec("n1", "n1", "127.64.0.1", labels)
    for path, text in layouts.files(spec, restart_sec).items():
        tree.write(path, text)
    return tree


def running(tree: MemoryTree, host: NotingHost, version: str = "1.20.15") -> LabMachine:
    """A booted node at second 100."""
    machine = LabMachine(version, tree, host)
    machine.booted(100.0)
    return machine
