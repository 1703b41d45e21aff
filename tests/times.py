"""What each file of tests costs, as a table: ``make test-times`` measures and writes ``tests/times.md``.

CPU is what the tests and everything that they start have used, real nodes included: each process that runs tests is in a
control group of its own, which the kernel counts. Wall time depends on what else the machine does; CPU nearly not.
As root, because others may make no control group.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

V1 = Path("/sys/fs/cgroup/cpuacct")
"""Counts nodes of a bed too. The second version, which most machines have, does not: a bed puts them in groups of its own."""
V2 = Path("/sys/fs/cgroup")
START = "(start of a process that runs tests: imports, collection)"
TABLE = Path(__file__).with_name("times.md")
HEAD = """\
# What the tests cost

Written by `make test-times`, never by hand. CPU is what tests and all that they start use, in seconds, and hardly depends on the machine's load.
Waiting is the time that passed beyond it: what a test waits for, or for a core. Setup that tests share counts for the first of them.
"""
MOST = 60
"""Files in the table: the rest costs little."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", metavar="FOLDER", help="measure each test, and write what it costs into this folder")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--times")
    if folder and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Meter(Path(folder)), "times")


class Meter:
    """Measures the phases of each test in this process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lines = (folder / f"{os.getpid()}.jsonl").open("a", encoding="utf-8", buffering=1)
        self._group = _own_group()
        self._began = time.monotonic()
        self._used = -time.process_time()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self._used < 0:
            self._write(START)
        self._began, self._used = time.monotonic(), self._cpu()
        result = yield
        self._write(item.nodeid)
        return result

    def _write(self, name: str) -> None:
        row = {"test": name, "seconds": time.monotonic() - self._began, "cpu": self._cpu() - self._used}
        self._lines.write(json.dumps(row) + "\n")

    def _cpu(self) -> float:
        """Seconds, of this process and all that it ever started."""
        if self._group.is_relative_to(V1):
            return int((self._group / "cpuacct.usage").read_text()) / 1e9
        return int((self._group / "cpu.stat").read_text().split()[1]) / 1e6


def _own_group() -> Path:
    top = V1 if V1.is_dir() else V2
    for old in top.glob("rollout-tests-*"):
        with suppress(OSError):  # something is in it
            old.rmdir()
    group = top / f"rollout-tests-{os.getpid()}"
    group.mkdir()
    (group / "cgroup.procs").write_text(str(os.getpid()))
    return group


def table(folder: Path) -> str:
    rows = [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    cpu, passed, count = Counter[str](), Counter[str](), Counter[str]()
    for row in rows:
        file = row["test"].partition("::")[0]
        cpu[file] += row["cpu"]
        passed[file] += row["seconds"]
        count[file] += 1
    slow = sorted(rows, key=lambda row: row["cpu"] - row["seconds"])
    lines = [
        HEAD,
        f"{sum(count.values())} tests: {sum(cpu.values()):.0f} s of CPU.\n",
        "| file | tests | CPU | waiting |\n| --- | --- | --- | --- |",
        *(f"| {file} | {count[file]} | {cpu[file]:.1f} | {max(0.0, passed[file] - cpu[file]):.1f} |" for file, _ in cpu.most_common(MOST)),
        "\nThe tests that wait longest:\n",
        "| test | CPU | waiting |\n| --- | --- | --- |",
        *(f"| {row['test'].replace('|', chr(92) + '|')} | {row['cpu']:.1f} | {row['seconds'] - row['cpu']:.1f} |" for row in slow[:25]),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table(Path(sys.argv[1])), encoding="utf-8")
