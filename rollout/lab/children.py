"""Starting commands on a node: real processes in their own session, with the state table on descriptor 7."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rollout.lab.loop import Loop

LINE = 7
"""The descriptor for requests of stand-ins (a shell can name only one digit)."""


def reserve() -> None:
    """Occupy the low descriptors, so that our own never collide with a child's 0 to 9."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 10:
        os.set_inheritable(descriptor, False)  # noqa: FBT003 (its only parameter)
    os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Child:
    """A started command, and our ends of its three streams (-1: none) and of its line to the table."""

    pid: int
    stdin: int
    stdout: int
    stderr: int
    line: socket.socket


def spawn(arguments: tuple[str, ...], environment: Mapping[str, str], *, piped: bool) -> Child:
    """Start a program in its own session; without pipes its streams are /dev/null. ``OSError`` on failure."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # noqa: FBT003
    inner: list[int] = []
    outer: list[int] = []
    for output in (False, True, True) if piped else ():
        read, write = os.pipe()
        inner.append(write if output else read)
        outer.append(read if output else write)
    null = 3 * [os.open(os.devnull, os.O_RDWR)] if not piped else []
    given = inner or null
    wanted = [*given, theirs.fileno()]
    actions = [
        (os.POSIX_SPAWN_DUP2, descriptor, number) for descriptor, number in zip(wanted, (0, 1, 2, LINE), strict=True)
    ]
    try:
        pid = os.posix_spawn(
            arguments[0], arguments, dict(environment), file_actions=actions, setsid=True, setsigdef=[signal.SIGPIPE]
        )
    except OSError:
        for descriptor in outer:
            os.close(descriptor)
        ours.close()
        raise
    finally:
        theirs.close()
        for descriptor in {*inner, *null}:
            os.close(descriptor)
    for descriptor in outer:
        os.set_blocking(descriptor, False)
    stdin, stdout, stderr = outer or (-1, -1, -1)
    return Child(pid, stdin, stdout, stderr, ours)


def on_end(loop: Loop, pid: int, tell: Callable[[int], None]) -> None:
    """Report the exit status (128 + signal for a killed process) at the end of the process."""
    descriptor = os.pidfd_open(pid)

    def ended() -> None:
        loop.forget(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        tell(code if code >= 0 else 128 - code)

    loop.watch(descriptor, ended)


def kill_marked(name: str, prefix: str) -> None:
    """Kill every process with a variable ``name`` that begins with ``prefix`` in its environment, in any session."""
    for _ in range(100):  # a process that is just being forked escapes the first pass
        if not _kill_once(name, prefix):
            return
        time.sleep(0.002)


def _kill_once(name: str, prefix: str) -> bool:
    killed = False
    wanted = f"\0{name}={prefix}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            if wanted in b"\0" + (entry / "environ").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)
                killed = True
    return killed
