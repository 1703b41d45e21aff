"""A wave's command gate on the controller: no shell, limited time, only the end of the output is kept."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from rollout.app.ports import Ran

MOST_KEPT = 4096
"""How many of the last bytes of output are kept, both streams in the order of arrival."""

CHUNK = 65536
REST_OF_OUTPUT = 0.5
"""Seconds to read the rest of the pipe after the command ended; a leftover child may hold it open for ever."""


def why_not_run(program: str, folder: Path = Path()) -> str:
    """Why this program (a path relative to ``folder``, or a name in ``PATH``) cannot be run here; ``""`` if it can."""
    path = str(folder / program) if "/" in program else program
    if shutil.which(path) is not None:
        return ""
    if "/" not in program:
        return "program not found in PATH"
    return "not an executable file" if os.path.lexists(path) else "no such file"


class LocalCommands:
    """Thread-safe. After the timeout the command is killed with every process of its session.

    ``folder``: where commands run.
    """

    def __init__(self, folder: Path = Path()) -> None:
        self._folder = folder

    def run(self, command: tuple[str, ...], environment: Mapping[str, str], timeout: float) -> Ran:
        try:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C at our terminal must not reach it
            )
        except OSError as error:
            return Ran(None, why=f"could not be run: {error.strerror}")
        tail = _Tail(process.stdout)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Ran(None, tail.text(), f"did not end in {timeout:g} s")
        return Ran(status, tail.text())


class _Tail:
    """Reads a pipe to its end on its own thread and keeps the tail, so that no writer blocks."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        self._kept = b""
        self._pipe = pipe
        self._thread = threading.Thread(target=self._read, name="command gate", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        if self._pipe is None:
            return
        with suppress(OSError, ValueError), self._pipe as pipe:
            while chunk := os.read(pipe.fileno(), CHUNK):
                self._kept = (self._kept + chunk)[-MOST_KEPT:]

    def text(self) -> str:
        self._thread.join(REST_OF_OUTPUT)
        return self._kept.decode("utf-8", "replace")
