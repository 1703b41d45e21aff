"""One command: its wall time, and the CPU of its process and of all processes that it waited for."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds. ``said``: standard output and standard error."""

    wall: float
    cpu: float
    said: str


def measured(words: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Measured:
    """``SystemExit`` with what it printed if it fails: a figure of a failed run says nothing."""
    log = folder / "said"
    began = time.perf_counter()
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(words), cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    said = log.read_text(errors="replace")
    if code := os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{' '.join(words)[:200]} ended with {code}:\n{said[-3000:]}")
    return Measured(wall, used.ru_utime + used.ru_stime, said)
