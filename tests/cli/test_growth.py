"""Commands that read the journal: a run over four times the nodes costs about four times the work, counted in calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import log
from pathlib import Path

import pytest

from rollout.cli.command_table import COMMANDS
from rollout.cli.main import run
from rollout.cli.table_group import called
from tests.core.presentation import journals
from tests.cost import calls
from tests.features.serve.serving import keep

RUN = "r20261120-160000-ab12"
SMALL, LARGE = 150, 600
MOST = 1.1
"""The exponent of the growth. Linear is 1, the square is 2."""

MEASURED = {
    "metrics": ["show", "metrics"],
    "report": ["report"],
    "report as JSON": ["report", "-o", "json"],
    "report as a page": ["report", "--html", "report.html"],
    "runs": ["runs"],
    "status": ["status"],
    "status as JSON": ["status", "-o", "json"],
    "watch": ["watch"],
}

ELSEWHERE = {
    "one run's order, and its nodes": (
        "apply", "resume", "rollback", "plan", "verify", "exec", "ssh", "prepull", "doctor", "diagnose probe",
        "check", "uninstall", "regions",
        "own", "newcomers",
    ),
    "one request or note": (
        "abort", "pause", "continue", "approve", "cluster freeze", "cluster unfreeze", "cluster unlock",
    ),
    "no journal": (
        "cluster", "diagnose", "diagnose pod", "explain", "export", "init", "lab", "show", "show completion",
        "show config", "show schema", "simulate",
    ),
    "a server: `make bench-serve`": ("serve",),
}  # fmt: skip
"""What the other commands read, so that a new command is measured or named here."""


def test_each_command_is_measured_or_named() -> None:
    assert sorted([*{called(words) for words in MEASURED.values()}, *sum(ELSEWHERE.values(), ())]) == sorted(COMMANDS)


CASES = [("an ended run", name) for name in MEASURED] + [("half a run", name) for name in ("metrics", "report")]
"""A run that has not ended is read in the same way: two commands show it. ``watch`` follows half a run until it ends."""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """The state folder with the journal of a run over so many nodes."""

    @cache
    def made(standing: str, nodes: int) -> Path:
        folder = tmp_path_factory.mktemp(f"of-{nodes}")
        plan, play = journals.done(nodes)
        keep(folder, RUN, plan, play, None if standing == "an ended run" else len(play.journal) // 2).close()
        return folder / "state"

    return made


@pytest.mark.parametrize(("standing", "name"), CASES)
def test_four_times_the_nodes_are_about_four_times_the_work(
    standing: str, name: str, state: Callable[[str, int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def work(nodes: int) -> int:
        folder = str(state(standing, nodes))
        return calls(lambda: run([*MEASURED[name], "--state", folder]))

    work(SMALL)  # what is made at first use
    small, large = work(SMALL), work(LARGE)
    assert log(large / small) / log(LARGE / SMALL) <= MOST, (small, large)
