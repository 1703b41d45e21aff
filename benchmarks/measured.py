"""One command: its wall time, and the CPU of its process and of all processes that it waited for."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds. ``said``: standard output and standard error."""

    wall: float
    cpu: float
    said: str

    def __str__(self) -> str:
        return f"{self.wall:.1f} s, CPU {self.cpu:.1f} s"


@dataclass(frozen=True, slots=True)
class Turns:
    """All turns of each tool on ``nodes`` nodes; how many connections each node saw in its last one; why a tool failed.

    A figure is ``None`` if no turn of the tool succeeded.
    """

    nodes: int
    turns: Mapping[str, Sequence[Measured]]
    connections: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)

    def wall(self, tool: str) -> float | None:
        found = self.turns.get(tool)
        return statistics.median(each.wall for each in found) if found else None

    def cpu(self, tool: str) -> float | None:
        """Milliseconds of the controller's CPU a node."""
        found = self.turns.get(tool)
        return 1000 * statistics.median(each.cpu for each in found) / self.nodes if found else None

    def why(self, *tools: str) -> str:
        """Why figures of these tools are missing or are of fewer rounds."""
        return "; ".join(f"{tool} failed in {self.failures[tool]}"[:200] for tool in tools if tool in self.failures)


class FailedError(Exception):
    """A command failed: its figures say nothing. The message ends with the last line that it printed."""


def measured(words: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Measured:
    """Of one command. Raises ``FailedError``."""
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
    process.returncode = code = os.waitstatus_to_exitcode(status)  # waited for
    if code:
        raise FailedError(f"ended with {code}: {_last_line(said)}")
    return Measured(wall, used.ru_utime + used.ru_stime, said)


def _last_line(said: str) -> str:
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "no output")
