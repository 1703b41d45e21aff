"""What each file of tests costs: ``make test-times`` measures it and writes ``tests/times.csv``, the longest first.

``cpu`` is what the tests and everything that they start have used, in seconds, real nodes included: each process that runs tests is
in a control group of its own, which the kernel counts. It hardly depends on what else the machine does. ``waiting`` is the time that
passed beyond it, and depends on that. ``longest`` is the time of the longest test. What tests share counts for the first of them.
`make test-outside` begins with what takes longest by this table, so that no worker is left alone with it at the end.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

TABLE = Path(__file__).with_name("times.csv")
V1 = Path("/sys/fs/cgroup/cpuacct")
V2 = Path("/sys/fs/cgroup")
"""Does not count the processes of real nodes: a bed puts them into groups of their own."""
START = "(start of a process that runs tests)"
COLUMNS = ("file", "tests", "cpu", "waiting", "longest")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", metavar="FOLDER", help="measure each test, and write what it costs into this folder")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--times")
    if folder and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Meter(Path(folder)), "times")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest begins first. A group is one worker's, so all of its tests count."""
    if config.getoption("outside"):
        groups: dict[str, set[str]] = defaultdict(set)
        for item in items:
            groups[_group(item)].add(_file(item.nodeid))
        alone = {file: float(row["longest"]) for file, row in known().items()}
        whole = {file: float(row["cpu"]) + float(row["waiting"]) for file, row in known().items()}
        together = {group: sum(whole.get(file, 0.0) for file in files) for group, files in groups.items() if group}
        items.sort(key=lambda item: -together.get(_group(item), alone.get(_file(item.nodeid), 0.0)))


@cache
def known() -> Mapping[str, Mapping[str, str]]:
    """The rows of the table by file."""
    with TABLE.open(encoding="utf-8", newline="") as text:
        return {row["file"]: row for row in csv.DictReader(text)}


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    return str(mark.kwargs.get("name") or mark.args[0]) if mark else ""


def _file(test: str) -> str:
    return test.partition("::")[0]


class Meter:
    """Measures each test of this process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lines = (folder / f"{os.getpid()}.jsonl").open("a", encoding="utf-8", buffering=1)
        self._group = _own_group()
        self._before = time.process_time()
        self._started = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if not self._started:
            self._started = True
            used = self._before + self._cpu()
            self._write(START, used, used)
        began, used = time.monotonic(), self._cpu()
        result = yield
        self._write(item.nodeid, self._cpu() - used, time.monotonic() - began)
        return result

    def _write(self, test: str, cpu: float, seconds: float) -> None:
        self._lines.write(json.dumps({"test": test, "cpu": cpu, "seconds": seconds}) + "\n")

    def _cpu(self) -> float:
        """Seconds of this process since it began to measure, and of all that it has started."""
        if self._group.is_relative_to(V1):
            return int((self._group / "cpuacct.usage").read_text()) / 1e9
        return int((self._group / "cpu.stat").read_text().split()[1]) / 1e6


def _own_group() -> Path:
    top = V1 if V1.is_dir() else V2
    for old in top.glob("rollout-tests-*"):
        with suppress(OSError):  # something still runs in it
            old.rmdir()
    group = top / f"rollout-tests-{os.getpid()}"
    group.mkdir()
    (group / "cgroup.procs").write_text(str(os.getpid()))
    return group


def measured(folder: Path) -> list[tuple[str, int, float, float, float]]:
    """The rows of the table."""
    rows: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            test = json.loads(line)
            rows[_file(test["test"])].append((test["cpu"], test["seconds"]))
    made = []
    for file, tests in rows.items():
        cpu, seconds = sum(cpu for cpu, _ in tests), sum(seconds for _, seconds in tests)
        made.append(
            (file, len(tests), round(cpu, 1), round(max(0.0, seconds - cpu), 1), round(max(s for _, s in tests), 1))
        )
    return sorted(made, key=lambda row: (-row[2], row[0]))


if __name__ == "__main__":
    with TABLE.open("w", encoding="utf-8", newline="") as text:
        csv.writer(text, lineterminator="\n").writerows([COLUMNS, *measured(Path(sys.argv[1]))])
