"""A process that has everything of ``rollout`` in memory and forks for each command: an interpreter that is started anew costs 0.3 to 1 s of CPU.

``tests.controllers`` starts one in each process that runs tests, and asks it. A command is a process as real as any: it has its own
process id, folder, environment, arguments, descriptors and, if wanted, its own session, and any signal ends it as it ends others.
What it does not show is how an interpreter starts; tests of that, and some of everything else, start one (``fresh`` in ``tests/story/conftest.py``).

* The server has one thread and stays so: only the thread that forks is there after a fork. It opens no file, socket or journal
  but the socket it is asked on, and a command closes that before it begins.
* Random numbers: CPython seeds ``random`` anew in a forked process, ``secrets`` and ``uuid`` ask the kernel, and OpenSSL seeds
  itself anew after a fork since 1.1.1 (``cryptography`` brings 3.x).
* All commands of a server share its seed for the hashes of strings. Those that are started anew have others.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

MOST = 1 << 20
"""Bytes of a request: arguments and environment. It is one packet, so each process that has the socket may ask."""
DESCRIPTORS = 4
"""Of each request: the command's three streams, and where its process id and its end are told."""
PROGRAMS = ("rollout.cli.__main__", "rollout.lab.confine")
"""Modules that do their work when they are loaded."""
_MANY = 1 << 16
_CLONE_NEWUTS = 0x04000000


def main(descriptor: int) -> None:
    """Load everything, then serve until nobody can ask any more."""
    load()
    assert len(os.listdir("/proc/self/task")) == 1, threading.enumerate()  # noqa: PTH208
    gc.collect()
    gc.freeze()  # what is here stays: a command's collector need not touch, and so copy, these pages
    Server(socket.socket(fileno=descriptor)).serve()


def load() -> None:
    """Every module of ours, and with them all that they need."""
    import rollout

    for found in pkgutil.walk_packages(rollout.__path__, "rollout."):
        if found.name not in PROGRAMS:
            import_module(found.name)
    from rollout.lab import launch

    launch.served = forked_lab  # type: ignore[assignment]
    from tests import shadowed

    shadowed.install()


@dataclass
class Server:
    """Forks, and reports to the caller how each command ended. Commands still at work when no caller is left are killed."""

    asked: socket.socket
    running: dict[int, tuple[int, socket.socket]] = field(default_factory=dict)
    """Descriptor of a process → its id, and where its end is told."""

    def serve(self) -> None:
        poll = select.poll()
        poll.register(self.asked, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor in self.running:
                    poll.unregister(descriptor)
                    self._ended(descriptor)
                elif (request := self._request()) is None:
                    self._leave()
                    return
                else:
                    poll.register(self._begin(*request), select.POLLIN)

    def _request(self) -> tuple[dict[str, Any], list[int]] | None:
        text, descriptors, _, _ = socket.recv_fds(self.asked, MOST, DESCRIPTORS)
        return (json.loads(text), list(descriptors)) if text else None

    def _begin(self, request: dict[str, Any], descriptors: list[int]) -> int:
        tell = socket.socket(fileno=descriptors.pop())
        pid = os.fork()
        if pid == 0:
            self._forget(tell)
            become(request, descriptors)
        for each in descriptors:
            os.close(each)
        descriptor = os.pidfd_open(pid)
        self.running[descriptor] = pid, tell
        with contextlib.suppress(OSError):
            tell.send(str(pid).encode())
        return descriptor

    def _forget(self, tell: socket.socket) -> None:
        """In the command: our descriptors are closed with all others, and their numbers will be its own."""
        for each in (self.asked, tell, *(where for _, where in self.running.values())):
            each.detach()

    def _ended(self, descriptor: int) -> None:
        pid, tell = self.running.pop(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(OSError), tell:
            tell.send(str(os.waitstatus_to_exitcode(status)).encode())

    def _leave(self) -> None:
        for pid, _ in self.running.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def become(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Be the command that is asked for. Does not return."""
    code = 70
    try:
        os.setsid()
        if request["host"]:
            _rename(request["host"])
        _take(streams)
        os.chdir(request["folder"])
        _set_environment(request["environment"])
        code = _run(request["module"], request["words"])
    except BaseException:  # noqa: BLE001 - as an interpreter would say it
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os._exit(code)


def forked_lab(directory: Path, output: io.BufferedWriter) -> ForkedLab:
    """In place of ``launch.served``: the lab's process, forked from the ``rollout lab up`` that was forked."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        request = {"host": "", "folder": str(Path.cwd()), "environment": dict(os.environ)}
        become(
            {**request, "module": "rollout.lab.serve", "words": [str(directory)]},
            [null, output.fileno(), output.fileno()],
        )
    return ForkedLab(pid)


@dataclass
class ForkedLab:
    """As much of a ``Popen`` as ``launch.up`` needs."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _rename(host: str) -> None:
    """A host name that only this process has: ``os.unshare`` is there from Python 3.12 on."""
    import ctypes

    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUTS):
        raise OSError(ctypes.get_errno(), "unshare")
    socket.sethostname(host)


def _take(streams: Sequence[int]) -> None:
    """The three streams, and nothing else that we have open, as in a program that was started."""
    for number, descriptor in enumerate(streams):  # all three are above 2: the server has 0, 1 and 2 open
        os.dup2(descriptor, number)
    os.closerange(3, _MANY)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def _set_environment(wanted: Mapping[str, str]) -> None:
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)


def _run(module: str, words: Sequence[str]) -> int:
    sys.argv = [module, *words]
    warnings.filterwarnings("ignore", ".* found in sys.modules", RuntimeWarning)  # as it is meant to be here
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else int(exc.code is not None)
    return 0


if __name__ == "__main__":
    main(int(sys.argv[1]))
