"""Clocks that differ by anything, and wall clocks that jump: a call is carried out if it is young, and never if it is old."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from rollout.core.model.report import AgentRequest, RemoteCommand
from rollout.features.regions.client import worker as remote
from rollout.features.regions.client.exchanges import MEASURES
from rollout.features.regions.client.nodes import TRAVEL, RegionNodes
from rollout.features.regions.client.worker import LEAST_SECONDS, RegionStation
from tests.app.agents import Agents
from tests.features.regions.client.test_region_nodes import NODE, STATUS, Fabric
from tests.sampling import dice, examples

OFFSETS = (0.0, 60.0, -60.0, 3600.0, -3600.0, 1e7, -1e7)
FORTH = (0.0, 1.0, 6.0, 9.0, 11.0, 25.0, 35.0, 60.0, 1800.0)
BACK = (0.0, 0.5, 4.0, 12.0)
APPLY = replace(STATUS, request=AgentRequest(STATUS.request.program, "apply tx=t1") if STATUS.request else None)


@dataclass
class SlowFabric(Fabric):
    """``now``: the true time. The next message takes ``forth`` seconds to its worker, and its reply ``back``."""

    now: float = 1e6
    forth: float = 0.0
    back: float = 0.0

    def call(self, function: Callable[..., bytes], worker: str, data: tuple[bytes, ...], seconds: float) -> bytes:
        if function is remote.exchange:
            self.now, self.forth = self.now + self.forth, 0.0
        reply = super().call(function, worker, data, seconds)
        if function is not remote.release:
            self.now += self.back
        return reply


@dataclass
class Clocked:
    """One worker, with a clock that is ``offset`` ahead of the controller's."""

    offset: float
    agents: Agents = field(default_factory=Agents)
    backs: list[float] = field(default_factory=list)  # of each reply so far

    def __post_init__(self) -> None:
        self.fabric = SlowFabric()
        station = RegionStation(self.agents, clock=lambda: self.fabric.now + self.offset)
        self.fabric.stations["eu-1"] = station
        self.nodes = RegionNodes(self.fabric, Agents(), lambda _words: None, clock=lambda: self.fabric.now)

    def is_carried_out(self, command: RemoteCommand, forth: float, back: float) -> bool:
        before = len(self.agents.asked)
        self.fabric.forth, self.fabric.back = forth, back
        self.nodes.run(replace(NODE, controller_ssh=False), command)
        self.backs += [back] * (1 if self.backs else 2)  # the first call also asks the worker what it is
        return len(self.agents.asked) > before


@pytest.fixture
def _wall_clock_that_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = Random(7)  # noqa: S311 - reproducible
    monkeypatch.setattr(time, "time", lambda: jumps.choice((-3600.0, 0.0, 60.0, 1e9, 2e9)))


@pytest.mark.usefixtures("_wall_clock_that_jumps")
@pytest.mark.parametrize("number", range(examples(20)))
def test_a_call_is_carried_out_while_it_is_young_and_never_later(number: int) -> None:
    drawn = dice(f"clocks {number}")
    at = Clocked(drawn.choice(OFFSETS) + drawn.random())
    for _ in range(12):
        command, longest = drawn.choice(((APPLY, TRAVEL), (STATUS, STATUS.deadline + TRAVEL - LEAST_SECONDS)))
        forth, back, known = drawn.choice(FORTH), drawn.choice(BACK), at.backs[-MEASURES:]
        carried = at.is_carried_out(command, forth, back)
        told = f"offset {at.offset:g}: after {forth:g} s, replies took {known}"
        if forth > longest:
            assert not carried, told
        elif known and forth + min(known) < longest - 0.1:
            assert carried, told


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_worker_is_used_whatever_its_clock_says(offset: float) -> None:
    assert Clocked(offset).is_carried_out(APPLY, 0.0, 0.0)
