"""Computed tables of the documentation: ``python -m tests.docs.computed`` writes them into the pages.

A table is below a comment with its name, ``<!-- computed: ends -->``, up to the next blank line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rollout.core.model.pods import ContainerEnd, LeavingPod
from rollout.kubelet.restarts.termination import DEDUCTED, ORDERED, OVERRIDDEN, budget
from tests.docs.pages import PAGES
from tests.kubelet.newer_kubelets.test_newer_kubelets import KNOWN, lines
from tests.kubelet.newer_kubelets.test_newer_kubelets import RECORDED as NEWER
from tests.kubelet.real_kubelet.recording import recorded

Table = Iterator[tuple[str, ...]]
_PLACE = re.compile(r"(<!-- computed: ([a-z]+) -->\n\n)((?:\|.*\n)*)")


def compared() -> Table:
    """The number of starts of each kubelet that are compared with our verdict, and the remaining differences."""
    yield "kubelet", "configurations", "taken", "refused", "where we differ, and know why"
    tried = recorded()
    yield _counted("1.20.2", len(tried), sum(verdict.starts for _, verdict in tried), 0)
    for path in NEWER:
        head, *told = lines(path)
        known = sum(minor == path.stem for minor, _ in KNOWN)
        yield _counted(head["version"].removeprefix("v"), len(told), sum(_starts(each) for each in told), known)


def _starts(told: Mapping[str, Any]) -> bool:
    return told["taken"] and "late" not in told


def _counted(version: str, cases: int, taken: int, known: int) -> tuple[str, ...]:
    return version, *(f"{count:,}" for count in (cases, taken, cases - taken, known))


def ends() -> Table:
    """How long the end of some pods may take, on kubelets of each age."""
    first = (20, OVERRIDDEN, DEDUCTED, ORDERED)
    ages = (f"1.20 to 1.{OVERRIDDEN - 1}", f"1.{OVERRIDDEN} to 1.{DEDUCTED - 1}", f"1.{DEDUCTED}", f"1.{ORDERED} on")
    yield "grace period", "containers", *ages
    app, hooked, sleeps = (
        ContainerEnd("app"),
        ContainerEnd("app", hook=True),
        ContainerEnd("app", hook=True, hook_sleeps=5),
    )
    for grace, what, containers in (
        (30, "one", (app,)),
        (30, "one with a preStop hook", (hooked,)),
        (30, "one with a preStop hook that sleeps 5 s", (sleeps,)),
        (30, "one, and a native sidecar", (app, ContainerEnd("proxy", sidecar=True))),
        (1, "one", (app,)),
        (-3, "one with a preStop hook", (hooked,)),
    ):
        pod = LeavingPod("", "", grace, containers=containers)
        yield f"{grace} s", what, *(f"{budget(pod, minor).seconds} s" for minor in first)


TABLES: Mapping[str, Callable[[], Table]] = {"compared": compared, "ends": ends}


def written(page: str) -> str:
    """The page with all of its computed tables up to date."""
    return _PLACE.sub(lambda found: found[1] + "".join(_rows(TABLES[found[2]]())), page)


def _rows(table: Table) -> Iterator[str]:
    head = next(table)
    for cells in (head, ("---",) * len(head), *table):
        yield f"| {' | '.join(cells)} |\n"


def main() -> None:
    for page in PAGES:
        _write(page)


def _write(page: Path) -> None:
    text = page.read_text()
    if (new := written(text)) != text:
        page.write_text(new)


if __name__ == "__main__":
    main()
