"""kill -9 of the controller at the journal writes of a small run, then resume: every node ends as planned.

Nothing is left behind (law 1). Each death has its own nodes and journal, so that deaths can run in parallel.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.controllers import PATIENCE, Done, finished, until
from tests.places import ROOT
from tests.sampling import DEPTH, Depth, sample
from tests.story.conftest import Site, fresh, served
from tests.story.test_faults import begun, few, policy

pytestmark = pytest.mark.process

__all__ = ["few"]  # the fixture

DRAWN = 4
"""The number of deaths outside of ``make night``."""


def dying(site: Site, at: int, when: str, *words: str) -> Done:
    command = [sys.executable, "-m", "tests.story.dying_controller", *site.command(*words)[3:]]
    count = site.folder / f"{site.state}.count"
    env = {**os.environ, "DIE_AT": str(at), "DIE_WHEN": when, "DIE_COUNT": str(count), "PYTHONPATH": str(ROOT)}
    return finished(command, site.folder, environment=env)


def writes(site: Site) -> int:
    return int((site.folder / f"{site.state}.count").read_text())


def pair(number: int) -> tuple[str, str]:
    return f"small-{number:03}", f"small-{number + 60:03}"


def take_back(site: Site, mine: Site, number: int, before: dict[str, str]) -> None:
    names = pair(number)
    back = mine.rollout("rollback", "--cluster", "small", "--emergency", "--limit", ",".join(names), "--yes")
    assert back.code == 0, back.out + back.err
    assert site.everything(*names) == before


def die_and_resume(site: Site, number: int, at: int, when: str) -> None:
    """One death at write ``at``, then resume to the end, then revert everything.

    Answers that arrive together are written together. A run that wrote less often is reverted, and the next one dies a
    write before its end.
    """
    names, mine = pair(number), site.apart(f"state-{number}")
    limit = ",".join(names)
    before = site.everything(*names)
    died = dying(mine, at, when, "apply", "--cluster", "small", "--limit", limit, "--yes")
    if died.code == 0 and writes(mine) < at:
        take_back(site, mine, number, before)
        die_and_resume(site, number, writes(mine) - 1, when)
        return
    assert died.code == -signal.SIGKILL, f"write {at} {when}: {died.out}{died.err}"
    resumed = mine.rollout("resume", "--yes")
    if "holds no run yet" in resumed.err:  # died before the run was written down: nothing was done
        assert [site.is_new(name) for name in names] == [False, False]
        return
    ended = "has ended: done" in resumed.err  # died after the last write: nothing is left to do
    assert ended or resumed.code == 0, f"write {at} {when}: {resumed.out}{resumed.err}"
    assert [site.is_new(name) for name in names] == [True, True]
    take_back(site, mine, number, before)


@pytest.fixture
def pairs(tmp_path: Path) -> Iterator[Site]:
    """Two nodes for each death, and two for the run that counts the writes."""
    numbers = "001-060,061-120" if DEPTH is Depth.NIGHT else f"001-{DRAWN + 1:03},061-{DRAWN + 61:03}"
    with served(tmp_path, f"small-[{numbers}]") as made:
        yield made


def test_the_controller_may_die_at_every_write_of_its_journal(pairs: Site) -> None:
    """A sample of them; at night all of them."""
    probe = pairs.apart("probe")
    whole = dying(probe, 0, "never", "apply", "--cluster", "small", "--limit", ",".join(pair(1)), "--yes")
    assert whole.code == 0, whole.out + whole.err
    total = writes(probe)
    assert total > 8
    deaths = [(at, when) for at in range(1, total + 1) for when in ("before", "after")][:-1]
    deaths = sample("deaths of the controller", deaths, DRAWN)
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(die_and_resume, pairs, n, at, when) for n, (at, when) in enumerate(deaths, start=2)]
        ends = [(death, job.exception()) for death, job in zip(deaths, jobs, strict=True)]
    failures = [f"write {at} {when}: {error}" for (at, when), error in ends if error]
    assert failures == []


def test_nodes_of_a_dead_controller_revert_themselves(few: Site) -> None:
    """Law 2: without a resume the guard fires, and the node has its old files.

    The node's output is garbage from the change on: however late the controller is killed, it has confirmed nothing.
    """
    policy(few, "guard: 60s", "guard: 10s")  # the test waits for it
    before = few.everything("small-001", "small-061")
    few.fault("small-001", "garbage-output", "--at", "apply")
    with begun(fresh(few), "apply", "--cluster", "small", "--limit", "small-001,small-061", "--yes") as process:
        until(lambda: "=5m" in few.flags("small-001"), PATIENCE, "the canary is changed")
        process.kill()
        process.wait()
    until(lambda: few.everything("small-001", "small-061") == before, PATIENCE, "the guard restores the files")
    few.fault("small-001", "--clear")
    resumed = few.rollout("resume", "--yes")
    assert resumed.code == 0, resumed.out + resumed.err
    assert few.is_new("small-001")
    assert few.is_new("small-061")
