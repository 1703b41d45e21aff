"""Faults of a node's disk: slow, full, read-only. Calls of commands under such a fault are held and decided here.

The same calls reveal the moments of a transaction, so that any fault may strike at one, without changes to the agent.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath

from rollout import known_faults
from rollout.lab import syscalls
from rollout.lab.loop import Loop
from rollout.lab.syscalls import (
    ATTRIBUTES,
    LINK,
    MKDIR,
    OPEN,
    REMOVE,
    RENAME,
    ROOM,
    SYMLINK,
    SYNC,
    WRITE,
    Act,
    HeldCall,
    act,
    fill_in,
    grows,
)

SLOW, FULL, READ_ONLY = "slow-disk", known_faults.FULL_DISK.name, known_faults.READ_ONLY.name
STAGING, RECEIPT, SWITCH, CONFIRM, REVERT = "staging", "receipt", "switch", "confirm", "revert"
MOMENTS = (STAGING, RECEIPT, SWITCH, CONFIRM, REVERT)

_CHANGES = frozenset({OPEN, WRITE, MKDIR, REMOVE, RENAME, LINK, SYMLINK, ATTRIBUTES})
_ELSEWHERE = ("/proc/", "/run/", "/sys/", "/dev/")
"""Not on the disk of a real node."""
_FREE, _AVAILABLE = 24, 32
"""Offset of the free blocks in struct statfs of a 64-bit Linux."""


def check() -> None:
    """``OSError`` if the kernel cannot hold calls: then there are no faults of the disk, and no moments."""
    syscalls.program()
    known = Path("/proc/sys/kernel/seccomp/actions_avail")
    if not known.exists() or "user_notif" not in known.read_text(encoding="ascii").split():
        raise OSError("this kernel has no seccomp user notifications (Linux 5.5 or newer)")


class Disk:
    """One node's disk. ``kind`` is its fault, ``seconds``: the time of each sync and rename of a slow one."""

    def __init__(self, loop: Loop, root: str, reached: Callable[[str], None]) -> None:
        """``reached`` is called at the moments in ``awaited``, before the call that causes them is executed."""
        self._loop, self._root, self._reached = loop, root, reached
        self.kind, self.seconds = "", 0.0
        self.awaited: set[str] = set()
        self._listeners: set[int] = set()

    @property
    def is_watched(self) -> bool:
        """Whether calls of commands that start now are held."""
        return bool(self.kind or self.awaited)

    def adopt(self, pid: int, descriptor: int) -> None:
        """A process with newly held calls."""
        listener = syscalls.take(pid, descriptor)
        self._listeners.add(listener)
        self._loop.watch(listener, partial(self._asked, listener))

    def power_off(self) -> None:
        """All waiting processes are dead: their held calls are not executed."""
        for listener in list(self._listeners):
            self._close(listener)

    def _close(self, listener: int) -> None:
        self._loop.forget(listener)
        self._listeners.discard(listener)
        os.close(listener)

    def _asked(self, listener: int) -> None:
        if syscalls.is_over(listener):
            self._close(listener)
            return
        held = syscalls.receive(listener)
        if held is None:
            return
        failure = act(held, self._root)
        moment = moment_of(failure)
        if moment in self.awaited:
            self._reached(moment)
        if listener in self._listeners:
            self._judge(listener, held, failure)

    def _judge(self, listener: int, held: HeldCall, found: Act) -> None:
        if self.kind == SLOW and found.what in {SYNC, RENAME}:
            self._loop.at(self._loop.now() + self.seconds, partial(self._later, listener, held))
            return
        error = 0
        if self.kind == READ_ONLY:
            error = read_only(found, self._exists)
        elif self.kind == FULL:
            if found.what == ROOM and found.path and self._no_room(listener, held):
                return
            error = full(found, held, self._exists)
        if error:
            syscalls.answer(listener, held, error)
        else:
            syscalls.go_on(listener, held)

    def _later(self, listener: int, held: HeldCall) -> None:
        if listener in self._listeners:
            syscalls.go_on(listener, held)

    def _exists(self, path: str) -> bool:
        return os.path.lexists(self._root + path)

    def _no_room(self, listener: int, held: HeldCall) -> bool:
        """``statfs`` as on a full disk."""
        shown = syscalls.room(self._root)
        shown[_FREE : _FREE + 8] = shown[_AVAILABLE : _AVAILABLE + 8] = struct.pack("=Q", 0)
        with suppress(OSError):
            fill_in(held, held.arguments[1], bytes(shown))
            syscalls.answer(listener, held, 0)
            return True
        return False


def moment_of(found: Act) -> str:
    """The moment of the agent's transaction that a call causes; empty for any other."""
    if not found.path.startswith("/var/lib/rollout/tx/"):
        return ""
    name = PurePosixPath(found.path).name
    if found.what == MKDIR:
        return STAGING if name == "next" else ""
    if found.what != RENAME:
        return ""
    for start, moment in (("armed", RECEIPT), ("new.", SWITCH), ("confirmed", CONFIRM), ("reverting-", REVERT)):
        if name.startswith(start):
            return moment
    return ""


def is_on_disk(path: str) -> bool:
    """Whether a node's path lies on its disk and not in a file system of the kernel's."""
    return bool(path) and not f"{path}/".startswith(_ELSEWHERE)


def read_only(found: Act, exists: Callable[[str], bool]) -> int:
    """The error of a read-only file system for a call; 0: allowed. ENOENT and EEXIST come first, as in the kernel."""
    if found.what not in _CHANGES or not is_on_disk(found.changed):
        return 0
    if not exists(str(PurePosixPath(found.changed).parent)):
        return 0
    if found.what in {MKDIR, SYMLINK, LINK} and exists(found.changed):
        return 0
    return errno.EROFS


def full(found: Act, held: HeldCall, exists: Callable[[str], bool]) -> int:
    """The error of a full disk: names can be created, exchanged, removed; no block is ever free."""
    if not is_on_disk(found.changed):
        return 0
    if found.what == WRITE and grows(held):
        return errno.ENOSPC
    return errno.ENOSPC if found.what == MKDIR and not exists(found.path) else 0
