"""Starting and ending a lab from another process."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from io import BufferedWriter
from pathlib import Path

from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.errors import StateError, UsageError
from rollout.lab import control, serve
from rollout.lab import spec as lab_spec
from rollout.lab.spec import LabSpec

_PLAIN = re.compile(r"[A-Za-z0-9/._@+=,-]+")
"""Characters that are safe in an ssh_config, a search path and an unquoted list of a shell."""
MARK = "rollout-lab"
"""A marker file: this directory belongs to a lab, and may be removed with it."""


def up(spec: LabSpec, directory: Path, *, patience: float = 120.0) -> None:
    """Start a lab in ``directory`` and return when it serves. Never touches a directory that is not a lab's."""
    directory = directory.absolute()
    if not _PLAIN.fullmatch(str(directory)):
        message = f"{directory}: a lab's path may contain only letters, digits and /._@+=,-"
        raise UsageError("lab-directory-name", printable(message), hint="choose another: --dir")
    if (directory / MARK).exists():
        if is_up(directory):
            raise StateError("lab-already-up", f"a lab runs in {directory}", hint="end it: rollout lab down")
        shutil.rmtree(directory)
    elif directory.exists() and any(directory.iterdir()):
        raise UsageError("lab-directory-in-use", f"{directory} is not empty, and is not a lab's directory")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)
    (directory / MARK).touch()
    lab_spec.save(spec, directory / serve.SPEC)
    log = directory / "lab.log"
    with log.open("wb") as output:
        process = served(directory, output)
    _wait(directory, process, time.monotonic() + patience)
    process.returncode = 0  # it is a daemon now; it has no waiting parent


def served(directory: Path, output: BufferedWriter) -> subprocess.Popen[bytes]:
    """The lab's process, in its own session."""
    return subprocess.Popen(
        [sys.executable, "-m", "rollout.lab.serve", str(directory)],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def specification(directory: Path) -> LabSpec:
    """The specification of the lab in a directory."""
    try:
        return lab_spec.read(directory / serve.SPEC)
    except (OSError, ValueError):
        raise StateError(
            "lab-not-running", f"there is no lab in {directory}", hint="start one: rollout lab up"
        ) from None


def is_up(directory: Path) -> bool:
    """Whether a lab answers there."""
    try:
        control.ask(directory, {"op": "status"})
    except StateError:
        return False
    return True


def down(directory: Path) -> None:
    """End the lab and remove its tree; only a directory that a lab has created."""
    if not (directory / MARK).exists():
        raise StateError("lab-not-running", f"there is no lab in {directory}")
    pid = _pid(directory)
    if is_up(directory):
        control.ask(directory, {"op": "stop"})
        deadline = time.monotonic() + 30
        while _alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
    shutil.rmtree(directory)


def _wait(directory: Path, process: subprocess.Popen[bytes], deadline: float) -> None:
    while not (directory / serve.READY).exists():
        if process.poll() is not None:
            lines = (directory / "lab.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise StateError(
                "lab-failed", f"the lab ended while starting: {lines[-1] if lines else 'without a message'}"
            )
        if time.monotonic() > deadline:
            process.kill()
            raise StateError("lab-failed", "the lab did not start in time")
        time.sleep(0.02)


def _pid(directory: Path) -> int:
    """0: it is not known."""
    try:
        ready = json_text.parse((directory / serve.READY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0
    pid = ready.get("pid") if isinstance(ready, dict) else None
    return pid if type(pid) is int and 0 < pid < 1 << 31 else 0


def _alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
