"""What a kill has left of a node, as one value.

All that an agent, a stand-in or a check can find there is in it: every path with its kind, mode, owner, bytes and hard links. So
what is done to nodes with the same value has the same end, and one of them is enough. Four things are written by what they mean:

* the folder of the node, which is another one for each kill;
* the lock's holder, a process that is dead: its number and its start are found nowhere;
* inodes and times in the agent's notes of its files: whether they are those of the file now, and which of them are equal. The times
  are ordered by nobody but a snapshot, and no check makes one;
* the hundredths of the node's clock: they are the naps of processes that waited for this machine, and the same kill has others again.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from tests.agent.node import Node

NOTES = ("times", "touched", "touched.new")


def left(node: Node) -> str:
    """The same for two nodes that differ in nothing else. The number of a holder that lives stays."""
    found = hashlib.sha256()
    first: dict[int, str] = {}
    others: dict[str, str] = {}
    for path in sorted(node.root.rglob("*")):
        name, info = str(path.relative_to(node.root)), path.lstat()
        content = b""
        if stat.S_ISLNK(info.st_mode):
            content = os.fsencode(path.readlink())
        elif stat.S_ISREG(info.st_mode):
            content = path.read_bytes()
        if path.name == "holder":
            content = b"dead" if _is_dead(content) else content
        elif path.name in NOTES:
            content = _meaning(content.decode(), others).encode()
        elif name == "proc/uptime" and not path.is_symlink():
            content = content.split(b".")[0]
        linked = first.setdefault(info.st_ino, name)
        content = content.replace(os.fsencode(node.root), b"/ROOT")
        found.update(
            f"{name}\0{info.st_mode}\0{info.st_uid}:{info.st_gid}\0{linked}\0{len(content)}\0".encode() + content
        )
    return found.hexdigest()


def _is_dead(holder: bytes) -> bool:
    pid, _, start = holder.decode().strip().partition(" ")
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19] != start
    except OSError:
        return True


def _meaning(notes: str, others: dict[str, str]) -> str:
    """Lines of three numbers and a path."""
    said = []
    for line in notes.splitlines():
        *numbers, path = line.split(" ", 3)
        own = _own(Path(path))
        said.append(
            " ".join(
                [own.get(number) or others.setdefault(number, f"other {len(others)}") for number in numbers] + [path]
            )
        )
    return "\n".join(said)


def _own(path: Path) -> dict[str, str]:
    """The numbers of the file, as stat(1) writes them."""
    if not path.exists():
        return {}
    info = path.stat()
    times = {
        f"{time // 10**9}.{time % 10**9:09}": what
        for what, time in (("mtime", info.st_mtime_ns), ("ctime", info.st_ctime_ns))
    }
    return {str(info.st_ino): "inode", "0": "0", **times}
