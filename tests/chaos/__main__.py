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
from tests.chaos.draws import KINDS, MANY_NODES, NODES, Kind, draw
from tests.chaos.faults import keep
from tests.chaos.machine import FAKETIME
from tests.chaos.report import Conditions, conditions, story, table, write
from tests.chaos.site import make_site
from tests.chaos.trial import Result, trial

KEPT = Path(tempfile.gettempdir()) / "rollout-chaos"
"""The folder for runs with findings."""


class Crew:
    """Several fleets of so many nodes, each with a thread. They take the numbers of runs from one queue."""

    def __init__(self, seed: int, numbers: Sequence[int], nodes: int, fleets: int) -> None:
        self.results: list[Result] = []
        self._seed = seed
        self._nodes = nodes
        self._numbers: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in numbers:
            self._numbers.put(number)
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
        while not self._numbers.empty():
            with (
                tempfile.TemporaryDirectory(prefix=f"rollout-chaos-{index}-") as folder,
                make_site(Path(folder) / "site", self._nodes) as site,
            ):
                while (number := self._next()) is not None:
                    result = trial(site, draw(self._seed, number))
                    self.results.append(result)
                    with self._printing:
                        print(story(result, site), flush=True)  # noqa: T201 - this is a command
                    if result.findings:
                        keep(site, KEPT / f"seed-{self._seed}-run-{number}")
                        break

    def _next(self) -> int | None:
        try:
            return self._numbers.get_nowait()
        except queue.Empty:
            return None


def carry_out(seed: int, numbers: Sequence[int], fleets: int) -> Sequence[Result]:
    """The small fleets in parallel, then a large one, which uses as much of the machine as all of them."""
    few = [number for number in numbers if draw(seed, number).nodes == NODES]
    many = [number for number in numbers if draw(seed, number).nodes != NODES]
    return [
        *Crew(seed, few, NODES, min(fleets, len(few))).work(),
        *Crew(seed, many, MANY_NODES, min(1, len(many))).work(),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311 - any will do
    parser.add_argument("--run", type=int, action="append", help="only this one of the seed's runs; writes no page")
    parser.add_argument(
        "--kind", choices=[kind.name for kind in KINDS], help="only the seed's runs of this one; writes no page"
    )
    parser.add_argument("--fleets", type=int, default=2, help="of three nodes each, side by side")
    given = parser.parse_args()
    reason = why_not() or (
        "" if FAKETIME.exists() else f"NOT TESTED: {FAKETIME} is missing (apt-get install libfaketime)"
    )
    if reason:
        print(reason, file=sys.stderr)  # noqa: T201
        return 2
    only = KINDS.index(Kind[given.kind]) if given.kind else 0
    numbers = given.run or range(
        only, only + given.runs * (len(KINDS) if given.kind else 1), len(KINDS) if given.kind else 1
    )
    began = time.monotonic()
    results = carry_out(given.seed, numbers, given.fleets)
    around: Conditions = conditions(given.seed, given.runs, given.fleets, time.monotonic() - began)
    print("\n".join(table(results)))  # noqa: T201
    if not (given.run or given.kind) and len(results) == len(numbers):
        write(results, around)
    bad = [result for result in results if result.findings]
    return 1 if bad or len(results) < len(numbers) else 0


if __name__ == "__main__":
    sys.exit(main())
