"""Creating a node's file tree on disk, and reading it like the node's own systemd and kubelet.

Only the programs in /usr/bin are shared between nodes (hard links, mode 0555). Every file that a rollout or a person
may edit in place belongs to one node: a write to one node never shows up on another.
"""

from __future__ import annotations

import os
import secrets
import stat
import uuid
from collections.abc import Iterable
from pathlib import Path

from rollout.lab import embedded, layouts, runtimes
from rollout.lab.spec import LabSpec, NodeSpec

_FOLDERS = (
    *("etc/kubernetes/manifests", "etc/default", "etc/sysconfig", "etc/systemd/system/multi-user.target.wants"),
    *(
        "proc/sys/kernel/random",
        "run/systemd/system",
        "run/systemd/units",
        "tmp",
        "root",
        "usr/bin",
        "usr/lib/systemd/system",
    ),
    *("run/systemd/transient", "var/lib/kubelet", "var/log"),
)
_LINKS = (
    ("proc/uptime", "/proc/uptime"),
    ("run/systemd/units/invocation:systemd-logind.service", "0" * 32),
    ("bin", "usr/bin"),
    ("lib", "usr/lib"),
)


class DiskTree:
    """A node's files; every path is the node's own."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def read(self, path: str) -> bytes | None:
        try:
            descriptor = os.open(self.root + path, os.O_RDONLY)
        except OSError:
            return None
        try:
            return os.read(descriptor, 1 << 20)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def names(self, path: str) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(self.root + path)))  # noqa: PTH208 (2,000 nodes: Path costs 5 times as much)
        except OSError:
            return ()

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(self.root + path)  # noqa: PTH112 (as above)

    def stamp(self, path: str) -> int | None:
        try:
            return os.stat(self.root + path).st_mtime_ns // 1000  # noqa: PTH116 (as above)
        except OSError:
            return None

    def target(self, path: str) -> str | None:
        try:
            return os.readlink(self.root + path)  # noqa: PTH115 (as above)
        except OSError:
            return None


def build(spec: LabSpec, directory: Path) -> None:
    """Write every node's tree under ``directory/nodes``; 2,000 take a few seconds."""
    made: set[str] = set()
    for node in spec.nodes:
        root = directory / "nodes" / node.name
        _build_node(node, str(root), spec.restart_sec)
        printed = layouts.programs(node)
        pulling = runtimes.pull_tools(node.runtime)
        for name in dict.fromkeys((*printed, *pulling)):
            text = _program(name, printed.get(name, ""), pulls=name in pulling)
            shared = directory / "share" / f"{name}-{abs(hash(text)):x}"
            if str(shared) not in made:
                shared.parent.mkdir(exist_ok=True)
                shared.write_text(text, encoding="utf-8")
                shared.chmod(0o555)
                made.add(str(shared))
            os.link(shared, root / "usr/bin" / name)


def _build_node(node: NodeSpec, root: str, restart_sec: float) -> None:
    _folders(root, _FOLDERS)
    for path, target in _LINKS:
        os.symlink(target, f"{root}/{path}")  # noqa: PTH211 (speed, as above)
    unit = embedded.UNIT if node.layout == layouts.RKE2 else "kubelet.service"
    os.symlink(f"/usr/lib/systemd/system/{unit}", f"{root}/etc/systemd/system/multi-user.target.wants/{unit}")  # noqa: PTH211
    _folders(root, [folder.strip("/") for folder in layouts.folders(node)])
    for path, text in layouts.files(node, restart_sec).items():
        folder = path.rpartition("/")[0]
        _folders(root, (folder.strip("/"),))
        _write(root + path, text, 0o600 if path.endswith("kubelet.conf") else 0o644)
    table = ["Num       RefCount Protocol Flags    Type St Inode Path\n"]
    for number, path in enumerate(layouts.sockets(node), start=1):
        _folders(root, (path.rpartition("/")[0].strip("/"),))
        os.mknod(root + path, stat.S_IFSOCK | 0o600)
        table.append(f"0000000000000000: 00000002 00000000 00010000 0001 01 {number} {path}\n")
    _folders(root, ("proc/net", "dev"))
    _write(f"{root}/proc/net/unix", "".join(table))
    _write(f"{root}/etc/hostname", f"{node.name}\n")
    _write(f"{root}/etc/machine-id", f"{secrets.token_hex(16)}\n", 0o444)
    new_boot_id(root)


def new_boot_id(root: str) -> None:
    """The changes of a boot."""
    path = f"{root}/proc/sys/kernel/random/boot_id"
    _write(f"{path}.new", f"{uuid.uuid4()}\n")
    Path(f"{path}.new").rename(path)


def _folders(root: str, folders: Iterable[str]) -> None:
    for folder in folders:
        try:
            os.mkdir(f"{root}/{folder}")  # noqa: PTH102 (speed, as above)
        except FileExistsError:
            continue
        except FileNotFoundError:
            os.makedirs(f"{root}/{folder}")  # noqa: PTH103 (speed, as above)


def _write(path: str, text: str, mode: int = 0o644) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _program(name: str, version: str, *, pulls: bool) -> str:
    """A stand-in that prints its version, or pulls."""
    if not pulls:
        return f"#!/bin/sh\necho '{version}'\n"
    return f'#!/bin/sh\n[ "$1" != --version ] || exec echo \'{version}\'\nexec pull-tool {name} "$@"\n'
