"""The kernel's side of a node's disk: which system calls are held until the lab decides, and how the lab answers.

It uses seccomp's user notifications (Linux 5.5 or newer, no rights needed). A held call waits in the kernel. Its answer
is an error number, a result, or "continue". Numbers are those of x86_64 and aarch64; other machines have no disk faults.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import stat
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X86 = """
write=1 open=2 pwrite64=18 writev=20 sendfile=40 fsync=74 fdatasync=75 truncate=76 ftruncate=77 rename=82 mkdir=83
rmdir=84 creat=85 link=86 unlink=87 symlink=88 chmod=90 fchmod=91 chown=92 fchown=93 lchown=94 statfs=137 sync=162
utimensat=280 openat=257 mkdirat=258 fchownat=260 unlinkat=263 renameat=264 linkat=265 symlinkat=266 fchmodat=268
fallocate=285 syncfs=306 renameat2=316 copy_file_range=326
"""
_ARM = """
mkdirat=34 unlinkat=35 symlinkat=36 linkat=37 renameat=38 statfs=43 truncate=45 ftruncate=46 fallocate=47 fchmod=52
fchmodat=53 fchownat=54 fchown=55 openat=56 write=64 writev=66 pwrite64=68 sendfile=71 sync=81 fsync=82 fdatasync=83
utimensat=88 syncfs=267 renameat2=276 copy_file_range=285
"""
_NUMBERS: Mapping[str, Mapping[str, int]] = {
    machine: {name: int(number) for name, _, number in (word.partition("=") for word in text.split())}
    for machine, text in (("x86_64", _X86), ("aarch64", _ARM))
}
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_GETFD = 438
_GO_ON = 1

NAMES: Mapping[int, str] = {number: name for name, number in _NUMBERS.get(os.uname().machine, {}).items()}


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A held call: its name, its process, and its arguments as numbers."""

    number: int
    pid: int
    name: str
    arguments: tuple[int, ...]


def program() -> str:
    """The filter for ``confine.py``: calls that change files, sync or allocate space are held, all others run."""
    machine = os.uname().machine
    if machine not in _NUMBERS:
        raise OSError(f"faults of the disk are for x86_64 and aarch64, not {machine}")
    numbers = _NUMBERS[machine]
    code = [_load(4), _jump(_ARCHITECTURE[machine], 1, 0), _allow(), _load(0)]
    for name, flags in (("open", 24), ("openat", 32)):
        if name in numbers:  # opening for reading is not held
            code += [_jump(numbers[name], 0, 4), _load(flags), _instruction(0x45, 0, 1, _WRITING), _hold(), _allow()]
    for name, number in numbers.items():
        if name not in {"open", "openat"}:
            code += [_jump(number, 0, 1), _hold()]
    return b"".join([*code, _allow()]).hex()


def command(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """A command line with held calls."""
    return (sys.executable, "-I", "-S", str(Path(__file__).with_name("confine.py")), program(), *arguments)


def take(pid: int, descriptor: int) -> int:
    """A copy of another process's descriptor."""
    with_pid = os.pidfd_open(pid)
    try:
        taken = _libc.syscall(_GETFD, with_pid, descriptor, 0)
    finally:
        os.close(with_pid)
    if taken < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
    return int(taken)


def is_over(listener: int) -> bool:
    """Whether no process with held calls is left."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    return any(what & select.POLLHUP for _, what in poll.poll(0))


def receive(listener: int) -> HeldCall | None:
    """The next held call; ``None`` if it was withdrawn (its process has ended)."""
    data = bytearray(80)
    try:
        fcntl.ioctl(listener, _RECEIVE, data)
    except OSError:
        return None
    number, pid, _, call, _, _, *arguments = struct.unpack("=QIIiIQ6Q", data)
    return HeldCall(number, pid, NAMES.get(call, "?"), tuple(arguments))


def go_on(listener: int, held: HeldCall) -> None:
    """Let the kernel execute it."""
    _send(listener, struct.pack("=QqiI", held.number, 0, 0, _GO_ON))


def answer(listener: int, held: HeldCall, error: int) -> None:
    """Skip the call: return an ``errno``, or 0 for success."""
    _send(listener, struct.pack("=QqiI", held.number, 0, -error, 0))


def _send(listener: int, data: bytes) -> None:
    with suppress(OSError):  # its process has ended
        fcntl.ioctl(listener, _SEND, data)


def _instruction(code: int, yes: int, no: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _load(offset: int) -> bytes:
    return _instruction(0x20, 0, 0, offset)


def _jump(value: int, yes: int, no: int) -> bytes:
    return _instruction(0x15, yes, no, value)


def _allow() -> bytes:
    return _instruction(0x06, 0, 0, 0x7FFF0000)


def _hold() -> bytes:
    return _instruction(0x06, 0, 0, 0x7FC00000)


_libc = ctypes.CDLL(None, use_errno=True)


def room(path: str) -> bytearray:
    """``struct statfs`` of a file system."""
    shown = ctypes.create_string_buffer(120)
    if _libc.statfs(path.encode(), shown):
        raise OSError(ctypes.get_errno(), "statfs")
    return bytearray(shown.raw)


# A held system call in the node's terms: an operation on one of its files.


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
        status = os.stat(f"/proc/{held.pid}/fd/{descriptor}")  # noqa: PTH116 (a link of the kernel's)
        if not stat.S_ISREG(status.st_mode):
            return False
        end = _position(held.pid, descriptor, status.st_size) + held.arguments[2]
    except OSError:
        return False
    return held.name not in {"write", "pwrite64"} or end > status.st_blocks * 512


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
