"""A fleet in memory that grows, shrinks and replaces machines while runs go on: after each step every node is told as a model does.

``tests/story/test_owned_walk.py`` walks over the lab, with sshd and processes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rollout.app.planning import plan_and_apply
from rollout.core.presentation.nothing_to_do import NothingToDo
from rollout.features.own.asking.owned import OwnedComparison, compare_owned, plan_newcomers
from tests.app.call import CLUSTER
from tests.app.test_planning import Reader
from tests.features.own.kubelets import Fleet, apply_newcomers, machine, owning
from tests.growing import GrowingFleet, Machine
from tests.kubelet.nodes import CONFIG, CONFIG_TEXT
from tests.sampling import dice, examples

POOL = tuple(f"n{at}" for at in range(1, 7))
STEPS = 8


@dataclass
class Walk(GrowingFleet):
    fleet: Fleet
    model: dict[str, Machine] = field(default_factory=lambda: {name: Machine() for name in POOL})

    def list(self, name: str, *, listed: bool) -> None:
        self.model[name].listed = listed
        self.fleet.lists(*self.listed())

    def replace(self, name: str) -> None:
        model = self.model[name]
        model.number, model.is_new = model.number + 1, False
        self.fleet.machines[name] = machine(name, model.number)

    def edit(self, name: str) -> None:
        self.fleet.machines[name].files[CONFIG] = CONFIG_TEXT.encode()
        self.model[name].is_new = False

    def newcomers(self) -> None:
        those = [name for name, each in self.model.items() if each.is_newcomer]
        planned = plan_newcomers(self.fleet, self.compared(), "", "").planned
        assert (set(planned.plan.nodes) if planned else set()) == set(those)
        if planned is not None:
            apply_newcomers(self.fleet, planned.plan)
        for name in those:
            self.model[name].apply()

    def everything(self) -> None:
        ended = plan_and_apply(self.fleet, Reader(), CLUSTER, "", (), "")
        old = [each for each in self.model.values() if each.listed and not each.is_new]
        assert isinstance(ended, NothingToDo) == (not old)
        for each in old:
            each.apply()

    def compared(self) -> OwnedComparison:
        _, found = compare_owned(self.fleet, CLUSTER, "")
        assert found is not None
        return found

    def check(self, step: str) -> None:
        found = self.compared().found
        told = {each.name: each.standing.value for each in found.nodes}
        assert told == {name: each.standing for name, each in self.model.items() if each.standing}, step
        lacking = {name for name, each in self.model.items() if each.listed and not each.is_new}
        assert set(found.lacking) == lacking, step


@pytest.mark.parametrize("number", range(examples(2)))
def test_each_node_is_told_as_it_is_while_the_fleet_changes(tmp_path: Path, number: int) -> None:
    fleet = owning(tmp_path, *POOL[:3])
    for name in POOL:
        fleet.machines.setdefault(name, machine(name))
    walk = Walk(fleet)
    for name in POOL[:3]:
        walk.model[name].listed = True
        walk.model[name].apply()
    draw, steps = dice(f"owned fleet {number}"), []
    for _ in range(STEPS):
        steps.append(walk.step(draw))
        walk.check(", ".join(steps))
