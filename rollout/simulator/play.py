"""Plays a scenario: controllers come and go until the run has ended, then journal and nodes are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Annotated

from rollout.app.following import replay
from rollout.app.rollbacks import RunsToRevert, emergency, pick, rollback_order
from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.playbook import EMERGENCY_LIMITS
from rollout.core.model.report import Outcome as Answer
from rollout.core.model.report import Report
from rollout.core.model.snapshot import Token
from rollout.core.plans.receipt_history import on_nodes
from rollout.core.run.events import ENDED_HERE
from rollout.core.run.state import Ending, Goal, Order, Phase, RunState
from rollout.core.text.documents import Inline, PrintedKey, Shown
from rollout.errors import UsageError
from rollout.simulator.controller import Controller, Strike, Surroundings
from rollout.simulator.faults import World, set_up
from rollout.simulator.fleet import ModelFleet, ModelLink, uncordoned
from rollout.simulator.fleet_laws import (
    Discipline,
    LawBrokenError,
    LawWatch,
    Replay,
    broken,
    untruths,
    went_back,
)
from rollout.simulator.journal import ModelJournal
from rollout.simulator.machine import Kubelet, Restart
from rollout.simulator.node import ModelNode
from rollout.simulator.scenario import Fault, FaultKind, Scenario
from rollout.simulator.timeline import Task, Timeline

LONGEST = 8000.0
"""Seconds after which a run counts as endless."""

MOST_CONTROLLERS = 40
ATTENDS = 60.0
"""Seconds between two checks of the operator that continues paused runs."""


@dataclass(frozen=True, slots=True)
class Told:
    at: float
    who: str
    words: str

    def __str__(self) -> str:
        return f"{self.at:8.2f} s  {self.who}: {self.words}"


@dataclass
class PlayOutcome:
    """How a play went. ``broken`` is the law that broke; ``""``: none."""

    scenario: Scenario
    broken: str = ""
    story: list[Told] = field(default_factory=list)
    events: int = 0
    controllers: int = 0
    killed: int = 0
    ending: str = ""
    seconds: float = 0.0


_FAULT = Shown(
    "``at`` counts seconds, or actions of a controller, or requests: see ``simulator.scenario.Fault``.",
    ("kind", "node", "at", PrintedKey("lasting", "lasting_seconds"), "amount", "words"),
)
_TOLD = Shown("", (PrintedKey("at", "after_seconds"), "who", PrintedKey("words", "text")))
_OUTCOME = Shown(
    "",
    (
        "scenario.seed", PrintedKey("broken", or_null=True), "ending",
        PrintedKey("scenario.faults", kind=tuple[Annotated[Fault, _FAULT], ...]),
        PrintedKey("story", kind=tuple[Annotated[Told, _TOLD], ...]),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlayDocument:
    """The story of one seed. ``broken``: the law that broke, ``None`` if every law was kept."""

    outcome: Inline[Annotated[PlayOutcome, _OUTCOME]]


@dataclass
class Play:
    scenario: Scenario
    story: list[Told] = field(default_factory=list)
    controllers: list[Controller] = field(default_factory=list)
    disciplines: list[Discipline] = field(default_factory=list)
    guests: list[Controller] = field(default_factory=list)
    current: Controller | None = None
    taken_over: bool = False
    rolled_back: bool = False
    ended: str = "unfinished"
    silent: frozenset[str] = frozenset()  # nodes that an emergency could not reach, and reports

    def __post_init__(self) -> None:
        self.timeline = Timeline()
        self.journal = ModelJournal(self.timeline)
        names = tuple(self.scenario.order.nodes)
        nodes = {name: self._node(name) for name in names}
        links = {name: ModelLink(0.05 + self._dice(name).random() * 0.3) for name in names}
        self.fleet = ModelFleet(self.timeline, nodes, links, self._dice("fleet"))
        self.watch = LawWatch(self.fleet, state=self._state_of)
        self.fleet.begun = lambda sender, ask: self.watch.begun(sender, ask, self._journals[sender.run])
        self.fleet.cordoned = self.watch.cordoned
        self._journals: dict[str, ModelJournal] = {}
        self.room = Surroundings(self.timeline, self.fleet, self.tell)
        self._kills = [fault for fault in self.scenario.faults if fault.kind is FaultKind.KILLED]
        self._waits: list[float] = []
        self._unlocks = sum(fault.kind is FaultKind.UNLOCKED for fault in self.scenario.faults)

    def _dice(self, of: str) -> Random:
        return Random(f"{self.scenario.seed} {of}")  # noqa: S311 - reproducible on purpose

    def _node(self, name: str) -> ModelNode:
        dice = self._dice(name)
        return ModelNode(
            name, self.timeline, partial(self.tell, name), restarted=self._restarted,
            kubelet=Kubelet(start=1.0 + dice.random() * 6), stage=0.1 + dice.random(),
        )  # fmt: skip

    def tell(self, who: str, words: str) -> None:
        self.story.append(Told(self.timeline.now, who, words))

    def _state_of(self, run: str) -> RunState | None:
        acting = (
            controller
            for controller in self.controllers
            if controller.order.run == run and controller.alive and not controller.frozen
        )
        return next((each.seen for each in acting), None)

    def _restarted(self, node: ModelNode, restart: Restart) -> None:
        self.watch.restarted(node, restart)

    def run(self) -> PlayOutcome:
        law = ""
        try:
            world = World(self.timeline, self.fleet, self.journal, self.tell, self.ask, self.begin_emergency)
            for fault in self.scenario.faults:
                set_up(fault, world)
            self._attend()
            order = self.scenario.order
            state = self._carry(order, 1, self.journal)
            for fault in self.scenario.faults:
                if fault.kind is FaultKind.ROLLBACK and not self.taken_over and state is not None:
                    state = self._roll_back(state)
                    break
            self.ended = str(state.ending) if state is not None else "taken over"
            self._settle(state)
        except LawBrokenError as error:
            law = str(error)
        except Exception as error:  # noqa: BLE001 - any exception of the machine is a broken law
            law = f"the run raised {type(error).__name__}: {error}"
        if law:
            self.tell("law", law)
        return PlayOutcome(
            self.scenario,
            law,
            self.story,
            sum(discipline.events for discipline in self.disciplines),
            len(self.controllers),
            sum(controller.stopped == "killed" for controller in self.controllers),
            self.ended,
            self.timeline.now,
        )

    def _carry(self, order: Order, counter: int, journal: ModelJournal, *, take_over: bool = False) -> RunState | None:
        """Controller after controller, until the run has ended and none would resume it."""
        resumes = self.scenario.seed % 3
        while sum(controller.stopped != "locked" for controller in self.controllers) < MOST_CONTROLLERS:
            controller = self._controller(order, journal, take_over=take_over)
            self._let(controller, counter)
            if controller.end is not None:
                ending = controller.end.ending
                unlocked = _was_unlocked(controller.end)
                if self.taken_over or not (unlocked or (resumes and ending in (Ending.HALTED, Ending.INTERRUPTED))):
                    return controller.end
                resumes -= not unlocked
            if controller.stopped == "killed" and self._unlocks:
                self._unlock(order.run)
            self.timeline.run(self.timeline.now + self._pause_after(controller))
            if self.taken_over:
                return None
        broken("law 1: the run never ends")
        return None

    def _unlock(self, run: str) -> None:
        """What `rollout cluster unlock` does: the claims that the dead controller left end in the run's own name, with a newer token."""
        self._unlocks -= 1
        self.tell("operator", f"unlocks the cluster from {run}")
        reached = [node for node in self.fleet.nodes.values() if self._read(node).outcome is Answer.DONE]
        counter = max((node.token.counter for node in reached), default=0) + 1
        for node in reached:
            if node.token.run == run and node.token.live:
                node.token = Token(counter, run, live=False)

    def _pause_after(self, controller: Controller) -> float:
        if controller.stopped == "killed" and self._waits:
            return self._waits.pop(0)
        return 20.0 if controller.stopped == "journal-away" else 5.0

    def _controller(self, order: Order, journal: ModelJournal, *, take_over: bool, host: str = "desk") -> Controller:
        number = len(self.controllers) + 1
        ahead = sum(f.amount for f in self.scenario.faults if f.kind is FaultKind.NEXT_CLOCK) if number > 1 else 0.0
        discipline = Discipline(journal, order.run, self.scenario.conditions, self.fleet)
        times = [f.at for f in self.scenario.faults if f.kind is FaultKind.INTERRUPTED]
        controller = Controller(
            f"controller {number}", self.room, journal, order, host, take_over, ahead, self._strikes(number),
            observers=(discipline, Replay(journal, order.run)), submitted=lambda _, command: discipline.submitted(command), settled=discipline.settled,
            interrupt_at=times[number - 1] if number <= len(times) else float("inf"), conditions=self.scenario.conditions, width=order.limits.in_flight + 4,
        )  # fmt: skip
        self.watch.orders[order.run] = order
        self._journals[order.run] = journal
        self.controllers.append(controller)
        self.disciplines.append(discipline)
        return controller

    def _strikes(self, number: int) -> tuple[Strike, ...]:
        frozen = tuple(Strike(int(f.at), f.lasting) for f in self.scenario.faults if f.kind is FaultKind.FROZEN)
        if number == 1 and frozen:
            return frozen[:1]
        if not self._kills:
            return ()
        fault = self._kills.pop(0)
        self._waits.append(fault.lasting)
        return (Strike(int(fault.at)),)

    def _let(self, controller: Controller, counter: int) -> None:
        """Run it until it ends, stops, or freezes and another has taken over."""
        self.current = controller
        known = controller.order.run in controller.journal.headers
        work = controller.go_on if known else partial(controller.begin, counter)
        self.tell(controller.name, f"{'resumes' if known else 'begins'} {controller.order.run}")
        if not any(strike.frozen for strike in controller.strikes):
            work()
            return
        controller.task = Task(work)
        controller.task.resume()
        self.timeline.run(self.timeline.now + LONGEST, lambda: self._is_over(controller) or controller.frozen)
        while controller.frozen and not self.taken_over:
            self.timeline.run(self.timeline.now + 5.0, lambda: not controller.frozen)
            if self.timeline.now < controller.journal.away_until:
                continue  # no other controller can start either
            other = self._controller(
                controller.order, controller.journal, take_over=controller.take_over, host="laptop"
            )
            self.current = other
            other.go_on()
            if other.stopped not in ("locked", "journal-away"):  # no other controller has taken over yet
                controller.end, controller.stopped = other.end, other.stopped
                return
        self.current = controller
        self.timeline.run(self.timeline.now + LONGEST, lambda: self._is_over(controller))

    @staticmethod
    def _is_over(controller: Controller) -> bool:
        return controller.task is None or controller.task.done

    def _attend(self) -> None:
        """An operator continues waiting runs; and an endless run is reported."""
        if self.timeline.now > LONGEST:
            broken(f"law 6: the run does not end: {self.current and self.current.seen and self.current.seen.phase}")
        if self.current is not None and self.current.alive and self._waits_for_a_word(self.current):
            self.ask("continue", "")
        self.timeline.after(ATTENDS, self._attend)

    @staticmethod
    def _waits_for_a_word(controller: Controller) -> bool:
        """Read from the journal: a run that is resumed into a hold writes no event."""
        run = controller.order.run
        if run not in controller.journal.headers:
            return False
        state = controller.seen or replay(controller.desk, run)
        return state.paused is not None and state.phase is not Phase.ENDED

    def ask(self, word: str, revert: str) -> None:
        """From another terminal."""
        if self.current is not None and self.current.alive:
            self.tell("operator", word)
            self.current.desk.ask(self.current.order.run, word, "ann@desk", "", revert)

    def _roll_back(self, state: RunState) -> RunState | None:
        inventory = self.inventory()
        order = rollback_order(state, "r2", frozenset(inventory.nodes), inventory, EMERGENCY_LIMITS, force=False)
        if not order.nodes:
            return state
        self.tell("operator", "starts a rollback of r1")
        end = self._carry(order, max(state.counter, state.highest) + 1, self.journal, take_over=True)
        self._lift_cordons()
        self.rolled_back = True
        return end

    def _lift_cordons(self) -> None:
        """What rollback commands do at their end."""
        for node in self.fleet.nodes.values():
            uncordoned(self.fleet, node)

    def begin_emergency(self) -> None:
        """From another machine, without the journal: from the answers of reachable nodes."""
        reports = {name: self._read(node) for name, node in self.fleet.nodes.items()}
        try:
            picked = pick(on_nodes(reports), RunsToRevert())
            rollback = emergency(reports, "r9", picked, self.inventory(), EMERGENCY_LIMITS, force=False)
        except UsageError:
            return
        if not rollback.order.nodes:
            return
        self.tell("operator", "emergency rollback from another machine")
        self.taken_over, self.silent = True, frozenset(rollback.seen.silent)
        controller = self._controller(rollback.order, ModelJournal(self.timeline), take_over=True, host="laptop")
        controller.task = Task(lambda: controller.begin(rollback.counter))
        self.guests.append(controller)
        controller.task.resume()

    def _read(self, node: ModelNode) -> Report:
        now = self.timeline.now
        if not node.powered or node.frozen_until > now or self.fleet.links[node.name].cut_until(now):
            return Report(node.name, "status", Answer.UNREACHED)
        return node.seen()

    def inventory(self) -> Inventory:
        nodes = {n.name: Node(n.name, n.name, n.rack, n.zone) for n in self.scenario.order.nodes.values()}
        return Inventory("model", "", nodes, {}, (), "")

    def _settle(self, state: RunState | None) -> None:
        """Faults end, guards fire, pending recoveries are done; then nodes and journal are compared."""
        self._mend()
        if self.rolled_back:
            self._lift_cordons()  # the operator got the list of cordons that could not be lifted, and how to lift them
        self.timeline.run(self.timeline.now + 2 * self.scenario.order.guard + 300.0)
        for guest in self.guests:
            self.timeline.run(self.timeline.now + LONGEST, partial(self._is_over, guest))
            state = guest.end
            self._lift_cordons()
        for _ in range(2):
            if state is not None and any(record.owed for record in state.nodes.values()):
                journal = self._journals[state.order.run]
                controller = self._controller(state.order, journal, take_over=bool(state.order.transactions))
                controller.strikes, controller.interrupt_at, self.current = (), float("inf"), controller
                self.tell(controller.name, "does the pending recoveries")
                controller.go_on()
                state = controller.end or state
        if state is None:
            return
        problems = untruths(state, self.fleet.nodes)
        if state.order.goal is Goal.REVERT and state.ending is Ending.DONE:
            problems += went_back(
                self.fleet.nodes, frozenset(name for name, record in state.nodes.items() if record.owed) | self.silent
            )
        for problem in problems:
            broken(problem)

    def _mend(self) -> None:
        self.tell("all", "networks, gates and the store work again")
        for link in self.fleet.links.values():
            link.cuts.clear()
            link.lost_answers.clear()
            link.lost_commands.clear()
            link.late_applies.clear()
            link.lost_applies = 0
            link.latency, link.queue = min(link.latency, 0.5), 0.0
        self.fleet.spells.clear()
        self.fleet.api_away.clear()
        self.fleet.engine_away.clear()
        self.journal.away_until = self.journal.slow_until = 0.0
        self.journal.fails = self.journal.swallows = 0


def _was_unlocked(end: RunState) -> bool:
    """An unlock ended the run's claims, and nobody else has its nodes: an operator resumes it, as the tool proposes."""
    return end.ending is Ending.CLAIMED and end.halt is not None and end.halt.reference == ENDED_HERE
