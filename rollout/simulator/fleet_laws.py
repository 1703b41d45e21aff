"""The laws as seen by the nodes, independent of any controller's state.

``core.run.laws`` checks a state. This module checks the effects on nodes: nodes away at the same time, and restarts per
second. It also finds commands that reached a node before they were durable, and controllers that continued although
fenced.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields

from rollout.app.driver import LATE
from rollout.core.model.areas import limited_areas, most_of
from rollout.core.model.snapshot import ReceiptState
from rollout.core.model.verdict import Verdict
from rollout.core.run.commands import Ask, Command
from rollout.core.run.drains import kept
from rollout.core.run.events import FENCES, Answered, Event, Trigger, WaveJudged, WaveOpened
from rollout.core.run.journal_codec import decode_event, decode_order, encode_event
from rollout.core.run.laws import broken_laws
from rollout.core.run.machine import opening, replayed
from rollout.core.run.state import Ending, Goal, NodeRecord, NodeState, Order, Phase, RunState, Verb, altered
from rollout.core.run.state_codec import decode_state, encode_state
from rollout.core.run.transitions import IllegalMoveError
from rollout.simulator.fleet import ModelFleet, Sender
from rollout.simulator.journal import ModelJournal
from rollout.simulator.machine import FOREIGN, NEW, OLD, Restart
from rollout.simulator.node import ModelNode
from rollout.simulator.open_minutes import OpenMinutes

# A second machine beside a run, with the journal's text as its only input (law 10).


class ShadowMachine:
    """Replays each line of the journal. A difference from the live state is reported at the event that caused it."""

    def __init__(self, order: str, counter: int, at: float) -> None:
        self.state, _ = opening(decode_order(order), counter, at)

    def step(self, line: str) -> None:
        self.state = replayed(self.state, (decode_event(line),))

    def follow(self, line: str, before: RunState, after: RunState) -> str:
        """The first difference from the live state after this line, or "". Compares only parts that the event touched."""
        try:
            self.step(line)
        except IllegalMoveError as error:
            return f"a replay stops at {line:.200}: {error}"
        touched = [name for name, record in after.nodes.items() if record is not before.nodes[name]]
        return self._difference(after, touched)

    def difference(self, live: RunState) -> str:
        """The same for all parts, and from the state as it would be kept."""
        if list(self.state.nodes) != list(live.nodes):
            return "the order of the nodes differs"
        kept = decode_state(encode_state(live), self.state.order)
        return self._difference(live, live.nodes) or _difference(live, kept, live.nodes, "the state that is kept")

    def _difference(self, live: RunState, names: Iterable[str]) -> str:
        return _difference(live, self.state, names, "a replay of its journal")


def _difference(live: RunState, other: RunState, names: Iterable[str], where: str) -> str:
    for name in names:
        if other.nodes[name] != live.nodes[name]:
            return f"the run has {live.nodes[name]}, {where} {other.nodes[name]}"
    for name in _COMPARED:
        here, there = getattr(live, name), getattr(other, name)
        if here != there:
            return f"{name} is {here!r} in the run, {there!r} in {where}"
    return ""


_COMPARED = tuple(field.name for field in fields(RunState) if field.name not in ("order", "nodes"))


_CHANGES = frozenset({Verb.APPLY, Verb.CONFIRM, Verb.REVERT})
_STARTS = frozenset({Verb.APPLY, Verb.DRAIN})


class LawBrokenError(BaseException):
    """Ends the play: events after a broken law are meaningless."""


@dataclass
class LawWatch:
    """Over one fleet and all runs on it."""

    fleet: ModelFleet
    orders: dict[str, Order] = field(default_factory=dict)
    asked: dict[str, list[float]] = field(default_factory=dict)  # run → times of its requested restarts
    state: Callable[[str], RunState | None] = lambda _run: None  # of a run with a controller that acts now

    def restarted(self, node: ModelNode, restart: Restart) -> None:
        """Law 4, counted on the nodes."""
        run = restart.token[1]
        if not run:
            return
        order = self.orders[run]
        times = self.asked.setdefault(run, [])
        insort(times, restart.asked_at)
        burst = max(1, int(order.limits.pace))
        for first, last in zip(times, times[burst:], strict=False):
            if last - first < burst / order.limits.pace - LATE - 1e-6:
                broken(
                    f"law 4: more than {burst} nodes restarted within {burst / order.limits.pace:g} s, requested at {last:g}"
                )
        if restart.why == "apply":
            if order.nodes[node.name].drain and not (node.cordoned and restart.at >= node.pods_gone_at):
                broken(f"drains: {node.name} is restarted with pods on it")
            self._limits(node, order)
            # Law 1: an apply that arrives late changes no node that its run counts as unchanged.
            counter, run = restart.token
            state = self.state(run)
            if state is not None and state.counter == counter and state.nodes[node.name].state is NodeState.PENDING:
                broken(f"law 1: a late apply changes {node.name}, which is pending again")

    def cordoned(self, sender: Sender, node: ModelNode) -> None:
        """A drained node counts as away from its cordon on."""
        self._limits(node, sender.order)

    def _limits(self, node: ModelNode, order: Order) -> None:
        mine = (
            name for name in order.nodes if self.fleet.nodes[name].token.run == order.run
        )  # not caused by another run
        away = [name for name in mine if is_away(self.fleet.nodes[name])]
        self._within(len(away), order.limits.in_flight, f"the fleet, including {node.name}")
        for area in limited_areas(order.nodes[node.name], order.limits):
            here = [name for name in away if area in limited_areas(order.nodes[name], order.limits)]
            self._within(len(here), most_of(order, area), f"{area}: {', '.join(here)}")

    @staticmethod
    def _within(count: int, limit: int, where: str) -> None:
        if count > limit:
            broken(f"law 4: {count} nodes away in {where}; the limit is {limit}")

    def begun(self, sender: Sender, ask: Ask, journal: ModelJournal) -> None:
        """Laws 2 and 5: a confirm follows from a measurement that passed and is durable."""
        if ask.verb is not Verb.CONFIRM:
            return
        measured = (sender.run, ask.node, ask.serial - 1)
        if not journal.has_answer(*measured):
            broken(f"law 2: a confirm reached {ask.node} before its journal entry was durable")
        if measured not in self.fleet.passed:
            broken(f"law 5: {ask.node} is confirmed and its gates have not passed")


def is_away(node: ModelNode) -> bool:
    """Away because of us: cordoned, a transaction under way, or the kubelet not healthy yet after our restart.

    A machine without power, a frozen one, or one that reverts itself long after its guard's time is away by itself.
    A node with an unfinished revert counts while it is failed; the machine counts that.
    """
    if not node.powered or node.timeline.now < node.frozen_until or node.late:
        return False
    going = node.under_way is not None and not node.under_way.stuck
    return node.cordoned or going or node.timeline.now < node.away_until


@dataclass
class Discipline:
    """For one controller: every state of its machine, and its commands after each answer.

    Law 7: after a fenced answer, a change sends no command to any node, and a rollback none to that node.
    """

    journal: ModelJournal
    run: str
    conditions: tuple[OpenMinutes, ...] = ()
    fleet: ModelFleet | None = None
    told: int = -1
    marks: list[int] = field(default_factory=list)
    fenced: list[str] = field(default_factory=list)
    reverts: bool = False
    bad_gate: str = ""
    events: int = 0

    def submitted(self, command: Command) -> None:
        written = len(self.journal.lines[self.run])
        self.marks.append(written)
        if not isinstance(command, Ask):
            return
        if self.fenced and command.verb in _CHANGES and (not self.reverts or command.node in self.fenced):
            told = ", ".join(self.fenced)
            broken(f"law 7: {told} reported another run's claim, and {command.node} still gets {command.verb}")
        if self.bad_gate and command.verb is Verb.APPLY:
            broken(f"law 5: {self.bad_gate}, and {command.node} is released")

    def on_event(self, event: Event, before: RunState, after: RunState) -> None:
        self.events += 1
        self.told += 1
        if self.marks and min(self.marks) < self.told:
            broken("law 1: a command was given before its event was durable")
        for problem in broken_laws(after):
            broken(problem)
        self._within_a_window(event, before, after)
        self._has_its_data(before, after)
        here = before.phase is not Phase.OPENING
        if isinstance(event, Answered):
            if here and event.trigger is Trigger.REFUSED and event.reference in FENCES and _is_open(event, before):
                self.fenced.append(event.node)
                self.reverts = before.order.goal is Goal.REVERT
        elif isinstance(event, WaveOpened | WaveJudged) and event.verdict is not Verdict.PASS:
            phase = Phase.RUNNING if isinstance(event, WaveOpened) else Phase.SOAKING
            if before.phase is phase and before.wave == event.wave:
                self.bad_gate = f"the gates of wave {event.wave} returned {event.verdict}"

    def _within_a_window(self, event: Event, before: RunState, after: RunState) -> None:
        """No change starts outside the windows, which the plays have in UTC and within one day."""
        minute = event.at % 86_400 / 60
        if all(any(begins <= minute < ends for begins, ends in each.windows) for each in self.conditions):
            return
        for name, record in after.nodes.items() if after.order.goal is Goal.APPLY else ():
            if record.asked in _STARTS and record.serial != before.nodes[name].serial:
                broken(f"window: {name} gets {record.asked} outside the change windows")

    def _has_its_data(self, before: RunState, after: RunState) -> None:
        """A soak ends with fewer pod starts or pulls than demanded only if the run halts; counted on the nodes."""
        passed = before.phase is Phase.SOAKING and after.wave > before.wave
        data = before.order.waves[before.wave].data if passed else None
        if data is None or self.fleet is None:
            return
        names = [n for n in before.order.waves[before.wave].nodes if after.nodes[n].state is NodeState.CONFIRMED]
        nodes = [self.fleet.nodes[name] for name in names]
        started, pulled = sum(node.pods_started() for node in nodes), sum(node.pulls_done() for node in nodes)
        if nodes and started < data.pod_starts:
            broken(f"soak: wave {before.wave} passed with {started} of {data.pod_starts} pod starts")
        if nodes and pulled < data.pulls:
            broken(f"soak: wave {before.wave} passed with {pulled} of {data.pulls} pulls")

    def settled(self) -> None:
        """A batch is processed. The run's opening caused no commands."""
        self.marks.clear()
        if self.told < 0:
            self.told = len(self.journal.lines[self.run])

    def on_end(self, state: RunState) -> None:
        """Nothing more."""


@dataclass
class Replay:
    """For one controller. Law 10: the journal's text alone gives the controller's state, event by event."""

    journal: ModelJournal
    run: str
    read: int = 0
    shadow: ShadowMachine | None = None

    def on_event(self, event: Event, before: RunState, after: RunState) -> None:
        lines, written = self.journal.lines[self.run], encode_event(event)
        if self.shadow is None:
            header = self.journal.headers[self.run]
            self.shadow = ShadowMachine(header.order, header.counter, header.at)
        while (
            self.read < len(lines) and lines[self.read] != written
        ):  # events of earlier controllers, and the one that opened this controller
            self.shadow.step(lines[self.read])
            self.read += 1
        if self.read == len(lines):
            broken(f"law 10: {written:.200} changed the run and is not in its journal")
        self.read += 1
        self._hold(self.shadow.follow(written, before, after))

    def on_end(self, state: RunState) -> None:
        if self.shadow is not None:
            self._hold(self.shadow.difference(altered(state, {"now": self.shadow.state.now})))

    @staticmethod
    def _hold(problem: str) -> None:
        if problem:
            broken(f"law 10: {problem}")


def _is_open(event: Answered, state: RunState) -> bool:
    record = state.nodes[event.node]
    return record.asked is not None and record.serial == event.serial and event.verb is not Verb.CLEAN


def untruths(state: RunState, nodes: Mapping[str, ModelNode]) -> list[str]:
    """Laws 1 and 8 at the end of a run: differences between journal and node, and unreported leftovers."""
    problems = []
    for name, record in state.nodes.items():
        node = nodes[name]
        if not _is_true(state, record, node):
            receipts = ", ".join(f"{tx} {each.state}" for tx, each in node.transactions.items()) or "no receipt"
            problems.append(
                f"law 1: the journal has {name} as {record.state}{', pending recovery' * record.owed}; it has {node.files} files, {receipts}"
            )
        if not (record.owed or record.leftovers) and (node.under_way or node.guards):
            problems.append(f"law 8: a guard is left on {name}, which is {record.state}, and is not reported")
        if (
            node.cordoned
            and not (record.owed and (record.leftovers or kept(record)))
            and state.ending is not Ending.CLAIMED
        ):
            problems.append(f"law 8: a cordon of ours is left on {name}, which is {record.state}, and is not reported")
        if _is_held(state, record, node):
            problems.append(
                f"law 8: the claim of {node.token.run} is left on {name}, which is {record.state}, and is not reported"
            )
    return problems


def _is_true(state: RunState, record: NodeRecord, node: ModelNode) -> bool:
    if record.owed or node.files == FOREIGN:
        return True
    match record.state:
        case NodeState.CONFIRMED:
            transaction = node.transactions.get(state.transaction(node.name))
            return node.files == NEW and transaction is not None and transaction.state is ReceiptState.CONFIRMED
        case NodeState.UNREACHABLE:
            return False  # always pending recovery
        case NodeState.GONE:
            return True  # nobody looks at it
        case _:
            return node.files == OLD


def _is_held(state: RunState, record: NodeRecord, node: ModelNode) -> bool:
    ours = node.token.live and node.token.run == state.order.run
    away = record.state in (NodeState.UNREACHABLE, NodeState.GONE)
    out_of_reach = record.owed or away or not node.powered
    return ours and not out_of_reach and not record.leftovers and state.ending is not Ending.CLAIMED


def went_back(nodes: Mapping[str, ModelNode], named: frozenset[str]) -> list[str]:
    """After a rollback: every node has its old files, or is reported."""
    kept = [name for name, node in nodes.items() if node.files == NEW and name not in named]
    return [f"law 1: {name} still has the new files, and is not reported" for name in kept]


def broken(law: str) -> None:
    raise LawBrokenError(law)
