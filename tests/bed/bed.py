"""A bed of nodes: a bridge and a subnet of its own, ssh files for the nodes. Everything is removed at the end.

A bed has a number, and holds a lock on it as long as it exists, so concurrent runs get different numbers. The next run
removes what a killed run left behind under a number without a lock.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.bed.image import System, cache, unpack
from tests.bed.node import Layout, Node
from tests.bed.shell import BedError, run

TOOLS = (
    "systemd-nspawn",
    "mmdebstrap",
    "zstd",
    "ip",
    "unshare",
    "nsenter",
    "mount",
    "ssh-keygen",
    "nice",
    "tar",
    "mkfs.ext4",
)
INSTANCES = 7
"""inotify instances of a node. Past the limit of the machine, boots fail without a message."""


def why_not() -> str:
    """Why no bed is possible here; empty if one is."""
    if os.geteuid() != 0:
        return "NOT TESTED on real systemd nodes: needs root (network namespaces, mounts, containers)"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        packages = "systemd-container mmdebstrap zstd iproute2 openssh-client e2fsprogs"
        return f"NOT TESTED on real systemd nodes: {', '.join(missing)} missing (apt-get install {packages})"
    if not Path("/dev/loop-control").exists():
        return "NOT TESTED on real systemd nodes: this machine has no loop devices for their disks"
    return ""


class Bed:
    """Use as a context manager; ``add`` makes nodes."""

    def __init__(self, system: System = System.BOOKWORM) -> None:
        self.system = system
        self.nodes: list[Node] = []
        sweep()
        self._lock, self.number = _take_number()
        self.folder = _folder(self.number)
        self.groups = self.folder / "cgroup"
        self.bridge = _bridge(self.number)

    def __enter__(self) -> Self:
        try:
            unpack(self.folder / "image", self.system)
            self.groups.mkdir()
            run("mount", "-t", "cgroup2", "none", str(self.groups))
            self._group.mkdir()
            run("ip", "link", "add", self.bridge, "type", "bridge")
            run("ip", "addr", "add", f"{self.gateway}/24", "dev", self.bridge)
            run("ip", "link", "set", self.bridge, "up")
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bed", "-f", str(self.user_key))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def gateway(self) -> str:
        """The address of this machine on the bridge."""
        return f"10.77.{self.number}.254"

    @property
    def user_key(self) -> Path:
        return self.folder / "id"

    @property
    def ssh_config(self) -> Path:
        return self.folder / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    def add(self, count: int = 1, *, restart_seconds: int = 1, after: int = 0) -> list[Node]:
        """This many more nodes, booted and reachable; the ssh files contain them by name.

        Every second node of a test is plain; ``after`` is the number of nodes that it has already.
        """
        most = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text()) // INSTANCES - 3
        if len(self.nodes) + count > most:
            raise BedError(f"at most {most} nodes: more need fs.inotify.max_user_instances raised")
        added, first = [], len(self.nodes) + 1
        for number in range(first, first + count):
            node = Node(
                name=f"bed-node-{number}",
                address=f"10.77.{self.number}.{number}",
                folder=self.folder / f"node-{number}",
                image=self.folder / "image",
                cgroup=self._group / f"node-{number}",
                bridge=self.bridge,
                port=f"{self.bridge}n{number}",
                netns=f"{self.bridge}-{number}",
                restart_seconds=restart_seconds,
                layout=Layout.PLAIN if (number - first + after) % 2 else Layout.KUBEADM,
            )
            self.nodes.append(node)
            added.append(node)
            node.create(self.user_key)
            node.boot()
        self._write_ssh_files()
        for node in added:
            node.wait()
        return added

    def renew(self, node: Node) -> None:
        """The same node with a fresh disk, booted and reachable."""
        node.destroy()
        node.create(self.user_key)
        run("ip", "neigh", "flush", "dev", self.bridge)  # it has a new network card
        node.boot()
        self._write_ssh_files()
        node.wait()

    def close(self) -> None:
        for node in self.nodes:
            node.destroy()
        self.nodes.clear()
        _clear(self.number)
        self._lock.close()

    @property
    def _group(self) -> Path:
        return self.groups / self.bridge

    def _write_ssh_files(self) -> None:
        stanzas = "".join(f"Host {node.name}\n  HostName {node.address}\n" for node in self.nodes)
        self.ssh_config.write_text(
            f"{stanzas}Host *\n  User ops\n  IdentityFile {self.user_key}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.known_hosts}\n  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n",
            encoding="utf-8",
        )
        lines = "".join(f"{node.address} {node.host_key()}\n" for node in self.nodes)
        self.known_hosts.write_text(lines, encoding="utf-8")


def sweep() -> None:
    """Remove what beds of killed owners left behind."""
    for folder in cache().glob("bed-*/"):
        number = int(folder.name.removeprefix("bed-"))
        lock = _take(number)
        if lock is not None:
            with lock:
                _clear(number)


def _clear(number: int) -> None:
    """Remove everything under a number; its lock must be held."""
    folder, bridge = _folder(number), _bridge(number)
    for stale in folder.glob("node-*"):
        part = stale.name.removeprefix("node-")
        group = folder / "cgroup" / bridge / stale.name
        Node("", "", stale, stale, group, bridge, f"{bridge}n{part}", f"{bridge}-{part}").destroy()
    with suppress(OSError):
        (folder / "cgroup" / bridge).rmdir()
    run("ip", "link", "del", bridge, check=False)
    for mounted in _mounts_below(folder):
        run("umount", "-l", mounted, check=False)
    if folder.exists():
        shutil.rmtree(folder)


def _folder(number: int) -> Path:
    return cache() / f"bed-{number}"


def _bridge(number: int) -> str:
    return f"rbed{number}"


def _mounts_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    points = [line.split()[1] for line in lines]
    return sorted((point for point in points if point.startswith(f"{folder}/")), reverse=True)


def _take_number() -> tuple[IO[str], int]:
    """A number from 0 to 255 that no bed uses, and the lock on it. Starts at a random one, to spread."""
    for step in range(256):
        number = (os.getpid() + step) % 256
        lock = _take(number)
        if lock is not None:
            return lock, number
    raise BedError("256 beds are in use")


def _take(number: int) -> IO[str] | None:
    lock = (cache() / f"bed-{number}.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock
