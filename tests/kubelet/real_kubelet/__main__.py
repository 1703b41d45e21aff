"""``make test-kubelet``: every case through a real kubelet 1.20.2 and through rollout.

``python -m tests.kubelet.real_kubelet`` tries all recorded cases; ``--case NAME`` one, with the kubelet's output;
``--fresh N --seed S`` N new cases; ``--record`` generates the cases again and stores the kubelet's results for the
ordinary suite.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterable

from tests.kubelet.real_kubelet.agreement import disagreements
from tests.kubelet.real_kubelet.cases import Case
from tests.kubelet.real_kubelet.corners.all import CORNERS
from tests.kubelet.real_kubelet.generated import fresh, generated
from tests.kubelet.real_kubelet.kubelets import room, verdicts, why_not
from tests.kubelet.real_kubelet.recording import FILE, record, recorded
from tests.kubelet.real_kubelet.verdict import Verdict

GENERATED = 600
"""The number of generated cases, in addition to the named ones."""

NO_FILE, EMPTY_FILE = "defaults: no file", "defaults: an empty file"


def main() -> int:
    given = _arguments()
    reason = why_not()
    if reason:
        print(f"NOT TESTED against a real kubelet: {reason}", file=sys.stderr)  # noqa: T201 - a program's own words
        return 2
    if given.case:
        return _one(given.case)
    if given.fresh:
        print(f"seed {given.seed}")  # noqa: T201
        return _told(verdicts(fresh(given.fresh, given.seed), given.rooms))
    if given.record:
        return _told(_recording((*CORNERS, *generated(GENERATED)), given.rooms))
    return _told(verdicts([case for case, _ in recorded()], given.rooms))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kubelet.real_kubelet", description=__doc__)
    parser.add_argument("--case", help="one case, by its name")
    parser.add_argument("--fresh", type=int, help="so many new cases")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="for --fresh")  # noqa: S311
    parser.add_argument("--record", action="store_true", help="make the cases anew and keep the verdicts")
    parser.add_argument("--rooms", type=int, default=3 * (os.cpu_count() or 2), help="kubelets at a time")
    return parser.parse_args()


def _one(name: str) -> int:
    case = {case.name: case for case in (*(case for case, _ in recorded()), *CORNERS)}.get(name)
    if case is None:
        print(f"there is no case {name!r}: names are in {FILE}", file=sys.stderr)  # noqa: T201
        return 2
    with room(f"rollout-kubelet-{os.getpid()}") as taken:
        verdict, log = taken.tried(case)
    print(log)  # noqa: T201
    print(" ".join(case.words), (case.config or b"").decode(errors="replace"), verdict, sep="\n")  # noqa: T201
    return _told([(case, verdict)])


def _recording(cases: Iterable[Case], rooms: int) -> list[tuple[Case, Verdict]]:
    tried = list(verdicts(cases, rooms))
    said = {case.name: verdict.effective or {} for case, verdict in tried}
    record(tried, {False: said[NO_FILE], True: said[EMPTY_FILE]})
    return tried


def _told(tried: Iterable[tuple[Case, Verdict]]) -> int:
    since = time.monotonic()
    count = wrong = 0
    for case, verdict in tried:
        count += 1
        found = disagreements(case, verdict)
        wrong += bool(found)
        for line in found:
            print(f"{case.name!r}: {line}", flush=True)  # noqa: T201
    print(f"{count} cases, {wrong} disagreements, {time.monotonic() - since:.0f} s")  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
