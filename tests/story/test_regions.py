"""Whole runs through real workers of regions, over the lab's SSH."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollout.features.regions.client.nodes import rank
from tests.controllers import PATIENCE, until
from tests.story.conftest import INVENTORY, Site, served
from tests.story.regions import Regions, regions_up
from tests.story.test_faults import begun, nothing_left, policy, said, transactions, where

pytestmark = pytest.mark.process

NODES = ("small-001", "small-002", "small-061", "small-062")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Two nodes in the zone eu, two in the zone us."""
    with served(tmp_path, ",".join(NODES)) as made:
        (tmp_path / "inventories/small.yaml").write_text(
            INVENTORY.replace("nodes:\n", "zones: {eu: a, us: b}\ncontrollerSsh: [eu, us]\nnodes:\n")
        )
        yield made


def ready(site: Site, regions: Regions, count: int) -> None:
    def said() -> bool:
        return site.rollout("regions", "workers", *regions.options()).out.count("ready") == count

    until(said, 60.0, f"{count} workers are ready")


def test_a_run_through_two_regions_with_mutual_tls(site: Site) -> None:
    assert site.rollout("regions", "certs", str(site.folder / "certs")).code == 0
    folder = site.folder / "dask"
    with regions_up(folder, site.lab / "ssh_config", "eu-1", certificates=site.folder / "certs") as regions:
        ready(site, regions, 1)
        refused = site.rollout("plan", "--cluster", "small", "--limit", ",".join(NODES), *regions.options())
        assert (refused.code, "zone us: no worker is connected" in refused.err) == (2, True), refused.all
        regions.start_worker("us-1")
        ready(site, regions, 2)
        done = site.rollout("apply", "--cluster", "small", "--limit", ",".join(NODES), "--yes", *regions.options())
        assert done.code == 0, done.all
        assert all(site.is_new(name) for name in NODES)
        plain = site.rollout("verify", "--cluster", "small", "--engine", "dask", "--scheduler", regions.address)
        assert (plain.code, "engine-needs-tls" in plain.err) == (2, True), plain.all


def nothing_twice(site: Site) -> None:
    """Every node has its old or its new files, and was changed at most once."""
    for name in NODES:
        found = len(transactions(site, name))
        assert found == 1 if site.is_new(name) else found <= 1, name


def holder(*workers: str) -> str:
    """The worker that holds the first node's connection."""
    return min(workers, key=lambda worker: rank(NODES[0], worker))


def test_a_worker_killed_in_the_middle_of_an_apply_loses_nothing(site: Site) -> None:
    site.fault("small-001", "slow-disk", "--for", "0.3")
    names = ("eu-1", "eu-2", "us-1")
    with regions_up(site.folder / "dask", site.lab / "ssh_config", *names) as regions:
        ready(site, regions, 3)
        words = ("apply", "--cluster", "small", "--limit", ",".join(NODES), "--yes", *regions.options())
        with begun(site, *words) as process:
            until(lambda: transactions(site, "small-001"), PATIENCE, "the apply has begun")
            regions.kill(holder("eu-1", "eu-2"))
            assert process.wait(PATIENCE) in (0, 3, 4), said(site)
        nothing_twice(site)
        nothing_left(site, *NODES)
        assert where(site)["ending"] in ("done", "halted")


def test_two_workers_with_one_name_are_one_worker(site: Site) -> None:
    with regions_up(site.folder / "dask", site.lab / "ssh_config", "eu-1") as regions:
        ready(site, regions, 1)
        first = regions.processes["eu-1"]
        regions.start_worker("eu-1")
        second = regions.processes["eu-1"]
        try:
            until(lambda: second.poll() is not None, PATIENCE, "the scheduler refuses the second")
            assert first.poll() is None
        finally:
            first.kill()
            first.wait()


@pytest.mark.night
def test_a_scheduler_killed_in_a_wave_leaves_nodes_to_this_machines_ssh(site: Site) -> None:
    site.fault("small-001", "slow-disk", "--for", "0.3")
    with regions_up(site.folder / "dask", site.lab / "ssh_config", "eu-1", "us-1") as regions:
        ready(site, regions, 2)
        words = ("apply", "--cluster", "small", "--limit", ",".join(NODES), "--yes", *regions.options())
        with begun(site, *words) as process:
            until(lambda: transactions(site, "small-001"), PATIENCE, "the apply has begun")
            regions.kill("scheduler")
            assert process.wait(PATIENCE) in (3, 4), said(site)
        nothing_twice(site)
        resumed = site.rollout("resume", "--yes")
        assert resumed.code == 0, resumed.all
        nothing_twice(site)
        nothing_left(site, *NODES)
        words = ("rollback", "--cluster", "small", "--emergency", "--limit", ",".join(NODES), "--yes")
        back = site.rollout(*words, *regions.options())
        assert (back.code, "continuing over this machine's SSH" in back.err) == (0, True), back.all
        assert not any(site.is_new(name) for name in NODES)


@pytest.mark.night
def test_a_worker_stopped_through_the_guard_applies_nothing_late(site: Site) -> None:
    site.fault("small-001", "slow-disk", "--for", "0.3")
    policy(site, "guard: 60s", "guard: 20s")
    with regions_up(site.folder / "dask", site.lab / "ssh_config", "eu-1", "us-1") as regions:
        ready(site, regions, 2)
        words = ("apply", "--cluster", "small", "--limit", ",".join(NODES), "--yes", *regions.options())
        with begun(site, *words) as process:
            until(lambda: transactions(site, "small-001"), PATIENCE, "the apply has begun")
            regions.kill("eu-1", signal.SIGSTOP)
            assert process.wait(PATIENCE) in (3, 4), said(site)
            regions.kill("eu-1", signal.SIGCONT)
        nothing_twice(site)
        nothing_left(site, *NODES)
