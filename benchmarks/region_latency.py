"""From which latency a worker of a region makes a run faster: the same change of real nodes behind a line, by each engine.

The controller and the scheduler are at one end of the line, the nodes and the worker at the other end. Embedded, the controller opens
every SSH connection over the line. Each figure is the median of some rounds in turns.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.far_line import FAR_ADDRESS, NEAR_ADDRESS, far_line
from benchmarks.measured import FailedError, Measured, measured
from benchmarks.real_nodes import lay_out, reset, rollout_words
from rollout.core.text.terminal import counted
from tests.bed.bed import Bed
from tests.story.regions import Regions, regions_up

TITLE = "## From which latency a worker pays"
TRIES = 3
EMBEDDED, WORKER = "embedded", "1 worker beside the nodes"
Walls = Mapping[int, Mapping[str, Sequence[float]]]
"""Milliseconds of a round trip → engine → seconds of the run in each round."""


def walls(folder: Path, count: int, trips: Sequence[int], rounds: int) -> Walls:
    found: dict[int, dict[str, Sequence[float]]] = {}
    with Bed() as bed:
        nodes = bed.add(count)
        lay_out(folder, nodes, zone="east")
        for trip in trips:
            turns: dict[str, list[Measured]] = defaultdict(list)
            with ExitStack() as stack:
                there = stack.enter_context(far_line([node.netns for node in nodes], bed.gateway, trip / 2000))
                regions = stack.enter_context(
                    regions_up(
                        folder / f"regions-{trip}",
                        bed.ssh_config,
                        "east-1",
                        far=(there, FAR_ADDRESS),
                        host=NEAR_ADDRESS,
                    )
                )
                for number in range(rounds):
                    for engine in (EMBEDDED, WORKER) if number % 2 == 0 else (WORKER, EMBEDDED):
                        turns[engine].append(_turn(folder, bed, there, regions if engine == WORKER else None))
                        sys.stderr.write(f"{trip} ms, round {number + 1}: {engine}: {turns[engine][-1]}\n")
            found[trip] = {engine: [each.wall for each in turns[engine]] for engine in turns}
    return found


def _turn(folder: Path, bed: Bed, there: Sequence[str], regions: Regions | None) -> Measured:
    """On a busy machine a run may find a kubelet that has not quite started, and refuse its node. Such a turn says nothing and is repeated."""
    for _ in range(1, TRIES):
        try:
            return _applied(folder, bed, there, regions)
        except FailedError as error:
            sys.stderr.write(f"repeated: {error}\n")
    return _applied(folder, bed, there, regions)


def _applied(folder: Path, bed: Bed, there: Sequence[str], regions: Regions | None) -> Measured:
    """Planned by the same engine: a worker that was never asked would have to be prepared first."""
    reset(bed.nodes)
    way = ("--ssh-config", str(bed.ssh_config), *(regions.options() if regions else ()))
    measured((*there, *rollout_words("plan", "--cluster", "real", "--out", "p.json"), *way), folder)
    return measured((*there, *rollout_words("apply", "p.json", "--yes"), *way), folder)


def lines(found: Walls, count: int, rounds: int, where: str) -> Iterator[str]:
    """Markdown. ``where``: the machine."""
    yield f"{TITLE}\n"
    yield (
        f"The same change of {counted(count, 'real node')}, median of {counted(rounds, 'round')} in turns (and the least and the most). "
        f"The controller and the scheduler are behind a line; the worker is beside the nodes. {where}.\n"
    )
    yield f"| round trip | {EMBEDDED} | {WORKER} | the worker needs |"
    yield "| ---: | ---: | ---: | ---: |"
    for trip, of_engine in found.items():
        embedded, worker = (of_engine[engine] for engine in (EMBEDDED, WORKER))
        share = 100 * (statistics.median(worker) / statistics.median(embedded) - 1)
        yield f"| {trip} ms | {_seconds(embedded)} | {_seconds(worker)} | {share:+.0f} % |"


def _seconds(walls: Sequence[float]) -> str:
    return f"{statistics.median(walls):.1f} s ({min(walls):.1f}–{max(walls):.1f})"
