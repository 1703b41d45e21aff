"""What is refused when a plan is made: zones without a worker that can be used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout import __version__
from rollout.app.node_access import NodeAccess, access_to
from rollout.core.reading.inventory_file import load_inventory
from rollout.core.run.transitions import ENGINE_PATIENCE
from rollout.errors import UsageError
from rollout.features.regions.client import dask_engine
from rollout.features.regions.client import worker as remote
from rollout.features.regions.client.dask_engine import DaskEngine
from rollout.features.regions.client.messages import decode_identity
from rollout.features.regions.client.worker import RegionStation
from tests.app.agents import Agents
from tests.features.regions.client.test_region_nodes import NODE, Fabric

ENGINE = DaskEngine("tcp://127.0.0.1:8786", None)
TARGETS = {zone: replace(NODE, name=zone, zone=zone) for zone in ("eu-a", "us")}
ACCESS = NodeAccess("program", TARGETS, dict.fromkeys(TARGETS, False))


def refused(fabric: Fabric) -> str:
    with pytest.raises(UsageError) as raised:
        ENGINE.check_workers(fabric, ACCESS)
    assert raised.value.reference == "region-without-worker"
    return str(raised.value)


def test_a_zone_without_a_worker_is_refused_by_its_name_with_the_workers_that_exist() -> None:
    fabric = Fabric({"eu-1": RegionStation(Agents()), "US-1": RegionStation(Agents())})
    said = refused(fabric)
    assert (
        "nothing was touched: zone us: no worker is connected. Usable workers: US-1 of region US, eu-1 of region eu"
        in said
    )
    assert "`dask worker … --name us-1`" in said
    fabric.stations["us-1"] = RegionStation(Agents())
    assert ENGINE.check_workers(fabric, ACCESS) == ()


def test_a_resume_waits_for_a_scheduler_and_workers_that_are_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is virtual: a scheduler is back after 30 s, its workers 20 s later. A plain start refuses at once."""
    fabric, now = Fabric(), [0.0]

    def passes(seconds: float) -> None:
        now[0] += seconds
        if now[0] >= 50:
            fabric.stations |= {"eu-1": RegionStation(Agents()), "us-1": RegionStation(Agents())}

    def made(address: str, _certificates: object) -> Fabric:
        if now[0] < 30:
            raise UsageError("scheduler-unusable", f"{address} did not answer as a Dask scheduler")
        return fabric

    monkeypatch.setattr(dask_engine, "monotonic", lambda: now[0])
    monkeypatch.setattr(dask_engine, "sleep", passes)
    monkeypatch.setattr("rollout.features.regions.client.scheduler.DaskScheduler", made)
    with pytest.raises(UsageError, match="scheduler-unusable"):
        ENGINE.connected()
    assert now == [0.0]
    patient = replace(ENGINE, patience=ENGINE_PATIENCE)
    assert patient.check_workers(patient.connected(), ACCESS) == ()
    assert now == [50.0]


def test_a_scheduler_that_stays_away_is_refused_after_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def passes(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(dask_engine, "monotonic", lambda: now[0])
    monkeypatch.setattr(dask_engine, "sleep", passes)
    with pytest.raises(UsageError, match="region-without-worker"):
        replace(ENGINE, patience=ENGINE_PATIENCE).check_workers(Fabric(), ACCESS)
    assert now == [ENGINE_PATIENCE]


def test_without_any_worker_the_refusal_says_so() -> None:
    said = refused(Fabric())
    assert "zone eu-a: no worker is connected; zone us: no worker is connected. No worker can be used" in said


def test_nodes_without_a_zone_in_the_inventory_are_named_in_the_refusal() -> None:
    access = access_to(
        load_inventory("cluster: c\napiServer: v1.34.2\nnodes: {n1: {}}\n", "c.yaml"), "program", ("n1",)
    )
    with pytest.raises(UsageError, match="zone none, that of nodes without a zone in the inventory: no worker is"):
        ENGINE.check_workers(Fabric({"eu-1": RegionStation(Agents())}), access)


def test_a_worker_with_the_name_of_a_zone_that_serves_more_than_the_zone_is_noticed() -> None:
    targets = {zone: replace(NODE, name=zone, zone=zone) for zone in ("eu-1", "eu-2")}
    access = NodeAccess("program", targets, dict.fromkeys(targets, False))
    fabric = Fabric({name: RegionStation(Agents()) for name in ("eu-1", "eu-2")})
    first, second = ENGINE.check_workers(fabric, access)
    assert first == (
        "zone eu-1: worker eu-1 serves the whole region eu, together with eu-2; "
        "a worker of this zone alone has a name such as eu-1-1"
    )
    assert second.startswith("zone eu-2: worker eu-2 serves the whole region eu")
    fabric.stations = {name: RegionStation(Agents()) for name in ("eu-1-1", "eu-2-1")}
    assert ENGINE.check_workers(fabric, access) == ()


def test_a_worker_of_another_version_is_no_worker_of_its_zone() -> None:
    fabric = Fabric({name: RegionStation(Agents()) for name in ("eu-1", "us-1")})
    fabric.identities["us-1"] = replace(decode_identity(remote.identify()), version="0.0.1")
    assert f"zone us: us-1: it has rollout 0.0.1, not {__version__}" in refused(fabric)
