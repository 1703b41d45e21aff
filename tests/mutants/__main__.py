"""``make mutants``: each mutant must be killed by each test named for it. Writes ``docs/mutants.md``; exit 1 when one survives."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.list_of_mutants import MUTANTS
from tests.mutants.mutant import Mutant, copy_of_the_project, is_the_copys, verdict
from tests.places import ROOT

HEAD = """# Mutants: do the tests still detect what they are for?

Each line below was removed from a copy of rollout, one at a time, and the test in its row was run on the copy: it must fail there, and pass on a copy
with nothing removed. `make mutants` writes this page; the lines are in `tests/mutants/list_of_mutants.py`.

| mutant | without | harm | killed by | s |
| --- | --- | --- | --- | --- |
"""


def main(names: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    with tempfile.TemporaryDirectory(prefix="rollout-mutants-") as folder:
        project = copy_of_the_project(Path(folder))
        if not is_the_copys(project):
            print("the tests do not run the copy's code", file=sys.stderr)  # noqa: T201 - a command of its own
            return 1
        healthy = {killer: verdict(project, killer) for killer in dict.fromkeys(k for m in chosen for k in m.killers)}
        rows = [row for mutant in chosen for row in _tried(project, mutant, healthy)]
    if not names:
        (ROOT / "docs" / "mutants.md").write_text(HEAD + "".join(line for line, _ in rows))
    alive = sum(not killed for _, killed in rows)
    print(f"{len(chosen)} mutants, killed {len(rows) - alive} of {len(rows)} times")  # noqa: T201
    return 1 if alive else 0


def _tried(project: Path, mutant: Mutant, healthy: dict[str, str]) -> list[tuple[str, bool]]:
    """A row of the table, and whether it was killed, for each of its tests."""
    file = project / mutant.file
    whole = file.read_text()
    file.write_text(mutant.applied_to(whole))
    rows = []
    for killer in mutant.killers:
        began = time.monotonic()
        said = verdict(project, killer)
        killed = said == "failed" and healthy[killer] == "passed"
        taken = time.monotonic() - began
        found = (
            f"`{killer}`" if killed else f"**not killed**: `{killer}` {said} (without the mutant: {healthy[killer]})"
        )
        out = " ".join(mutant.old.split()).replace("|", "\\|")
        rows.append(
            (f"| {mutant.name} | `{out}` in `{mutant.file}` | {mutant.harm} | {found} | {taken:.0f} |\n", killed)
        )
        print(f"{'killed' if killed else 'ALIVE'} {mutant.name} by {killer} ({said}, {taken:.0f} s)", flush=True)  # noqa: T201
    file.write_text(whole)
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
