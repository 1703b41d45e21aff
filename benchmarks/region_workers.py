"""``make bench-regions``: a change of cheap nodes through workers of a region, beside the embedded engine; the scheduler's memory.

All nodes are on one real sshd of this machine, the scheduler and its workers too. So the workers gain nothing by being near
their nodes, and every millisecond that they cost is seen. CPU is that of controller, scheduler and workers together.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from benchmarks import region_latency
from benchmarks.cheap_fleet import PLAYBOOK
from benchmarks.cheap_nodes import NEW, CheapNodes, cheap_nodes, prototype
from benchmarks.check_kubelet import machine
from benchmarks.figures import Row, table
from benchmarks.measured import FailedError, Measured, Turns, measured
from rollout.core.text.terminal import counted
from rollout.features.regions.client import worker as remote
from rollout.features.regions.client.messages import encode_names
from rollout.features.regions.client.scheduler import DaskScheduler
from tests.agent.node import CONFIG
from tests.controllers import until
from tests.story.regions import Regions, regions_up

EMBEDDED, ONE, TWO = "embedded", "1 worker", "2 workers"
WORKERS = {EMBEDDED: (), ONE: ("east-1",), TWO: ("east-1", "east-2")}
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
POINTS = 5
AT_ONCE = 64
READY_SECONDS = 60.0
HERE = Path(__file__).parent


def applies(folder: Path, count: int, rounds: int) -> tuple[Turns, Turns]:
    """The same change by each engine in turns, each time on nodes as they were at the start: of one node, and of all."""
    one: dict[str, list[Measured]] = defaultdict(list)
    all_of_them: dict[str, list[Measured]] = defaultdict(list)
    with cheap_nodes(folder, count) as nodes:
        node = prototype(folder / "prototype", folder / "tools")
        _project(nodes)
        for number in range(rounds):
            engines = [*WORKERS][number % len(WORKERS) :] + [*WORKERS][: number % len(WORKERS)]
            for engine in engines:
                for names, turns in ((nodes.names[:1], one), (nodes.names, all_of_them)):
                    nodes.lay_out(node.root)
                    _plan(nodes, names)
                    place = folder / f"{number}-{len(WORKERS[engine])}-{len(names)}"
                    turns[engine].append(_applied(nodes, engine, place))
                    _check(nodes, len(names))
                    sys.stderr.write(
                        f"round {number + 1}, {engine}, {counted(len(names), 'node')}: {turns[engine][-1]}\n"
                    )
    return Turns(1, one), Turns(count, all_of_them)


def _plan(nodes: CheapNodes, names: Sequence[str]) -> None:
    """A plan for these nodes, all of them."""
    _rollout(nodes, "plan", "--cluster", "cheap", "--limit", ",".join(names), "--out", "p.json")
    planned = len(json.loads((nodes.folder / "p.json").read_text())["nodes"])
    if planned != len(names):
        raise FailedError(f"the plan has {planned} of {len(names)} nodes")


def _applied(nodes: CheapNodes, engine: str, folder: Path) -> Measured:
    if engine == EMBEDDED:
        return _rollout(nodes, "apply", "p.json", "--yes")
    with _ready(folder, nodes.ssh_config, WORKERS[engine]) as regions:
        before = _cpu(regions)
        turn = _rollout(nodes, "apply", "p.json", "--yes", *regions.options())
        return Measured(turn.wall, turn.cpu + _cpu(regions) - before, turn.said)


@contextmanager
def _ready(folder: Path, ssh_config: Path, names: Sequence[str]) -> Iterator[Regions]:
    """A scheduler with workers that have answered."""
    with regions_up(folder, ssh_config, *names) as regions:
        scheduler = DaskScheduler(regions.address, None)
        until(lambda: len(scheduler.workers()) == len(names), READY_SECONDS, "the workers are connected")
        for address in scheduler.workers().values():
            scheduler.call(remote.identify, address, (), READY_SECONDS)
        scheduler.close()
        yield regions


def _cpu(regions: Regions) -> float:
    """Seconds of CPU of scheduler and workers so far."""
    stats = [
        Path(f"/proc/{each.pid}/stat").read_text().rpartition(")")[2].split() for each in regions.processes.values()
    ]
    return sum(int(words[11]) + int(words[12]) for words in stats) / TICK


def scheduler_memory(folder: Path, calls_of_all: int) -> Mapping[int, float]:
    """Calls to one worker so far → MiB of the scheduler."""
    found: dict[int, float] = {}
    with _ready(folder, Path(os.devnull), ("east-1",)) as regions:
        scheduler = DaskScheduler(regions.address, None)
        (address,) = scheduler.workers().values()
        nothing = encode_names(())

        def call(_: int) -> None:
            scheduler.call(remote.release, address, (nothing,), READY_SECONDS)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            for point in range(1, POINTS + 1):
                until_now = calls_of_all * point // POINTS
                for _ in pool.map(call, range(until_now - max(found, default=0))):
                    pass
                found[until_now] = _resident(regions.processes["scheduler"].pid)
                sys.stderr.write(f"{until_now:,} calls: the scheduler has {found[until_now]:.1f} MiB\n")
        scheduler.close()
    return found


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 2**20


def rows(one: Turns, every: Turns, memory: Mapping[int, float]) -> Iterator[Row]:
    for engine in (ONE, TWO):
        wall = statistics.median(each.wall for each in every.turns[engine])
        beside = statistics.median(each.wall for each in every.turns[EMBEDDED])
        note = f"{wall:.1f} s, embedded {beside:.1f} s"
        yield Row(f"{engine}: wall time over the embedded engine", 100 * (wall / beside - 1), 15, "%", note=note)
        start, total = (_cpu_over(turns, engine) for turns in (one, every))
        note = f"{1000 * (total - start) / (every.nodes - 1):.1f} ms without the {start:.2f} s of a run of one node"
        yield Row(f"{engine}: CPU over the embedded engine", 1000 * total / every.nodes, 3, "ms a node", note=note)
    first, *_, last = memory.values()
    note = ", ".join(f"{count:,}: {size:.1f} MiB" for count, size in memory.items())
    yield Row(
        "growth of the scheduler's memory between the first and the last point", last - first, 10, "MiB", note=note
    )


def _cpu_over(turns: Turns, engine: str) -> float:
    """Seconds of CPU of a run, over those of the embedded engine."""
    own, embedded = (statistics.median(each.cpu for each in turns.turns[name]) for name in (engine, EMBEDDED))
    return own - embedded


def _project(nodes: CheapNodes) -> None:
    last = (len(nodes.names) - 1) // 50
    zones = f'zones: {{east: "rack[0-{last}]"}}\n' if last else "zones: {east: rack0}\n"
    for path, text in (
        ("inventories/cheap.yaml", f"{nodes.inventory('cheap')}{zones}"),
        ("playbooks/pulls.yaml", PLAYBOOK),
    ):
        (nodes.folder / path).parent.mkdir(exist_ok=True)
        (nodes.folder / path).write_text(text)
    (nodes.folder / "templates").symlink_to(HERE.parent / "templates")


def _rollout(nodes: CheapNodes, *words: str) -> Measured:
    command = (sys.executable, "-m", "rollout.cli", *words, "--ssh-config", str(nodes.ssh_config))
    return measured(command, nodes.folder, {"PYTHONPATH": str(HERE.parent)})


def _check(nodes: CheapNodes, count: int) -> None:
    """The first ``count`` nodes have the new file, and the others do not."""
    changed = [(nodes.root(at) / CONFIG[1:]).read_bytes() == NEW for at in range(len(nodes.names))]
    if not all(changed[:count]) or any(changed[count:]):
        raise FailedError(f"{sum(changed)} cheap nodes have the new file, not the first {count}")


def page(one: Turns, every: Turns, memory: Mapping[int, float], rounds: int) -> str:
    return (
        f"# Regions: the overhead of workers\n\n{machine()}. Written by `make bench-regions`.\n\n"
        f"A change of {every.nodes:,} cheap nodes, the median of {counted(rounds, 'round')}. "
        f"Embedded: {every.wall(EMBEDDED):.1f} s and {every.cpu(EMBEDDED):.1f} ms of CPU a node. "
        "CPU is that of controller, scheduler and workers together. "
        "All processes are on one machine, so the workers gain nothing by being near their nodes.\n\n"
        f"{table(rows(one, every, memory))}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.region_workers", description=__doc__)
    parser.add_argument("--nodes", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--write", type=Path, default=HERE / "regions.md")
    parser.add_argument("--far", type=int, default=12, help="real nodes behind a line")
    parser.add_argument(
        "--trips", type=int, nargs="+", default=[0, 25, 50, 100, 200, 400], help="round trips in milliseconds"
    )
    parser.add_argument("--only-far", action="store_true", help="measure the line alone and keep the rest of the page")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rollout-regions-") as folder:
        place = Path(folder)
        (place / "far").mkdir()
        if given.only_far:
            text = given.write.read_text().partition(f"\n{region_latency.TITLE}")[0]
        else:
            memory = scheduler_memory(place / "memory", given.calls)
            text = page(*applies(place, given.nodes, given.rounds), memory, given.rounds)
        where = f"{machine()}, niceness {os.nice(0)}"
        found = region_latency.walls(place / "far", given.far, given.trips, given.rounds)
    text = "\n".join((text, *region_latency.lines(found, given.far, given.rounds, where), ""))
    given.write.write_text(text)
    print(text)  # noqa: T201 - this is a command


if __name__ == "__main__":
    main()
