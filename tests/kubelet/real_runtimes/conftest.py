"""Real runtimes from ``make test-runtimes``; without them each file of these tests is skipped with that reason."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.controllers import PATIENCE

BINARIES = Path(os.environ.get("ROLLOUT_RUNTIMES", Path.home() / ".cache/rollout-tests"))
SERIES = ("bookworm", "trixie", "forky")


@dataclass(frozen=True, slots=True)
class Program:
    """A runtime's program and the version it prints (``1.7.24``)."""

    path: Path
    version: str

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(self.path), *words], capture_output=True, text=True, timeout=PATIENCE, check=False)


def need(name: str) -> None:
    """At the head of a test file: skips the whole file if the program is missing."""
    if not any((BINARIES / f"{name}-{series}").exists() for series in SERIES):
        pytest.skip(f"there is no {name} in {BINARIES}: `make test-runtimes` fetches it", allow_module_level=True)


def program(name: str, series: str) -> Program:
    path = BINARIES / f"{name}-{series}"
    if not path.exists():
        pytest.skip(f"there is no {path}: `make test-runtimes` fetches it")
    printed = subprocess.run(
        [str(path), "--version"], capture_output=True, text=True, timeout=PATIENCE, check=True
    ).stdout
    found = re.search(r"\d+\.\d+\.\d+", printed)
    assert found, printed
    return Program(path, found[0])


@pytest.fixture(params=SERIES)
def containerd(request: pytest.FixtureRequest) -> Program:
    return program("containerd", request.param)


@pytest.fixture(params=SERIES)
def dockerd(request: pytest.FixtureRequest) -> Program:
    return program("dockerd", request.param)
