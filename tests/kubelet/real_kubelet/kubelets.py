"""Real kubelets: rooms for them (``room.py``), many at a time, and the verdicts on many cases."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.kubelet.real_kubelet.cases import Case
from tests.kubelet.real_kubelet.verdict import Verdict, heard
from tests.places import ROOT

BINARIES = Path(os.environ.get("ROLLOUT_KUBELET", Path.home() / ".cache/rollout-tests"))
CGROUPS = Path("/sys/fs/cgroup")
NEEDED = ("cpu", "cpuacct", "cpuset", "memory", "pids", "systemd")
"""The hierarchies of cgroup v1 that a kubelet 1.20 needs at its start. Existing others are shared with it."""


def why_not() -> str:
    """Why no real kubelet can run here; empty: it can."""
    if os.geteuid() != 0:
        return "it needs root: namespaces, mounts and cgroups"
    missing = [name for name in ("kubelet", "empty-cri") if not (BINARIES / name).exists()]
    if missing:
        return f"there is no {' and no '.join(missing)} in {BINARIES}: `make test-kubelet` builds them"
    tools = [name for name in ("unshare", "ip", "mount", "hostname") if shutil.which(name) is None]
    if tools:
        return f"{', '.join(tools)} missing"
    absent = [name for name in NEEDED if not (CGROUPS / name).is_dir()]
    if absent:
        return f"this machine has no cgroup v1 ({', '.join(absent)}), which the recorded kubelet 1.20.2 used"
    return ""


class Room:
    """Runs one kubelet at a time; from ``room`` until its end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def tried(self, case: Case) -> tuple[Verdict, str]:
        """The verdict, and the kubelet's log."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case.written()) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the room of {case.name} ended unexpectedly")
        answer: dict[str, Any] = json.loads(line)
        return heard(answer["log"], ended=answer["ended"], effective=answer["effective"]), answer["log"]


@contextmanager
def shut_in(name: str, *program: str) -> Iterator[subprocess.Popen[str]]:
    """A program of ours in namespaces of its own, with a cgroup of its own in each hierarchy.

    Everything that its kubelet creates and moves is created and moved there. The names of the hierarchies are its last
    arguments.
    """
    hierarchies = [path.name for path in sorted(CGROUPS.iterdir()) if (path / "cgroup.sane_behavior").exists()]
    cgroups = [CGROUPS / hierarchy / name for hierarchy in hierarchies]
    for cgroup in cgroups:
        make_group(cgroup)
    join = " && ".join(f"echo $$ >{cgroup}/cgroup.procs" for cgroup in cgroups)
    unshare = [
        "unshare",
        "--net",
        "--mount",
        "--uts",
        "--ipc",
        "--pid",
        "--cgroup",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]
    process = subprocess.Popen(
        ["sh", "-c", f'{join} && exec "$@"', "sh", *unshare, *program, *hierarchies],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        with process:
            yield process
    finally:
        process.kill()
        process.wait()
        for cgroup in cgroups:
            remove_group(cgroup)


@contextmanager
def room(name: str) -> Iterator[Room]:
    """A room for kubelets 1.20."""
    inside = (sys.executable, "-m", "tests.kubelet.real_kubelet.room")
    with shut_in(name, *inside, str(BINARIES / "kubelet"), str(BINARIES / "empty-cri")) as process:
        yield Room(process)


def verdicts(cases: Iterable[Case], rooms: int) -> Iterator[tuple[Case, Verdict]]:
    """In the order of the cases."""
    with ExitStack() as stack:
        free: queue.SimpleQueue[Room] = queue.SimpleQueue()
        for number in range(rooms):
            free.put(stack.enter_context(room(f"rollout-kubelet-{os.getpid()}-{number}")))

        def one(case: Case) -> tuple[Case, Verdict]:
            taken = free.get()
            verdict, _ = taken.tried(case)
            free.put(taken)
            return case, verdict

        yield from stack.enter_context(ThreadPoolExecutor(rooms)).map(one, cases)


def make_group(cgroup: Path) -> None:
    """A control group of cgroup v1."""
    cgroup.mkdir()
    for name in ("cpuset.cpus", "cpuset.mems"):  # a cpuset accepts no process while these are empty
        if (cgroup / name).exists():
            (cgroup / name).write_text((cgroup.parent / name).read_text())


def remove_group(cgroup: Path) -> None:
    """After the end of its last process."""
    until = time.monotonic() + 10
    below = sorted((path for path in cgroup.rglob("*") if path.is_dir()), reverse=True)
    for path in (*below, cgroup):
        while path.is_dir():
            try:
                path.rmdir()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
