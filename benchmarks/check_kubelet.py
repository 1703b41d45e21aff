"""How long ``rollout check --kubelet-config … -o json`` takes over a thousand files, as one process from start to end.

``make bench-check`` writes what it measured to ``check-kubelet.md`` beside this file. Two kinds of files: what kubeadm leaves on
nodes, no two alike, and the configurations that real kubelets were asked of, many of them wrong on purpose.
"""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from rollout.lab.configs import config
from tests.kubelet.real_kubelet.recording import recorded

FILES = 1000
TIMES = 3
TABLE = Path(__file__).with_name("check-kubelet.md")
PROGRAM = str(Path(sys.executable).with_name("rollout"))


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of one process, and how many answers it gave."""

    wall: float
    cpu: float
    answers: int


def of_kubeadm(minor: int) -> Iterator[bytes]:
    """No two are the same."""
    text = config(minor, "unix:///run/containerd/containerd.sock")
    for number in range(FILES):
        yield text.replace(
            "clusterDomain: cluster.local", f"clusterDomain: c{number}.local\nmaxOpenFiles: {100_000 + number}"
        ).encode()


def asked_of_a_real_one() -> Iterator[bytes]:
    """From the start again where they do not reach."""
    return islice(cycle([case.config for case, _ in recorded() if case.config is not None]), FILES)


PILES: tuple[tuple[str, str, Callable[[], Iterator[bytes]]], ...] = (
    ("as kubeadm 1.20 leaves them", "1.20", partial(of_kubeadm, 20)),
    ("as kubeadm 1.36 leaves them", "1.36", partial(of_kubeadm, 36)),
    ("asked of a real kubelet", "1.20", asked_of_a_real_one),
    ("asked of a real kubelet", "1.36", asked_of_a_real_one),
)


def measured(paths: list[str], minor: str) -> Measured:
    """One process over all files. It ends with 0 or, where one is wrong, with 2."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [PROGRAM, "check", "--kubelet", minor, "-o", "json", "--kubelet-config", *paths],
        stdout=subprocess.PIPE,
        check=False,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 2):
        raise SystemExit(f"rollout ended with {done.returncode}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(wall, cpu, done.stdout.count(b"\n"))


def rows() -> Iterator[str]:
    """The lines of the table: of each pile the fastest of a few, which is the one that others disturbed least."""
    with tempfile.TemporaryDirectory() as folder:
        for number, (what, minor, contents) in enumerate(PILES):
            paths = [f"{folder}/{number}-{index}.yaml" for index in range(FILES)]
            for path, content in zip(paths, contents(), strict=True):
                Path(path).write_bytes(content)
            size = sum(Path(path).stat().st_size for path in paths)
            best = min((measured(paths, minor) for _ in range(TIMES)), key=lambda one: one.cpu)
            yield f"| {what} | {minor} | {best.answers:,} | {size // 1000:,} kB | {best.cpu:.1f} s | {best.wall:.1f} s |"


def machine() -> str:
    """What the figures depend on."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return (
        f"{os.cpu_count()} processors ({models[0] if models else platform.machine()}), Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f} when it began"
    )


def main() -> None:
    head = (
        f"# {FILES:,} files through `rollout check --kubelet-config`",
        "",
        f"One process for all of them, its start included, with `-o json`; the best of {TIMES}. {machine()}. Written by `make bench-check`.",
        "",
        "| files | kubelet | answers | size | CPU | wall |",
        "| --- | --- | --- | --- | --- | --- |",
    )
    text = "\n".join((*head, *rows())) + "\n"
    TABLE.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
