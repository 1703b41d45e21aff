"""Two machines with separate journals and the same nodes: the nodes' tokens are the lock."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.journal.test_two_controllers import starts
from tests.controllers import PATIENCE, Process, until
from tests.sampling import sample
from tests.story.conftest import Site, served
from tests.story.test_faults import FEW, begun, nothing_left, policy, said, token, transactions, where

ALL = ",".join(FEW)
APPLY = ("apply", "--cluster", "small", "--limit", ALL, "--yes")
pytestmark = [pytest.mark.process, pytest.mark.drawn(2)]


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Site]:
    with served(tmp_path, "small-[001-003,061-063]") as made:
        yield made


def nodes(site: Site) -> dict[str, tuple[int, list[str], dict[str, str]]]:
    """The report of each node: starts of its kubelet, its claim, its files."""
    return {name: (starts(site, name), token(site, name), site.everything(name)) for name in FEW}


def ended(process: Process, site: Site) -> int:
    try:
        return process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        pytest.fail(said(site))


def test_the_second_laptop_gets_the_claiming_run_its_age_and_what_to_do_from_the_nodes(few: Site) -> None:
    policy(few, "waves: [canary, rest]", "waves: [{canary: true, hold: true}, rest]")
    first, second = few.apart("first"), few.apart("second")
    with begun(first, *APPLY) as process:
        until(lambda: where(first).get("paused"), PATIENCE, "the canary has passed and the run holds")
        run = where(first)["run"]
        before = nodes(few)
        refused = second.rollout(*APPLY, "--set", "maxPods=99")
        assert refused.code == 5, refused.out + refused.err
        assert f"by run {run}" in refused.out, (
            "it names the run that holds them; a run's name begins with its start time"
        )
        assert "rollout cluster unlock" in refused.out
        assert "rollback --emergency" in refused.out
        assert nodes(few) == before, "no node has changed"
        assert process.poll() is None
    assert transactions(few, "small-061") == []


@pytest.mark.parametrize("by", sample("kinds of takeover", ["an emergency rollback", "unlock and a run of its own"], 1))
def test_a_laptop_that_thaws_after_another_took_over_reaches_no_node(few: Site, by: str) -> None:
    policy(few, "pace: 20", "pace: 0.5")
    policy(few, "guard: 60s", "guard: 20s")  # unlocking waits for it
    first, second = few.apart("first"), few.apart("second")
    old = few.everything(*FEW)
    with begun(first, *APPLY) as process:
        until(lambda: transactions(few, "small-061"), PATIENCE, "the second wave has begun")
        process.send_signal(signal.SIGSTOP)
        if by == "an emergency rollback":
            taken = second.rollout("rollback", "--cluster", "small", "--emergency", "--limit", ALL, "--yes")
            assert taken.code == 0, taken.out + taken.err
        else:
            unlock = (
                "cluster",
                "unlock",
                "--cluster",
                "small",
                "--limit",
                ALL,
                "--yes",
                "--reason",
                "it sleeps in a bag",
            )
            until(
                lambda: second.rollout(*unlock).code == 0,
                PATIENCE,
                "armed nodes are left to their guards; then all nodes are free",
            )
            taken = second.rollout("rollback", "--cluster", "small", "--emergency", "--limit", ALL, "--yes")
            assert taken.code == 0, taken.out + taken.err
            assert second.rollout(*APPLY, "--set", "maxPods=99").code == 0
        after = nodes(few)
        process.send_signal(signal.SIGCONT)
        assert ended(process, first) == 5, said(first)
    assert nodes(few) == after, "no restart, no token and no byte has changed"
    nothing_left(few, *FEW)
    if by == "an emergency rollback":
        assert few.everything(*FEW) == old


def test_of_two_runs_that_begin_at_once_at_most_one_continues(few: Site) -> None:
    """Both use the same token. A node accepts one of the runs.

    A run that does not get all its nodes releases the others.
    """
    for attempt in range(3):
        sites = [few.apart(f"left-{attempt}"), few.apart(f"right-{attempt}")]
        wanted = (f"maxPods={90 + attempt}", f"maxPods={80 + attempt}")
        before = {name: (starts(few, name), few.config(name)) for name in FEW}
        with begun(sites[0], *APPLY, "--set", wanted[0]) as left, begun(sites[1], *APPLY, "--set", wanted[1]) as right:
            codes = [ended(left, sites[0]), ended(right, sites[1])]
        assert set(codes) <= {0, 2, 4, 5}, [said(site) for site in sites]
        winners = [wanted[n] for n, code in enumerate(codes) if code == 0]
        in_force = {few.config(name).partition("maxPods: ")[2].split()[0] for name in FEW}
        nothing_left(few, *FEW)
        if len(winners) == 2:  # one after the other: the second began when the first had ended, and is in force
            assert in_force <= {word.partition("=")[2] for word in wanted}
            assert len(in_force) == 1
        elif winners:
            assert in_force == {winners[0].partition("=")[2]}
        else:
            assert {name: (starts(few, name), few.config(name)) for name in FEW} == before, codes
