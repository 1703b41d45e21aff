"""The command line as users call it: to its end, or at work in the background while a test does something to it.

A command ``python -m MODULE …`` of this interpreter is forked from a process that has it in memory (``tests.fork_server``);
any other is started. ``anew`` makes one of the other kind of a command.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Protocol

from tests.documents import check_output, only
from tests.fork_server import MOST
from tests.places import ROOT

PATIENCE = 600.0
"""Seconds until a wait is given up. It judges nothing: a machine may be as slow as it likes, and a test that hangs must end."""
_FORKED = (sys.executable, "-m")


@dataclass(frozen=True)
class Done:
    """A finished call of the command line."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err

    def json(self) -> dict[str, Any]:
        """The one document that it printed."""
        return only(self.out)


class Process(Protocol):
    """A command at work: what ``subprocess.Popen`` and ``Forked`` have in common."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def kill(self) -> None: ...


def until(holds: Callable[[], object], seconds: float, what: str) -> None:
    """Wait for it; the seconds are a safety net. What costs much to ask is asked less often: others need the cores."""
    deadline = time.monotonic() + seconds
    asked = time.monotonic()
    while not holds():
        now = time.monotonic()
        assert now < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(min(max(0.02, now - asked), 1.0))
        asked = time.monotonic()


def anew(command: Sequence[str]) -> list[str]:
    """The same command in an interpreter of its own: ``env`` only becomes it."""
    return ["env", *command]


def finished(
    command: Sequence[str],
    folder: Path,
    patience: float = PATIENCE,
    environment: Mapping[str, str] | None = None,
    host: str = "",
) -> Done:
    """It has ended; ``subprocess.TimeoutExpired`` if it does not. Every document that it printed is checked."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = begin(command, folder, out, err, environment, host)
        try:
            code = process.wait(patience)
        finally:
            process.kill()
            process.wait()
        done = Done(code, _all(out), _all(err))
        if code >= 0:  # what is killed may leave half a line
            check_output(command, done.out)
        return done


@contextmanager
def at_work(
    command: Sequence[str], folder: Path, said: Path, environment: Mapping[str, str] | None = None, host: str = ""
) -> Iterator[Process]:
    """A controller in a process group of its own, as a terminal would give it one; what it prints is added to ``said``."""
    with said.open("ab") as log:
        process = begin(command, folder, log, log, environment, host)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def begin(
    command: Sequence[str],
    folder: Path,
    out: IO[bytes],
    err: IO[bytes],
    environment: Mapping[str, str] | None = None,
    host: str = "",
) -> Process:
    """Start it, in a session of its own and with nothing to read; with ``host`` on a machine of this name (as root)."""
    if tuple(command[:2]) == _FORKED:
        return fork_server().begin(command[2], command[3:], folder, out, err, environment, host)
    if host:
        command = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host, *command]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    )


@dataclass
class Forked:
    """A command that the fork server has begun: a process of that server, which tells how it ends."""

    args: Sequence[str]
    pid: int
    _told: socket.socket
    returncode: int | None = None

    def poll(self) -> int | None:
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._told.settimeout(timeout)
            try:
                line = self._told.recv(100)
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
            assert line, "the fork server has ended"
            self.returncode = int(line)
            self._told.close()
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def leave(self) -> None:
        """It goes on, and nobody asks how it ends."""
        self._told.close()


class ForkServer:
    """The asking side. Any thread may ask, and any process that is given ``asks``."""

    def __init__(self) -> None:
        self.asks, served = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.asks.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST)
        with served:
            self._process = subprocess.Popen(
                [*_FORKED, "tests.fork_server", str(served.fileno())],
                cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[served.fileno()], start_new_session=True,
            )  # fmt: skip

    def begin(
        self, module: str, words: Sequence[str], folder: Path, out: IO[bytes], err: IO[bytes],
        environment: Mapping[str, str] | None, host: str = "",
    ) -> Forked:  # fmt: skip
        wanted = {**(os.environ if environment is None else environment)}
        request = {"module": module, "words": [*words], "folder": str(folder), "environment": wanted, "host": host}
        text = json.dumps(request).encode()
        told, tell = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with tell, Path(os.devnull).open("rb") as null:
            socket.send_fds(self.asks, [text], [null.fileno(), out.fileno(), err.fileno(), tell.fileno()])
        pid = told.recv(20)
        return Forked([module, *words], int(pid), told)


@cache
def fork_server() -> ForkServer:
    """One for each process that runs tests, started when it is needed first."""
    return ForkServer()


def _all(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
