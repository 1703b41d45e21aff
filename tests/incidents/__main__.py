"""``make incidents``: the three incidents on a real node, with the remedy by ``rollout``; writes ``results/incidents.md``.

``--only NAME`` runs one part and keeps the results of the others. All results are in ``tests/incidents/results.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.incidents import docker, incident_1, incident_2, incident_3
from tests.incidents.machine import Machine, machine, why_not
from tests.incidents.page import PAGE, RESULTS, page, results


def _first(made: Machine) -> dict[str, Any]:
    return {"events": incident_1.from_its_events(made), **incident_1.reproduced(made)}


def _second(made: Machine) -> dict[str, Any]:
    log, budgets = incident_2.from_its_log(made), incident_2.matrix(made)
    return {"log": log, "budget": budgets, "measured": incident_2.measured(made)}


PARTS: dict[str, Callable[[Machine], dict[str, Any]]] = {
    "1": _first,
    "1-docker": docker.reproduced,
    "2": _second,
    "3-stalling-runtime": incident_3.over_pods_cri,
    "3-containerd": incident_3.over_containerd,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.incidents", description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part")
    given = parser.parse_args()
    reason = why_not()
    if reason:
        print(f"NOT TESTED: {reason}", file=sys.stderr)  # noqa: T201 - a program's own words
        return 2
    for name in [given.only] if given.only else PARTS:
        with tempfile.TemporaryDirectory(prefix="rollout-incidents-") as folder, machine(Path(folder)) as made:
            part = PARTS[name](made)
        print(name, json.dumps(part, indent=1), flush=True)  # noqa: T201
        found = results() | {name: part}
        RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        if found.keys() == PARTS.keys():
            PAGE.write_text(page(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
