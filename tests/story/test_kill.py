"""kill -9 of the controller at the journal writes of a small run, then resume: every node ends as planned, nothing is left.

Law 1. Each death has nodes and a journal of its own, so that they can be tried side by side.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tests.controllers import Done
from tests.story.conftest import ROOT, Site


def dying(site: Site, at: int, when: str, *words: str) -> Done:
    command = [sys.executable, "-m", "tests.story.dying_controller", *site.command(*words)[3:]]
    count = site.folder / f"{site.state}.count"
    env = {**os.environ, "DIE_AT": str(at), "DIE_WHEN": when, "DIE_COUNT": str(count), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=site.folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


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
    """One death at write ``at``, then resume to the end, then everything back.

    What comes at once is written at once: a run that wrote less often is taken back, and the next one dies a write before its end.
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


def test_the_controller_may_die_at_every_write_of_its_journal(wide_site: Site) -> None:
    probe = wide_site.apart("probe")
    whole = dying(probe, 0, "never", "apply", "--cluster", "small", "--limit", ",".join(pair(60)), "--yes")
    assert whole.code == 0, whole.out + whole.err
    total = writes(probe)
    assert total > 8
    deaths = [(at, when) for at in range(1, total + 1) for when in ("before", "after")][:-1]
    if not os.environ.get("ROLLOUT_EVERY_STEP"):  # `make kill` has them all
        deaths = deaths[::5]
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(die_and_resume, wide_site, n, at, when) for n, (at, when) in enumerate(deaths, start=1)]
        ends = [(death, job.exception()) for death, job in zip(deaths, jobs, strict=True)]
    failures = [f"write {at} {when}: {error}" for (at, when), error in ends if error]
    assert failures == []


def test_a_controller_that_stays_dead_leaves_nodes_that_save_themselves(site: Site) -> None:
    """Law 2: nobody resumes; the guards fire and every unconfirmed node is as it was."""
    before = site.everything("small-001", "small-061")
    command = site.command("apply", "--cluster", "small", "--limit", "small-001,small-061", "--yes")
    process = subprocess.Popen(command, cwd=site.folder, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not any("=5m" in site.flags(name) for name in ("small-001", "small-061")):
        assert time.monotonic() < deadline, "no node was ever changed"
        time.sleep(0.02)
    process.kill()
    process.wait()
    while site.everything("small-001", "small-061") != before:  # the guard's 10 s, and a moment
        assert time.monotonic() < deadline + 30, "the guard did not give the files back"
        time.sleep(0.1)
    resumed = site.rollout("resume", "--yes")
    assert resumed.code == 0, resumed.out + resumed.err
    assert site.is_new("small-001")
    assert site.is_new("small-061")
