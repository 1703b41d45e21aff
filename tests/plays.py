"""A run of the machine, step by step, on a virtual clock.

The machine is the real one. The nodes, their links and what an answer of theirs means are the simulator's
(``rollout.simulator``): there is no other model of a node. The wave gates are here, with verdicts that a test sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from rollout.core.model.config_map import ConfigMapChange, ConfigMapOutcome
from rollout.core.model.snapshot import ReceiptState, Token
from rollout.core.model.verdict import Verdict
from rollout.core.run.commands import Ask, Command, JudgeWave, LiftSilences, OpenWave, PutConfigMap
from rollout.core.run.events import (
    AbortAsked,
    Answered,
    ConfigMapRead,
    ContinueAsked,
    Event,
    InterruptAsked,
    PauseAsked,
    Resumed,
    SilencesLifted,
    Ticked,
    WaveJudged,
    WaveOpened,
)
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.laws import broken_laws
from rollout.core.run.machine import as_journaled, opening, step
from rollout.core.run.state import Order, Phase, RunState, Verb, altered
from rollout.simulator.controller import next_tick
from rollout.simulator.fleet import ModelFleet, ModelLink, Sender
from rollout.simulator.fleet_laws import LawWatch, ShadowMachine
from rollout.simulator.machine import MIXED, NEW, OLD, Transaction
from rollout.simulator.node import ModelNode
from rollout.simulator.rehearsal import BUSY, MANY
from rollout.simulator.timeline import Timeline

GATE_SECONDS = 1.0
EVER = float("inf")
SICK_WITH_NEW, SICK_WITH_BOTH = frozenset({NEW, MIXED}), frozenset({NEW, MIXED, OLD})
ANOTHER_RUN = "r9"


def never(_state: RunState) -> bool:
    return False


class Drive:
    """One run over simulated nodes; ``Play`` checks the laws, too. Whatever is random falls by ``dice``; a way to a node takes about ``latency`` seconds."""

    def __init__(self, order: Order, dice: Random | None = None, latency: float = 0.5) -> None:
        self.order = order
        self.timeline = Timeline()
        self.nodes = {name: ModelNode(name, self.timeline) for name in order.nodes}
        self.links = {name: ModelLink(latency) for name in order.nodes}
        self.fleet = ModelFleet(self.timeline, self.nodes, self.links, dice or Random(0))  # noqa: S311 - reproducible
        self.clock_ahead = self.began = 0.0  # of the controller's clock; when it says the run began
        self.longest = 2.0  # seconds between two ticks
        self.grain = len(order.nodes) * BUSY if len(order.nodes) > MANY else 0.0  # answers are looked at together
        self.state: RunState
        self.journal: list[Event] = []
        self.asked: list[Ask] = []
        self.words: list[tuple[int, str]] = []  # from another terminal, each at a length of the journal
        self.requests = 0
        self.wave_verdict = self.baseline_verdict = Verdict.PASS
        self.opened: list[int] = []
        self.judged: list[int] = []
        self.baselines: list[str] = []  # what the wave gates were given to compare with
        self.config_map: str | None = "old"  # its text at the API server; ``None``: that does not answer
        self.silences: tuple[str, ...] = ()  # what every opening of a wave sets
        self.standing: list[str] = []  # silences that were set and not lifted
        self.lifted: tuple[str, ...] = ()
        self._controllers = 0
        self._take_over()

    # ------------------------------------------------------------------------------------------------------ the controller

    @property
    def now(self) -> float:
        """As the controller's clock says."""
        return self.timeline.now + self.clock_ahead

    def set_clock(self, to: float) -> None:
        self.clock_ahead = to - self.timeline.now

    def run(self, *, until: Callable[[RunState], bool] = never, patience: float = 5000.0) -> RunState:
        """From the beginning to the end, or until a condition holds."""
        self.began = self.now
        self.state, commands = opening(self.order, 1, self.now)
        self._act(commands)
        return self.go_on(until=until, patience=patience)

    def go_on(self, *, until: Callable[[RunState], bool] = never, patience: float = 5000.0) -> RunState:
        deadline = self.timeline.now + patience
        while self.state.phase is not Phase.ENDED and not until(self.state):
            assert self.timeline.now < deadline, f"no end in sight: {self.state.phase} {self.state.halt}"
            self._wait()
            self.feed(Ticked(self.now))
            while self.words and len(self.journal) >= self.words[0][0]:
                self.feed(self._word(self.words.pop(0)[1]))
        return self.state

    def _wait(self) -> None:
        """For an answer, or until time alone makes the machine act."""
        told = len(self.journal)
        tick = next_tick(self.state, self.now, self.longest) - self.clock_ahead
        self.timeline.run(tick, lambda: len(self.journal) > told)
        if self.grain and len(self.journal) > told:
            self.timeline.run(self.timeline.now + self.grain)

    def _word(self, word: str) -> Event:
        """From another terminal."""
        if word == "interrupt":
            return InterruptAsked(self.now)
        self.requests += 1
        if word == "abort":
            return AbortAsked(self.now, "me", "", self.requests)
        return (PauseAsked if word == "pause" else ContinueAsked)(self.now, "me", "", self.requests)

    def feed(self, heard: Event) -> None:
        event, before = as_journaled(self.state, heard), self.state
        if event is None:
            return
        self.state, commands = step(before, event)
        self.stepped(event, before, commands)
        self._act(commands)

    def stepped(self, event: Event, before: RunState, commands: Sequence[Command]) -> None:
        """The machine has made a step."""
        self.journal.append(event)

    def stand_still(self, seconds: float) -> None:
        """Nobody looks at the clock; nodes, and answers on their way, go on."""
        self.timeline.run(self.timeline.now + seconds)

    def crash_and_resume(self, away: float = 0.0) -> None:
        """The controller dies, and ``away`` seconds later a new one takes over from the journal alone."""
        self.crash(away)
        self.resume()

    def crash(self, away: float = 0.0) -> None:
        self._take_over()
        self.stand_still(away)

    def resume(self) -> None:
        state, _ = opening(self.order, 1, self.began)
        for event in self.journal:
            state, _ = step(state, event)
        assert state == self.state, "a replay of the journal must give the same state"
        self.feed(Resumed(self.now, max(self.state.counter, self.state.highest) + 1))

    def lose_answers(self) -> None:
        """Those that are on their way to this controller."""
        self._take_over()

    def _take_over(self) -> None:
        self._controllers += 1
        mine = self._controllers
        self.sender = Sender(self.order.run, self.order, False, lambda: self._controllers == mine, lambda: self.now)  # noqa: FBT003

    # --------------------------------------------------------------------------------------------------------- its commands

    def _act(self, commands: Iterable[Command]) -> None:
        for command in commands:
            self.begin(command, self.feed)

    def begin(self, command: Command, heard: Callable[[Event], None]) -> None:
        """Have it done; ``heard`` is told the answer, if there is one."""
        if isinstance(command, Ask):
            self.asked.append(command)
            self.fleet.carry(self.sender, command, lambda event: heard(self.said(command, event)))
        else:
            answer, sender = self._ask_the_gates(command), self.sender
            self.timeline.after(GATE_SECONDS, lambda: self._answer(answer(), sender, heard))

    def said(self, ask: Ask, event: Answered) -> Answered:
        """A node's answer as it is heard."""
        return event

    def _answer(self, event: Event, sender: Sender, heard: Callable[[Event], None]) -> None:
        if sender.listens():
            heard(event)
        elif isinstance(event, WaveOpened):
            self.standing = [silence for silence in self.standing if silence not in event.silences]  # it expires

    def _ask_the_gates(self, command: OpenWave | JudgeWave | LiftSilences | PutConfigMap) -> Callable[[], Event]:
        match command:
            case OpenWave(wave):
                self.opened.append(wave)
                number, verdict = len(self.opened), self.baseline_verdict
                silences = tuple(f"{silence}-{number}" for silence in self.silences)
                self.standing += silences
                return lambda: WaveOpened(self.now, wave, verdict, "as told", f"before {number}", silences)
            case JudgeWave(wave):
                self.judged.append(wave)
                self.baselines.append(command.baseline)
                return self.judgement(wave)
            case LiftSilences(silences):
                self.lifted += silences
                self.standing = [silence for silence in self.standing if silence not in silences]
                return lambda: SilencesLifted(self.now)
            case PutConfigMap(change):
                return self._put(change)

    def _put(self, change: ConfigMapChange) -> Callable[[], ConfigMapRead]:
        """It is written at once. The answer takes a while: a controller may die in between."""
        if self.config_map is None:
            return lambda: ConfigMapRead(self.now, ConfigMapOutcome.UNANSWERED, "", "away", "no answer")
        if self.config_map == change.before:
            self.config_map = change.after
        if self.config_map != change.after:
            return lambda: ConfigMapRead(self.now, ConfigMapOutcome.CHANGED, "", "config-map-changed", "others did")
        return lambda: ConfigMapRead(self.now, ConfigMapOutcome.WRITTEN, change.digest_after)

    def judgement(self, wave: int) -> Callable[[], WaveJudged]:
        verdict = self.wave_verdict
        return lambda: WaveJudged(self.now, wave, verdict, "as told")

    # ------------------------------------------------------------------------------------------------- what befalls the nodes

    def cut_off(self, *names: str) -> None:
        """Nothing reaches them from now on."""
        for name in names:
            self.links[name].cuts.append((self.timeline.now, EVER))

    def reconnect(self, *names: str) -> None:
        for name in names:
            self.links[name].cuts.clear()

    def sicken(self, *names: str, with_files: frozenset[str] = SICK_WITH_NEW) -> None:
        for name in names:
            self.nodes[name].kubelet.sick_with = with_files

    def stick(self, name: str, until: float = EVER) -> None:
        """It is unhealthy with the new files, and no restart with the old ones is seen."""
        self.sicken(name)
        self.nodes[name].kubelet.stays_until = until

    def fall_sick(self, name: str, after: float = 0.0) -> None:
        """With the new files only, so many seconds from now."""
        self.nodes[name].kubelet.falls_sick = self.timeline.now + after

    def pull(self, name: str, images: tuple[str, ...] | None, until: float = EVER) -> None:
        self.nodes[name].pulls, self.nodes[name].pulls_until = images, until

    def claim_for_another(self, *names: str) -> None:
        """Another run claims them, and is at work there."""
        for name in names:
            self.nodes[name].token = Token(self.nodes[name].token.counter + 5, ANOTHER_RUN, live=True)

    def kill_reverts(self, name: str, times: int) -> None:
        """The agent dies in the middle of so many reverts."""
        node, left = self.nodes[name], iter(range(times))
        node.struck = lambda process: (
            process.name == Verb.REVERT and node.files == MIXED and next(left, None) is not None
        )


class Play(Drive):
    """One run over simulated nodes. The laws are checked after every event that changes anything, and at every restart of a node."""

    def __init__(self, order: Order, dice: Random | None = None, latency: float = 0.5) -> None:
        super().__init__(order, dice, latency)
        self.shadow: ShadowMachine | None = None
        self.watch = LawWatch(self.fleet, {order.run: order}, state=lambda _run: getattr(self, "state", None))
        self.fleet.cordoned = self.watch.cordoned
        for node in self.nodes.values():
            node.restarted = self.watch.restarted

    def stepped(self, event: Event, before: RunState, commands: Sequence[Command]) -> None:
        super().stepped(event, before, commands)
        if self.state != altered(before, {"now": self.state.now}):  # a clock that goes on breaks no law
            assert broken_laws(self.state) == ()
            assert self._shadow().follow(encode_event(event), before, self.state) == ""

    def _shadow(self) -> ShadowMachine:
        if self.shadow is None:
            self.shadow = ShadowMachine(encode_order(self.order), 1, self.began)
        return self.shadow

    def replay(self) -> RunState:
        """What the journal's text alone leads to; the time of a tick that changed nothing is not in it."""
        assert self._shadow().difference(altered(self.state, {"now": self._shadow().state.now})) == ""
        return altered(self._shadow().state, {"now": self.state.now})

    def carry_out(self, order: Order) -> None:
        """Another run, on the same nodes."""
        self.shadow = None
        self.order = self.watch.orders[order.run] = order
        self._take_over()


FILES_WITH = {
    ReceiptState.ARMED: NEW,
    ReceiptState.CONFIRMED: NEW,
    ReceiptState.REVERTING: MIXED,
    ReceiptState.REVERTED: OLD,
}
CAUSES = {ReceiptState.REVERTING: "asked", ReceiptState.REVERTED: "asked"}


def leave(node: ModelNode, tx: str, state: ReceiptState = ReceiptState.CONFIRMED, guard: float = 0.0) -> None:
    """A receipt on the node, and the files that go with it, as a verb of an earlier run left them; armed, for ``guard`` seconds."""
    run = tx.rpartition("-")[0]
    found = Transaction(tx, run, 1, node.boot, node.uptime + guard, state, CAUSES.get(state, ""), finished=True)
    node.transactions[tx], node.files = found, FILES_WITH[state]
    if state is ReceiptState.ARMED:
        node.arm(found)


def confirmed_before(order: Order, but: Iterable[str] = ()) -> Play:
    """A rollback of what an earlier run has confirmed on all nodes, ``but`` for some that it never touched."""
    play = Play(order)
    leave_confirmed(play, order.nodes.keys() - set(but))
    return play


def leave_confirmed(play: Drive, names: Iterable[str]) -> None:
    """Make these nodes hold what the run before confirmed on them."""
    for name in names:
        leave(play.nodes[name], play.order.transactions[name])
