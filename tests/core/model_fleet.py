"""A fleet in memory for the machine: each node keeps a receipt and answers as the agent would, with faults on demand.

Only the network and the nodes are modelled; the machine under test is the real one. ``Play`` runs a whole rollout with
a virtual clock and checks the laws after every event.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from rollout.core.model.playbook import (
    DEFAULT_BUDGETS,
    DEFAULT_PULLS,
    Budget,
    Limits,
    PullsInFlight,
    RevertScope,
    Share,
)
from rollout.core.model.verdict import Verdict
from rollout.core.run.commands import Ask, Command, JudgeWave, LiftSilences, OpenWave
from rollout.core.run.events import (
    AbortAsked,
    Answered,
    ContinueAsked,
    Event,
    InterruptAsked,
    PauseAsked,
    Resumed,
    SilencesLifted,
    Ticked,
    Trigger,
    WaveJudged,
    WaveOpened,
)
from rollout.core.run.laws import broken_laws
from rollout.core.run.machine import opening, step
from rollout.core.run.state import Goal, NodeOrder, Order, Phase, RunState, Verb, WaveOrder


@dataclass
class ModelNode:
    """A node as it is, whatever anybody thinks of it. ``files`` is "old", "new" or "mixed"; ``receipt`` by transaction."""

    files: str = "old"
    receipt: dict[str, str] = field(default_factory=dict)
    guard_at: dict[str, float] = field(default_factory=dict)
    sick_with_new: bool = False
    sick_with_old: bool = False
    sick_after: float | None = None
    reachable: bool = True
    lose: set[Verb] = field(default_factory=set)  # verbs whose answer is lost once
    refuse: str = ""
    refuse_read: bool = False
    held: str = ""  # another run has it: "claimed" or "fenced"
    pulls: tuple[str, ...] | None = ()  # images it pulls until ``pulls_until``; None: it cannot tell
    pulls_until: float = float("inf")
    cordon: str = ""  # "ours", "others"
    pods_end_in: float = 3.0  # seconds from its first drain round until its pods are gone
    gone_at: float = float("inf")  # when they are; for ever: they are not asked to go
    blocked: bool = False  # a budget keeps its pods
    uncordon_fails: int = 0  # how often its cordon cannot be lifted
    lost_pods: int = 0  # how often it was changed with pods on it that were to go first
    dies_reverting: int = 0  # how often the agent dies in the middle of a revert of a confirmed change

    def pulling(self, now: float) -> bool:
        return self.pulls != () and now < self.pulls_until

    def newest(self, tx: str, now: float) -> str:
        if self.receipt.get(tx) == "armed" and now >= self.guard_at[tx]:
            self.files, self.receipt[tx] = "old", "alone"
        return self.receipt.get(tx, "none")


TRIGGERS = {
    "none": Trigger.UNTOUCHED,
    "armed": Trigger.ARMED,
    "confirmed": Trigger.CONFIRMED,
    "sick": Trigger.TAKEN_BACK_SICK,
    "alone": Trigger.TAKEN_BACK_ALONE,
    "asked": Trigger.TAKEN_BACK_ASKED,
    "still-sick": Trigger.STILL_SICK,
    "reverting": Trigger.BUSY,
}


def make_order(
    racks: Mapping[str, int],
    waves: Iterable[tuple[str, Callable[[str], bool]]] = (("all", lambda _: True),),
    *,
    goal: Goal = Goal.APPLY,
    limits: Limits | None = None,
    budgets: tuple[Budget, ...] = DEFAULT_BUDGETS,
    on_failure: RevertScope = RevertScope.NODE,
    wave_gates: bool = False,
    rehearsal: bool = False,
    hold: frozenset[str] = frozenset(),
    at_once: Mapping[str, int] | None = None,
    zone_of: Mapping[str, str] | None = None,
    pulls: PullsInFlight = DEFAULT_PULLS,
    kind_of: Callable[[str], str] = lambda _: "g1",
    drain: float = 0.0,
    drained: Callable[[str], bool] = lambda _: True,
    soak: float = 9.0,
) -> Order:
    """Racks of ``racks[name]`` nodes called ``rack-n``; each wave takes what its predicate accepts of what is left.

    ``zone_of`` says the zone of a rack, ``kind_of`` the kind of a node. ``drain``: seconds for the pods of those that are
    ``drained``.
    """
    names = {f"{rack}-{n}": rack for rack, size in racks.items() for n in range(1, size + 1)}
    left, rolled = list(names), []
    for title, accepts in waves:
        members = tuple(name for name in left if accepts(name))
        left = [name for name in left if name not in members]
        rolled.append(WaveOrder(title, members, soak, title in hold, (at_once or {}).get(title, 0)))
    zones = {name: (zone_of or {}).get(rack, "none") for name, rack in names.items()}
    wave_of = {name: index for index, wave in enumerate(rolled) for name in wave.nodes}
    return Order(
        run="r1",
        cluster="test",
        goal=goal,
        nodes={
            name: NodeOrder(name, rack, wave_of[name], 5.0, zones[name], kind_of(name), drain if drained(name) else 0.0)
            for name, rack in names.items()
        },
        waves=tuple(rolled),
        racks=dict(racks),
        limits=limits or Limits(per_rack=Share(percent=10.0)),
        budgets=budgets,
        on_failure=on_failure,
        passes=3,
        guard=30.0,
        wave_gates=wave_gates,
        rehearsal=rehearsal,
        transactions=dict.fromkeys(names, "r0-1") if goal is Goal.REVERT else {},
        zones=Counter(zones.values()),
        pulls=pulls,
    )


class Play:
    """One run of the machine over a model fleet."""

    def __init__(self, order: Order, seed: Callable[[], float] = lambda: 1.0) -> None:
        self.fleet = {name: ModelNode() for name in order.nodes}
        self.order = order
        self.delay = seed
        self.now = self.began = 0.0
        self.tie = count()
        self.queue: list[tuple[float, int, Event]] = []
        self.journal: list[Event] = []
        self.wave_verdict = Verdict.PASS
        self.baseline_verdict = Verdict.PASS
        self.words: list[tuple[int, str]] = []
        self.requests = 0
        self.opened: list[int] = []
        self.judged: list[int] = []
        self.baselines: list[str] = []  # what the wave gates were given to compare with
        self.took = {Verb.APPLY: 11.0, Verb.REVERT: 7.0}  # seconds the agent says it took
        self.silences: tuple[str, ...] = ()  # what every opening of a wave sets
        self.stride = 0.5
        self.standing: list[str] = []  # silences that were set and not lifted
        self.lifted: tuple[str, ...] = ()
        self.most_moving: dict[str, int] = {}
        self.asked: list[Ask] = []
        self.state: RunState

    def run(self, *, until: Callable[[RunState], bool] = lambda _: False, patience: float = 5000.0) -> RunState:
        """To the end, or until a condition holds."""
        self.began = self.now
        self.state, commands = opening(self.order, 1, self.now)
        self._act(commands)
        return self.go_on(until=until, patience=patience)

    def go_on(self, *, until: Callable[[RunState], bool] = lambda _: False, patience: float = 5000.0) -> RunState:
        deadline = self.now + patience
        while self.state.phase is not Phase.ENDED and not until(self.state):
            assert self.now < deadline, f"no end in sight: {self.state.phase} {self.state.halt}"
            self.now += self.stride
            while self.queue and self.queue[0][0] <= self.now:
                self.feed(heapq.heappop(self.queue)[2])
            self.feed(Ticked(self.now))
            while self.words and len(self.journal) >= self.words[0][0]:
                self.feed(self._word(self.words.pop(0)[1]))
        return self.state

    def _word(self, word: str) -> Event:
        """From another terminal."""
        if word == "interrupt":
            return InterruptAsked(self.now)
        self.requests += 1
        if word == "abort":
            return AbortAsked(self.now, "me", "", self.requests)
        return (PauseAsked if word == "pause" else ContinueAsked)(self.now, "me", "", self.requests)

    def feed(self, event: Event) -> None:
        self.state, commands = step(self.state, event)
        self.journal.append(event)
        assert broken_laws(self.state) == ()
        self._act(commands)

    def crash_and_resume(self) -> None:
        """The controller dies: every answer on its way is lost; a new one takes over from the journal alone."""
        for _, _, lost in self.queue:
            if isinstance(lost, WaveOpened):
                self.standing = [
                    silence for silence in self.standing if silence not in lost.silences
                ]  # until it expires
        self.queue.clear()
        state, _ = opening(self.order, 1, self.began)
        for event in self.journal:
            state, _ = step(state, event)
        assert state == self.state, "a replay of the journal must give the same state"
        self.feed(Resumed(self.now, self.state.counter + 1))

    def _act(self, commands: Iterable[Command]) -> None:
        for command in commands:
            at = self.now + self.delay()
            if isinstance(command, JudgeWave):
                self.judged.append(command.wave)
                self.baselines.append(command.baseline)
                event: Event = WaveJudged(at, command.wave, self.wave_verdict, "as told")
            elif isinstance(command, OpenWave):
                event = self._open(command.wave, at)
            elif isinstance(command, LiftSilences):
                self.lifted += command.silences
                self.standing = [silence for silence in self.standing if silence not in command.silences]
                event = SilencesLifted(at)
            else:
                self.asked.append(command)
                event = self.answer(command, at)
            heapq.heappush(self.queue, (at, next(self.tie), event))

    def _open(self, wave: int, at: float) -> WaveOpened:
        self.opened.append(wave)
        silences = tuple(f"{silence}-{len(self.opened)}" for silence in self.silences)
        self.standing += silences
        return WaveOpened(at, wave, self.baseline_verdict, "as told", f"before {len(self.opened)}", silences)

    def answer(self, ask: Ask, at: float) -> Answered:
        node = self.fleet[ask.node]
        pulls = node.pulls or () if ask.verb is Verb.APPLY and node.pulling(at) else ()
        trigger = self._do(node, ask, at)
        reference = node.held or node.refuse
        said = reference if trigger is Trigger.REFUSED else "not-drained" if trigger is Trigger.NOT_DRAINED else ""
        took = self.took.get(ask.verb, 0.0)
        return Answered(at, ask.node, ask.serial, ask.verb, trigger, said, seconds=took, pulls=pulls, again=2.0)

    def _do(self, node: ModelNode, ask: Ask, at: float) -> Trigger:
        if ask.verb is Verb.UNCORDON:
            return _uncordon(node)
        if not node.reachable:
            return Trigger.UNREACHED
        if ask.verb is Verb.CLEAN:
            return Trigger.CLEANED
        return _refused(node, ask, at) or self._done(node, ask, at)

    def _done(self, node: ModelNode, ask: Ask, at: float) -> Trigger:
        if ask.verb is Verb.DRAIN and Verb.DRAIN not in node.lose:
            return _drain(node, ask, at)
        if ask.verb is Verb.APPLY and self.order.nodes[ask.node].drain and at < node.gone_at:
            node.lost_pods += 1
        if ask.verb is Verb.REVERT and node.dies_reverting:
            node.dies_reverting -= 1
            node.files, node.receipt[ask.tx] = "mixed", "reverting"
            return Trigger.LOST
        trigger = _VERBS.get(ask.verb, _read)(node, ask.tx, at)
        if ask.verb in node.lose:
            node.lose.discard(ask.verb)
            return Trigger.GATES_UNKNOWN if ask.verb is Verb.MEASURE else Trigger.LOST
        return trigger


def _refused(node: ModelNode, ask: Ask, at: float) -> Trigger | None:
    if node.held and ask.verb is not Verb.MEASURE:
        return Trigger.REFUSED
    if (ask.verb is Verb.APPLY and node.refuse) or (ask.verb is Verb.READ and node.refuse_read):
        return Trigger.REFUSED
    if ask.verb is Verb.APPLY and node.pulling(at) and not ask.regardless:
        return Trigger.PULLING
    return None


def _drain(node: ModelNode, ask: Ask, at: float) -> Trigger:
    if node.cordon == "others":
        return Trigger.NOT_DRAINED
    node.cordon = "ours"
    if not node.blocked:
        node.gone_at = min(node.gone_at, at + node.pods_end_in)
    if at >= node.gone_at:
        return Trigger.DRAINED
    return Trigger.DRAINING if ask.left else Trigger.NOT_DRAINED


def _uncordon(node: ModelNode) -> Trigger:
    """Pods come back to where they may."""
    if node.uncordon_fails:
        node.uncordon_fails -= 1
        return Trigger.STILL_CORDONED
    if node.cordon == "ours":
        node.cordon, node.gone_at = "", float("inf")
    return Trigger.UNCORDONED


def _read(node: ModelNode, tx: str, at: float) -> Trigger:
    return TRIGGERS[node.newest(tx, at)]


def _apply(node: ModelNode, tx: str, at: float) -> Trigger:
    if node.newest(tx, at) == "none":
        node.files, node.receipt[tx], node.guard_at[tx] = "new", "armed", at + 30.0
        if node.sick_with_new:
            node.files, node.receipt[tx] = "old", "still-sick" if node.sick_with_old else "sick"
    return _read(node, tx, at)


def _confirm(node: ModelNode, tx: str, at: float) -> Trigger:
    if node.newest(tx, at) == "armed":
        node.receipt[tx] = "confirmed"
    return _read(node, tx, at)


def _revert(node: ModelNode, tx: str, at: float) -> Trigger:
    if node.newest(tx, at) in ("armed", "confirmed", "reverting"):
        node.files, node.receipt[tx] = "old", "still-sick" if node.sick_with_old else "asked"
    return _read(node, tx, at)


def _measure(node: ModelNode, tx: str, at: float) -> Trigger:
    if node.sick_after is not None and at >= node.sick_after and node.files == "new":
        return Trigger.GATES_FAILED
    return Trigger.GATES_PASSED


_VERBS: Mapping[Verb, Callable[[ModelNode, str, float], Trigger]] = {
    Verb.READ: _read,
    Verb.APPLY: _apply,
    Verb.CONFIRM: _confirm,
    Verb.REVERT: _revert,
    Verb.MEASURE: _measure,
}
