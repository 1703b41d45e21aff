"""The command line as users call it: to its end, or at work in the background while a test does something to it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Done:
    """A finished call of the command line."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err

    def json(self) -> Any:
        return json.loads(self.out)


def until(holds: Callable[[], object], seconds: float, what: str) -> None:
    """Wait for it, with a deadline. What costs much to ask is asked less often: others need the cores."""
    deadline = time.monotonic() + seconds
    asked = time.monotonic()
    while not holds():
        now = time.monotonic()
        assert now < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(min(max(0.02, now - asked), 1.0))
        asked = time.monotonic()


def finished(
    command: Sequence[str], folder: Path, patience: float, environment: Mapping[str, str] | None = None
) -> Done:
    """It has ended within ``patience`` seconds."""
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=patience, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


@contextmanager
def at_work(
    command: Sequence[str], folder: Path, said: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A controller in a process group of its own, as a terminal would give it one; what it prints is added to ``said``."""
    with said.open("a") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, text=True, start_new_session=True
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
