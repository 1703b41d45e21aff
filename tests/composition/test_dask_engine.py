"""What is refused when a plan is made: zones without a worker that can be used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout import __version__
from rollout.adapters.regions import worker as remote
from rollout.adapters.regions.messages import decode_identity
from rollout.adapters.regions.worker import RegionStation
from rollout.app.node_worker import NodeAccess
from rollout.composition.dask_engine import DaskEngine
from rollout.errors import UsageError
from tests.adapters.regions.test_region_nodes import NODE, Fabric
from tests.app.agents import Agents

ENGINE = DaskEngine("tcp://127.0.0.1:8786", None)
TARGETS = {zone: replace(NODE, name=zone, zone=zone) for zone in ("eu-a", "us")}
ACCESS = NodeAccess("program", TARGETS, dict.fromkeys(TARGETS, False))


def refused(fabric: Fabric) -> str:
    with pytest.raises(UsageError) as raised:
        ENGINE.check_workers(fabric, ACCESS)
    assert raised.value.reference == "region-without-worker"
    return str(raised.value)


def test_a_zone_without_a_worker_is_refused_by_its_name() -> None:
    fabric = Fabric({"eu-1": RegionStation(Agents())})
    assert "nothing was touched: zone us: no worker is connected" in refused(fabric)
    fabric.stations["us-1"] = RegionStation(Agents())
    ENGINE.check_workers(fabric, ACCESS)


def test_a_worker_of_another_version_is_no_worker_of_its_zone() -> None:
    fabric = Fabric({name: RegionStation(Agents()) for name in ("eu-1", "us-1")})
    fabric.identities["us-1"] = replace(decode_identity(remote.identify()), version="0.0.1")
    assert f"zone us: us-1: it has rollout 0.0.1, not {__version__}" in refused(fabric)
