"""``python -m tests.chaos``: many runs on real systemd nodes, with a fault in each.

``--run N --seed S`` repeats one of them.
"""

from __future__ import annotations

import argparse
import queue
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bed.bed import why_not
from tests.chaos.draws import ENGINES, MANY_NODES, NODES, Draw, Kind, draw
from tests.chaos.faults import keep
from tests.chaos.machine import FAKETIME
from tests.chaos.region_faults import behind_regions
from tests.chaos.report import Conditions, conditions, story, table, write
from tests.chaos.site import make_site
from tests.chaos.trial import Result, trial

KEPT = Path(tempfile.gettempdir()) / "rollout-chaos"
"""The folder for runs with findings."""


class Crew:
    """Several fleets of so many nodes, each with a thread. They take their runs from one queue."""

    def __init__(self, draws: Sequence[Draw], nodes: int, fleets: int, engine: str) -> None:
        self.results: list[Result] = []
        self._nodes = nodes
        self._around = behind_regions if engine == "dask" else None
        self._draws: queue.SimpleQueue[Draw] = queue.SimpleQueue()
        for each in draws:
            self._draws.put(each)
        self._printing = threading.Lock()
        self._threads = [threading.Thread(target=self._work, args=(index,)) for index in range(fleets)]

    def work(self) -> Sequence[Result]:
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()
        return self.results

    def _work(self, index: int) -> None:
        """A fleet is used until a run on it has a finding; then it is created anew."""
        while not self._draws.empty():
            with (
                tempfile.TemporaryDirectory(prefix=f"rollout-chaos-{index}-") as folder,
                make_site(Path(folder) / "site", self._nodes, self._around) as site,
            ):
                while (drawn := self._next()) is not None:
                    result = trial(site, drawn.for_guard(site.brief))
                    self.results.append(result)
                    with self._printing:
                        print(story(result, site), flush=True)  # noqa: T201 - this is a command
                    if result.findings:
                        keep(site, KEPT / f"seed-{drawn.seed}-run-{drawn.number}")
                        break

    def _next(self) -> Draw | None:
        try:
            return self._draws.get_nowait()
        except queue.Empty:
            return None


def carry_out(draws: Sequence[Draw], fleets: int, engine: str) -> Sequence[Result]:
    """The small fleets in parallel, then a large one, which uses as much of the machine as all of them."""
    few = [each for each in draws if each.nodes == NODES]
    many = [each for each in draws if each.nodes != NODES]
    return [
        *Crew(few, NODES, min(fleets, len(few)), engine).work(),
        *Crew(many, MANY_NODES, min(1, len(many)), engine).work(),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311 - any will do
    parser.add_argument("--run", type=int, action="append", help="only this one of the seed's runs; writes no page")
    parser.add_argument(
        "--kind", choices=[kind.name for kind in Kind], help="only the seed's runs of this one; writes no page"
    )
    parser.add_argument("--fleets", type=int, default=2, help="of three nodes each, side by side")
    parser.add_argument("--engine", choices=[*ENGINES], default="embedded", help="what reaches the nodes")
    given = parser.parse_args()
    reason = why_not() or (
        "" if FAKETIME.exists() else f"NOT TESTED: {FAKETIME} is missing (apt-get install libfaketime)"
    )
    if reason:
        print(reason, file=sys.stderr)  # noqa: T201
        return 2
    kinds = ENGINES[given.engine]
    only = kinds.index(Kind[given.kind]) if given.kind else 0
    step = len(kinds) if given.kind else 1
    numbers = given.run or range(only, only + given.runs * step, step)
    began = time.monotonic()
    results = carry_out([draw(given.seed, number, kinds) for number in numbers], given.fleets, given.engine)
    around: Conditions = conditions(given.seed, given.runs, given.fleets, time.monotonic() - began, given.engine)
    print("\n".join(table(results)))  # noqa: T201
    if not (given.run or given.kind) and len(results) == len(numbers):
        write(results, around)
    bad = [result for result in results if result.findings]
    return 1 if bad or len(results) < len(numbers) else 0


if __name__ == "__main__":
    sys.exit(main())
