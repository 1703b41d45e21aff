"""``make mutants``: each mutant must be killed by each test named for it. Writes ``results/mutants.md``; exit 1 when one survives."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from tests.mutants.list_of_mutants import MUTANTS
from tests.mutants.mutant import Mutant, copy_of_the_project, is_the_copys, verdict
from tests.places import ROOT

TOGETHER = 2
HEAD = """# Mutants: do the tests still detect what they are for?

Each line below was removed from a copy of rollout, one at a time, and the test in its row was run on the copy: it must fail there, and pass on a copy
with nothing removed. `make mutants` writes this page; the lines are in `tests/mutants/list_of_mutants.py`.

| mutant | without | harm | killed by | s |
| --- | --- | --- | --- | --- |
"""


class Copies:
    """Copies of the project, one for each test that runs at the same time. Real nodes are for one test at a time."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        for folder in folders:
            self._free.put(copy_of_the_project(folder))
        self._real = Lock()

    def verdict(self, killer: str, mutant: Mutant | None = None) -> tuple[str, float]:
        """Of this test, with or without a mutant, and its seconds."""
        with self._real if killer.startswith("tests/chaos/") else nullcontext():
            project = self._free.get()
            try:
                return self._in(project, killer, mutant)
            finally:
                self._free.put(project)

    def _in(self, project: Path, killer: str, mutant: Mutant | None) -> tuple[str, float]:
        began = time.monotonic()
        if mutant is None:
            return verdict(project, killer), time.monotonic() - began
        file = project / mutant.file
        whole = file.read_text()
        file.write_text(mutant.applied_to(whole))
        try:
            return verdict(project, killer), time.monotonic() - began
        finally:
            file.write_text(whole)


def main(names: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    killers = dict.fromkeys(killer for mutant in chosen for killer in mutant.killers)
    with tempfile.TemporaryDirectory(prefix="rollout-mutants-") as folder, ThreadPoolExecutor(TOGETHER) as pool:
        folders = [Path(folder) / str(number) for number in range(TOGETHER)]
        copies = Copies(folders)
        if not all(map(is_the_copys, folders)):
            print("the tests do not run the copy's code", file=sys.stderr)  # noqa: T201 - a command of its own
            return 1
        healthy = {killer: pool.submit(copies.verdict, killer) for killer in killers}
        tried = [
            (mutant, killer, pool.submit(copies.verdict, killer, mutant))
            for mutant in chosen
            for killer in mutant.killers
        ]
        rows = [_row(mutant, killer, *found.result(), healthy[killer].result()[0]) for mutant, killer, found in tried]
    if not names:
        (ROOT / "results" / "mutants.md").write_text(HEAD + "".join(line for line, _ in rows))
    alive = sum(not killed for _, killed in rows)
    print(f"{len(chosen)} mutants, killed {len(rows) - alive} of {len(rows)} times")  # noqa: T201
    return 1 if alive else 0


def _row(mutant: Mutant, killer: str, said: str, taken: float, without: str) -> tuple[str, bool]:
    """A row of the table, and whether the mutant was killed."""
    killed = said == "failed" and without == "passed"
    found = f"`{killer}`" if killed else f"**not killed**: `{killer}` {said} (without the mutant: {without})"
    out = " ".join(mutant.old.split()).replace("|", "\\|")
    print(f"{'killed' if killed else 'ALIVE'} {mutant.name} by {killer} ({said}, {taken:.0f} s)", flush=True)  # noqa: T201
    return f"| {mutant.name} | `{out}` in `{mutant.file}` | {mutant.harm} | {found} | {taken:.0f} |\n", killed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
