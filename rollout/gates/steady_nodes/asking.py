"""The gate that reads the Nodes that a run has changed.

What it has read is in memory, and goes into the baseline of each wave: a new controller goes on with what the journal has of
the newest wave. What was read since then is lost with a controller, but no node is: the state of the run has their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any

from rollout.app.asked_gate import AskedGate, Asker, WaveRun
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateScope
from rollout.core.model.live import LiveNode
from rollout.core.model.playbook import Cause, Scope
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.run.commands import JudgeWave, OpenWave
from rollout.errors import RemoteError
from rollout.gates.steady_nodes.query import SteadyQuery, SteadyWatch, judge_nodes, kept, read_back, steady_watch

Nodes = Callable[[], tuple[LiveNode, ...]]


@dataclass(slots=True)
class SteadyGate(AskedGate):
    """``seen``: wave → its changed nodes, by their newest reading. It is shared by all that ask in one process."""

    nodes: Nodes
    seen: dict[int, dict[str, SteadyWatch]]
    query: SteadyQuery
    timeout: float
    run: WaveRun

    def remember(self, earlier: Any) -> None:
        if not self.seen:
            self.seen.update(read_back(earlier))

    def before(self, command: OpenWave) -> tuple[Verdict, str, Any] | None:
        """The nodes of earlier waves; before the first one there are none.

        An API server that does not answer halts no run here if each node of the wave reads its own baseline there before it is touched.
        """
        names = {wave: nodes for wave, nodes in self._names(command.changed).items() if wave != command.wave}
        if not any(names.values()):
            return None
        if not any(gate.scope is GateScope.NODE and gate.asks.asks_api for gate in self.run.plan.gates):
            found = self.run.answer(lambda _seconds: self.nodes(), self.timeout)
            return *self._judged(names, found), kept(self.seen)
        try:
            return *self._judged(names, self.nodes()), kept(self.seen)
        except RemoteError as error:
            return Verdict.PASS, f"not read: {error}", kept(self.seen)

    def now(self, command: JudgeWave, before: Any) -> Judged:  # noqa: ARG002 - it is in memory
        names = self._names(command.changed)
        nodes = self.run.answer(lambda _seconds: self.nodes(), self.timeout)
        return self._judged({**names, command.wave: command.touched}, nodes)

    def _names(self, changed: tuple[tuple[str, ...], ...]) -> dict[int, tuple[str, ...]]:
        """Wave → its changed nodes. A new controller may have no reading of some."""
        return {wave: tuple(nodes) for wave, nodes in self.seen.items()} | dict(enumerate(changed))

    def _judged(self, names: dict[int, tuple[str, ...]], found: tuple[LiveNode, ...]) -> Judged:
        live = {node.name: node for node in found}
        for wave, those in names.items():
            known = self.seen.get(wave, {})
            self.seen[wave] = {name: steady_watch(known.get(name), live.get(name)) for name in those}
        return judge_nodes(self._every(), self._most())

    def _every(self) -> Iterable[tuple[str, SteadyWatch]]:
        return ((name, node) for wave in sorted(self.seen) for name, node in self.seen[wave].items())

    def _most(self) -> int:
        """The smallest budget of the fleet for nodes that are unhealthy."""
        plan = self.run.plan
        fleet = [each for each in plan.budgets if each.scope is Scope.FLEET and Cause.UNHEALTHY in each.causes]
        shares = [budget.share.of(len(plan.nodes)) for budget in fleet]
        return min(shares, default=1)


@dataclass(frozen=True, slots=True)
class _SteadyNodes:
    nodes: Nodes
    seen: dict[int, dict[str, SteadyWatch]] = field(default_factory=dict)

    def __call__(self, query: SteadyQuery, timeout: float, run: WaveRun) -> SteadyGate:
        return SteadyGate(self.nodes, self.seen, query, timeout, run)


def connected(nodes: Nodes) -> Asker:
    return _SteadyNodes(nodes)
