"""A mutant: the program without one of the lines that keep nodes safe. It is made in a copy of the project, never in the project."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.places import ROOT

MOST_SECONDS = 1200
PATIENCE = "120"
"""Seconds that a chaos test waits for what a mutant never does. Without a mutant it must pass with the same patience."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """``old`` occurs exactly once in ``file`` and becomes ``new``. ``harm`` is the effect on users; ``killers`` are tests, by
    their pytest names. Each must fail on the mutant, and pass without it.
    """

    name: str
    file: str
    old: str
    new: str
    harm: str
    killers: tuple[str, ...]

    def applied_to(self, text: str) -> str:
        """The text without the line; ``ValueError`` if the line does not occur exactly once."""
        if text.count(self.old) != 1:
            message = f"{self.name}: {self.file} has {text.count(self.old)} times {self.old!r}"
            raise ValueError(message)
        return text.replace(self.old, self.new)


def copy_of_the_project(folder: Path) -> Path:
    """The project's files in git, as they are on disk now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    names = [name.decode() for name in listed.split(b"\0") if name]
    for name in names:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
            (folder / name).chmod((ROOT / name).stat().st_mode)
    return folder


def pytest_of(*tests: str) -> list[str]:
    """The call that runs them."""
    return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]


def verdict(project: Path, test: str) -> str:
    """``passed`` or ``failed``: the test's result on the copy; anything else is an error of the test or of the mutant."""
    environment = {
        **os.environ, "PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1", "ROLLOUT_CHAOS_PATIENCE": PATIENCE,
    }  # fmt: skip
    try:
        done = subprocess.run(
            pytest_of(test),
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not run: it did not end within {MOST_SECONDS} s"
    last = done.stdout.strip().splitlines()[-1:] or [done.stderr[-300:]]
    if done.returncode == 0 and " passed" in last[0]:
        return "passed"
    return "failed" if done.returncode == 1 and " failed" in last[0] else f"not run: {last[0]}"


def is_the_copys(project: Path) -> bool:
    """Whether Python, started in the copy, uses the copy's code and not the project's."""
    command = [sys.executable, "-c", "import rollout; print(rollout.__file__)"]
    environment = {**os.environ, "PYTHONPATH": str(project)}
    done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()).is_relative_to(project)
