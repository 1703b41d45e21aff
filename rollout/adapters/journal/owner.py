"""The owner of a lease: one process, identified for ever by its machine, pid and start time."""

from __future__ import annotations

import os
import socket
from pathlib import Path

LEASE_SECONDS = 30.0
"""Seconds since the heartbeat of another machine's lease after which the lease may be taken over."""

_DEAD = frozenset({"Z", "X", "x"})
"""Field 3 of /proc/PID/stat for processes that will never run again."""


def this_process() -> str:
    """``host:boot.pids:pid:start``. Two machines may have the same name; no two share a boot and a process table."""
    return f"{_here()}:{os.getpid()}:{_start_time(os.getpid()) or ''}"


def is_alive(owner: str, silent: float) -> bool:
    """Whether a lease's owner may still act: its process exists on this machine, or its heartbeat is recent."""
    if is_here(owner):
        _, pid, started = owner.rsplit(":", 2)
        if (found := _start_time(int(pid))) is not None:
            return found == started != ""
    return silent <= LEASE_SECONDS


def is_here(owner: str) -> bool:
    """Whether it is a process of this machine, so that its state can be checked."""
    return owner.rsplit(":", 2)[0] == _here()


def machine_of(owner: str) -> str:
    return owner.partition(":")[0]


def process_of(owner: str) -> int | None:
    """The owner's process id on its machine; ``None``: another version recorded none."""
    pid = owner.rpartition(":")[0].rpartition(":")[2]
    return int(pid) if pid.isascii() and pid.isdigit() else None


def _here() -> str:
    """The host, its boot and its process table: a container has its own."""
    boot = _read("/proc/sys/kernel/random/boot_id").strip()
    try:
        processes = str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        processes = ""
    return f"{socket.gethostname()}:{boot}.{processes}"


def _start_time(pid: int) -> str | None:
    """Field 22 of /proc/PID/stat: with the pid it identifies a process for ever.

    Empty when there is no such process, or only a zombie: its parent may never wait for it. ``None``: there is one that
    cannot be looked at, as another user's where /proc is mounted with ``hidepid``.
    """
    stat = _read(f"/proc/{pid}/stat")
    if not stat:
        return None if _exists(pid) else ""
    condition, *fields = stat.rsplit(")", 1)[1].split()
    return "" if condition in _DEAD else fields[18]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
