"""A plan rehearsed on model nodes: the real machine and driver, the plan's waves, limits and budgets, given faults.

A node takes as long as the last run measured, else the plan's estimate. The run begins at ``start`` and waits for the
change windows of its plan. There is no operator: a wave that holds is continued at once, a killed controller is followed by the next, a halted run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

from rollout.app.ports import Observer, StartTimes, Zones
from rollout.core.model.plan import Plan
from rollout.core.model.spans import Span
from rollout.core.plans.estimate import back_seconds, forth_seconds
from rollout.core.run.capacity import burst
from rollout.core.run.events import Event
from rollout.core.run.order import apply_order
from rollout.core.run.state import Order, Phase, RunState
from rollout.core.text.terminal import counted
from rollout.errors import StateError
from rollout.simulator.controller import EPOCH, Controller, Surroundings
from rollout.simulator.faults import World, set_up
from rollout.simulator.fleet import ModelFleet, ModelLink
from rollout.simulator.forecast import Forecast, ForecastMoment, foresee
from rollout.simulator.journal import ModelJournal
from rollout.simulator.machine import Kubelet, Restart
from rollout.simulator.node import ModelNode
from rollout.simulator.open_minutes import ModelTimes
from rollout.simulator.scenario import Fault, FaultKind
from rollout.simulator.timeline import Timeline

SSH_SECONDS = 0.25
"""Connecting and starting the agent."""

STAGE_SECONDS = 0.5
SPARE = 32
"""Parallel commands of a controller beyond the in-flight limit."""

MANY, BUSY = 300, 0.0005
"""From this many nodes on a controller reads answers in batches; and the seconds per node between batches."""

LOOKS, LOOKS_CLOSED = 1.0, 60.0
"""Seconds between two checks whether the run waits to be continued; the second while its change window is closed."""

LONGEST = 14 * 86400.0
"""Seconds of the nodes' time after which a rehearsal is aborted."""


@dataclass
class PlanRehearsal:
    """One plan, once."""

    plan: Plan
    faults: Sequence[Fault]
    moments: list[ForecastMoment] = field(default_factory=list)
    away: dict[str, list[Span]] = field(default_factory=dict)
    current: Controller | None = None
    start: float = EPOCH  # when the run begins, in seconds since the epoch
    zones: Zones | None = None
    times: Callable[[Zones], StartTimes] = ModelTimes  # what evaluates the conditions of the plan at the nodes' time

    def __post_init__(self) -> None:
        self.order: Order = apply_order("rehearsal", self.plan)
        self.timeline = Timeline()
        self.journal = ModelJournal(self.timeline)
        start = max(0.1, forth_seconds(self.plan) - STAGE_SECONDS - 2 * SSH_SECONDS)
        start = min(start, self.plan.guard / 2)  # an estimate is no reason for a guard to fire
        back = max(0.1, back_seconds(self.plan) - 2 * SSH_SECONDS)
        nodes = {name: self._node(name, start, back) for name in self.order.nodes}
        links = {name: ModelLink(SSH_SECONDS) for name in self.order.nodes}
        self.fleet = ModelFleet(self.timeline, nodes, links, Random(self.order.run))  # noqa: S311 - reproducible
        # A longer batch than the pace's window would restart fewer nodes than the pace allows.
        grain = min(len(nodes) * BUSY, burst(self.plan.limits) / self.plan.limits.pace) if len(nodes) > MANY else 0.0
        self.room = Surroundings(self.timeline, self.fleet, self.tell, longest=5.0, longest_closed=60.0, grain=grain)
        self._since: dict[str, float] = {}

    def _node(self, name: str, start: float, back: float) -> ModelNode:
        kubelet = Kubelet(start=start, back=back)
        node = ModelNode(name, self.timeline, restarted=self._restarted, kubelet=kubelet, stage=STAGE_SECONDS)
        node.told = partial(self._of_node, node)
        drain = self.plan.nodes[name].drain
        if drain is not None:
            node.pods_end_in = self.plan.drain.within if drain.seconds is None else drain.seconds
        return node

    def tell(self, who: str, words: str) -> None:
        self.moments.append(ForecastMoment(self.timeline.now, f"{who}: {words}"))

    def _restarted(self, node: ModelNode, _restart: Restart) -> None:
        """Away at least until it has settled."""
        settled = node.away_until + self.order.nodes[node.name].settle
        self.away.setdefault(node.name, []).append((self.timeline.now, settled))
        self._since.setdefault(node.name, self.timeline.now)

    def _of_node(self, node: ModelNode, _words: str) -> None:
        """And until it is confirmed or reverted; if drained, from its cordon on."""
        if node.cordoned:
            self._since.setdefault(node.name, self.timeline.now)
            self.away.setdefault(node.name, [])
        elif node.under_way is None and node.name in self._since:
            self.away[node.name].append((self._since.pop(node.name), self.timeline.now))

    def run(self) -> Forecast:
        """To its end, or until no controller would resume it."""
        world = World(self.timeline, self.fleet, self.journal, self.tell, self._ask, lambda: None)
        for fault in self.faults:
            set_up(fault, world)
        self._attend()
        deaths = sorted((fault for fault in self.faults if fault.kind is FaultKind.KILLED), key=lambda fault: fault.at)
        state, work = None, "begin"
        for number in range(1, len(deaths) + 3):
            death = next((fault for fault in deaths if fault.at >= self.timeline.now), None)
            name = f"controller {number}"
            interrupts = [fault.at for fault in self.faults if fault.kind is FaultKind.INTERRUPTED]
            controller = Controller(
                name, self.room, self.journal, self.order, width=self.order.limits.in_flight + SPARE,
                interrupt_at=min(interrupts, default=float("inf")), observers=(Teller(self),),
                dies_at=float("inf") if death is None else death.at,
                clock_ahead=self.start - EPOCH, conditions=self.plan.conditions, times=self.times, zones=self.zones,
            )  # fmt: skip
            self.current = controller
            if work == "begin":
                controller.begin(1)
            else:
                self.tell(controller.name, "resumes")
                controller.go_on()
            state, work = controller.end or controller.seen, "go on"
            if controller.end is not None or controller.stopped != "killed" or death is None:
                break
            self.timeline.run(self.timeline.now + death.lasting)
        if state is None:
            raise StateError("rehearsal-unfinished", "the controller was killed before its first event")
        for name, since in self._since.items():
            self.away[name].append((since, self.timeline.now))
        return foresee(state, self.start, self.timeline.now, self.away, self.moments)

    def _attend(self) -> None:
        if self.timeline.now > LONGEST:
            raise StateError("rehearsal-unfinished", "after two weeks of the nodes' time the run has not ended")
        seen = self.current.seen if self.current else None
        if seen is not None and seen.paused is not None and seen.ending is None:
            self._ask("continue", "")
        closed = seen is not None and seen.closed is not None
        self.timeline.after(LOOKS_CLOSED if closed else LOOKS, self._attend)

    def _ask(self, word: str, revert: str) -> None:
        if self.current is not None and self.current.alive:
            self.current.desk.ask(self.order.run, word, "the rehearsal", "", revert)


@dataclass(frozen=True)
class Teller(Observer):
    """Notes when waves begin, when the run waits, and when and where it halts."""

    rehearsal: PlanRehearsal

    def on_event(self, event: Event, before: RunState, after: RunState) -> None:  # noqa: ARG002 - the port's signature
        tell = partial(self.rehearsal.tell, "run")
        waves = after.order.waves
        begins = before.phase is Phase.OPENING and after.phase is Phase.RUNNING and after.reached == 0
        if (begins or after.reached > before.reached) and after.reached < len(waves):
            tell(f"wave {waves[after.reached].name} begins, {counted(len(waves[after.reached].nodes), 'node')}")
        if after.paused is not None and before.paused is None:
            tell(f"waits: {after.paused.reason}; the rehearsal continues it")
        if after.closed is not None and before.closed is None:
            tell(f"waits for its change window: {after.closed.why}")
        if after.closed is None and before.closed is not None:
            tell("its change window opens")
        if after.halt is not None and before.halt is None:
            tell(f"halts: {after.halt}")

    def on_end(self, state: RunState) -> None:
        """The end is reported with the rest."""
