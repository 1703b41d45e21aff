"""Runs of a small plan over agents in memory, with a real journal: the code between a decision and the nodes is real."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.following import replay
from rollout.app.ports import Journal, Ran, Worker
from rollout.app.rollbacks import rollback_order
from rollout.app.runs import Tools, resumable, resume, start_apply, start_revert
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import PlannedNode, Wave
from rollout.core.model.playbook import ALL_CAUSES, Budget, Limits, Scope, Share
from rollout.core.run.commands import Ask, Command
from rollout.core.run.events import Event
from rollout.core.run.state import RunState, Verb
from rollout.gates.table import DEFAULT_GATES
from tests.app.agents import MACHINE, Agents, access_to
from tests.app.test_node_worker import PLAN
from tests.kubelet.nodes import inventory

NAMES = ("n1", "n2", "n3")
ACCESS = access_to(*NAMES)
FORGIVING = (Budget(Scope.FLEET, ALL_CAUSES, Share(count=3)),)
SMALL = replace(
    PLAN,
    nodes={name: PlannedNode(name, name, "r", "z", "g1", min(at, 1), MACHINE) for at, name in enumerate(NAMES)},
    waves=(Wave("canary", ("n1",), 1.0), Wave("rest", ("n2", "n3"), 1.0)),
    racks={"r": 3},
    budgets=FORGIVING,
    gates=DEFAULT_GATES,
    limits=Limits(per_rack=Share(count=3)),
    rehearsal=False,
)


class KilledError(BaseException):
    """The controller dies. (No handler in rollout may catch it.)"""


@dataclass
class Site:
    """``dies_at``: the controller is killed after this node did this verb, before it reads the answer."""

    journal: Journal
    nodes: Agents = field(default_factory=Agents)
    dies_at: tuple[str, Verb] | None = None
    at: float = 1000.0
    answers: list[Event] = field(default_factory=list)
    runs: int = 0

    # Engine and clock: one command after the other, and every look for answers takes a second.
    def submit(self, worker: Worker, command: Command) -> None:
        self.answers.append(worker(command))
        if isinstance(command, Ask) and (command.node, command.verb) == self.dies_at:
            raise KilledError

    def collect(self, timeout: float) -> tuple[Event, ...]:
        self.at += 1.0
        found, self.answers = tuple(self.answers), []
        return found

    def close(self) -> None: ...

    def now(self) -> float:
        return self.at

    def wall(self) -> str:
        return ""

    # Local: no wave gate of these plans is a command.
    def run(self, *_words: object) -> Ran:
        raise AssertionError("nothing is run on the controller")

    def tools(self) -> Tools:
        return Tools(
            self.journal, self, self.nodes, self, self, (), lambda: False, "me@here", "slow pulls", self._new_run
        )

    def _new_run(self) -> str:
        self.runs += 1
        return f"r{self.runs}"

    # What an operator does.
    def apply(self) -> RunState:
        return start_apply(SMALL, ACCESS, self.tools())

    def killed(self, node: str, verb: Verb) -> RunState:
        """A run with a killed controller, from its journal."""
        self.dies_at = (node, verb)
        try:
            self.apply()
        except KilledError:
            self.answers, self.dies_at = [], None
            return replay(self.journal, f"r{self.runs}")
        raise AssertionError("it did not die")

    def resume(self, run: str) -> RunState:
        return resume(resumable(self.journal, run), ACCESS, self.tools())

    def roll_back(self, run: str, names: Sequence[str] = NAMES) -> RunState:
        state = replay(self.journal, run)
        order = rollback_order(state, self._new_run(), frozenset(names), fleet(), SMALL.limits, force=False)
        return start_revert(order, state.counter + 1, ACCESS, self.tools())


def fleet() -> Inventory:
    """The inventory that the plan was made for."""
    found = inventory(3)
    nodes = {name: replace(node, name=name) for name, node in zip(NAMES, found.nodes.values(), strict=True)}
    return replace(found, cluster=SMALL.cluster, digest=SMALL.inventory_digest, nodes=nodes)


def at_work(journal: SqlJournal, run: str) -> None:
    """A live controller holds the run: it is this process."""
    journal.acquire(SMALL.cluster, run)


def held_by_another_process(folder: Path, cluster: str, run: str) -> None:
    """A live controller holds the run: it is the parent of this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", os.getppid)
        journal = SqlJournal(folder)
    journal.acquire(cluster, run)
    journal.close()
