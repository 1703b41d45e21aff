"""A fleet that grows, shrinks and replaces machines while runs go on: after each step `verify` tells every node as a model does."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.controllers import PATIENCE, until
from tests.growing import GrowingFleet, Machine
from tests.story.conftest import Site, served
from tests.story.test_faults import policy
from tests.story.test_owned import APPLY, joins

pytestmark = [pytest.mark.process, pytest.mark.night]

POOL = ("small-001", "small-002", "small-003", "small-061", "small-062")
FILES = ("var/lib/kubelet/config.yaml", "etc/default/kubelet")
STEPS = 8


@dataclass
class Walk(GrowingFleet):
    site: Site
    model: dict[str, Machine] = field(default_factory=lambda: {name: Machine() for name in POOL})

    least = 2

    def __post_init__(self) -> None:
        self.old = {name: {file: (self.site.node(name) / file).read_bytes() for file in FILES} for name in POOL}

    def list(self, name: str, *, listed: bool) -> None:
        self.model[name].listed = listed
        joins(self.site, *self.listed())

    def replace(self, name: str) -> None:
        """Another machine with the old files comes under the same name."""
        machine, node = self.model[name], self.site.node(name)
        for file, content in self.old[name].items():
            (node / file).write_bytes(content)
        shutil.rmtree(node / "var/lib/rollout", ignore_errors=True)
        machine.number, machine.is_new = machine.number + 1, False
        (node / "etc/machine-id").write_text(f"{POOL.index(name):016x}{machine.number:016x}\n")
        self.site.fault(name, "reboot", "--after", "0.5")
        until(lambda: self.site.is_well(name), PATIENCE, "the new machine runs")

    def edit(self, name: str) -> None:
        """Somebody restores an old value by hand."""
        file = self.site.node(name) / FILES[0]
        file.write_text(file.read_text().replace("serializeImagePulls: false", "serializeImagePulls: true"))
        self.model[name].is_new = False

    def newcomers(self) -> None:
        done = self.site.rollout("plan", "--cluster", "small", "--newcomers", "--out", "new.json")
        those = [machine for machine in self.model.values() if machine.is_newcomer]
        assert done.code == 0, done.all
        assert ("nothing to plan" in done.out) == (not those), done.all
        if those:
            assert self.site.rollout("apply", "new.json", "--yes").code == 0
        for machine in those:
            machine.apply()

    def everything(self) -> None:
        """An ordinary run over all that differ."""
        done = self.site.rollout(*APPLY)
        assert done.code == 0, done.all
        for machine in self.model.values():
            if machine.listed and not machine.is_new:
                machine.apply()

    def check(self, step: str) -> None:
        done = self.site.rollout("verify", "--cluster", "small", "-o", "json")
        told = {node["name"]: node["standing"] for node in done.json()["owned"]["nodes"]}
        wanted = {name: machine.standing for name, machine in self.model.items() if machine.standing}
        assert told == wanted, f"{step}: {done.all}"
        lacking = any(machine.listed and not machine.is_new for machine in self.model.values())
        # a changed file is drift of its own, also where the owned value is in force
        assert (done.code == 10) == lacking, f"{step}: {done.all}"


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    with served(tmp_path, ",".join(POOL)) as site:
        policy(site, "perRack: 25%", "perRack: 100%")
        found = Walk(site)
        for name in POOL[:3]:
            found.list(name, listed=True)
        found.everything()
        assert site.rollout("own").code == 0
        yield found


@pytest.mark.parametrize("seed", range(3))
def test_each_node_is_told_as_it_is_while_the_fleet_changes(walk: Walk, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - draws steps
    walk.check("owned")
    for number in range(STEPS):
        walk.check(f"seed {seed}, step {number}: {walk.step(draw)}")
