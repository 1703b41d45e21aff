"""A held system call in the node's terms: an operation on one of its files."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rollout.lab.syscalls import HeldCall

OPEN, WRITE, MKDIR, REMOVE, RENAME, LINK, SYMLINK = "open", "write", "mkdir", "remove", "rename", "link", "symlink"
ATTRIBUTES, SYNC, ROOM = "attributes", "sync", "room"

_HERE = 0xFFFFFF9C
"""AT_FDCWD."""
_LONGEST = 4096

_Way = tuple[int | None, int]
"""Indices of a path's arguments: (folder descriptor, text); a text of -1: the descriptor's own file."""

_CALLS: Mapping[str, tuple[str, tuple[_Way, ...]]] = {
    "open": (OPEN, ((None, 0),)),
    "creat": (OPEN, ((None, 0),)),
    "openat": (OPEN, ((0, 1),)),
    "mkdir": (MKDIR, ((None, 0),)),
    "mkdirat": (MKDIR, ((0, 1),)),
    **dict.fromkeys(("rmdir", "unlink"), (REMOVE, ((None, 0),))),
    "unlinkat": (REMOVE, ((0, 1),)),
    "rename": (RENAME, ((None, 0), (None, 1))),
    **dict.fromkeys(("renameat", "renameat2"), (RENAME, ((0, 1), (2, 3)))),
    "link": (LINK, ((None, 0), (None, 1))),
    "linkat": (LINK, ((0, 1), (2, 3))),
    "symlink": (SYMLINK, ((None, 1),)),
    "symlinkat": (SYMLINK, ((1, 2),)),
    **dict.fromkeys(("chmod", "chown", "lchown", "truncate"), (ATTRIBUTES, ((None, 0),))),
    **dict.fromkeys(("fchmodat", "fchownat", "utimensat"), (ATTRIBUTES, ((0, 1),))),
    **dict.fromkeys(("fchmod", "fchown", "ftruncate"), (ATTRIBUTES, ((0, -1),))),
    **dict.fromkeys(("write", "pwrite64", "writev", "sendfile", "fallocate"), (WRITE, ((0, -1),))),
    "copy_file_range": (WRITE, ((2, -1),)),
    **dict.fromkeys(("fsync", "fdatasync", "syncfs"), (SYNC, ((0, -1),))),
    "sync": (SYNC, ()),
    "statfs": (ROOM, ((None, 0),)),
}


@dataclass(frozen=True, slots=True)
class Act:
    """One operation on a node's disk. Paths are the node's; ``""``: not on its disk. ``target``: a new name."""

    what: str
    path: str = ""
    target: str = ""

    @property
    def changed(self) -> str:
        """The name that would change."""
        return self.target if self.what == LINK else self.path


def act(held: HeldCall, root: str) -> Act:
    """The operation of a call. If the call was withdrawn meanwhile, its paths are empty."""
    what, ways = _CALLS.get(held.name, ("", ()))
    paths = [_inside(_path(held, way), root) for way in ways]
    return Act(what, *paths)


def grows(held: HeldCall) -> bool:
    """Whether a write extends its file."""
    try:
        descriptor = held.arguments[2 if held.name == "copy_file_range" else 0]
        found = os.stat(f"/proc/{held.pid}/fd/{descriptor}")  # noqa: PTH116 (a link of the kernel's)
        if not stat.S_ISREG(found.st_mode):
            return False
        end = _position(held.pid, descriptor, found.st_size) + held.arguments[2]
    except OSError:
        return False
    return held.name not in {"write", "pwrite64"} or end > found.st_blocks * 512


def fill_in(held: HeldCall, at: int, data: bytes) -> None:
    """Write into the memory of the waiting process."""
    with Path(f"/proc/{held.pid}/mem").open("r+b", buffering=0) as memory:
        memory.seek(at)
        memory.write(data)


def _position(pid: int, descriptor: int, size: int) -> int:
    shown = Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text(encoding="ascii")
    fields = dict(line.split(":\t", 1) for line in shown.splitlines()[:2])
    return size if int(fields["flags"], 8) & os.O_APPEND else int(fields["pos"])


def _path(held: HeldCall, way: _Way) -> str:
    folder, text = way
    try:
        if text == -1:
            return os.readlink(f"/proc/{held.pid}/fd/{held.arguments[folder or 0]}")  # noqa: PTH115
        words = _text(held.pid, held.arguments[text])
        if words.startswith("/"):
            return words
        descriptor = _HERE if folder is None else held.arguments[folder] & 0xFFFFFFFF
        link = "cwd" if descriptor == _HERE else f"fd/{descriptor}"
        return os.path.join(os.readlink(f"/proc/{held.pid}/{link}"), words)  # noqa: PTH115, PTH118
    except OSError:
        return ""


def _text(pid: int, address: int) -> str:
    if address == 0:
        return ""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        room = 4096 - address % 4096  # not past a page: the next one may not be mapped
        data = memory.read(room)
        if b"\0" not in data:
            data += memory.read(_LONGEST)
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _inside(path: str, root: str) -> str:
    plain = os.path.normpath(path) if path else ""
    return plain[len(root) :] if plain.startswith(f"{root}/") else "/" if plain == root else ""
