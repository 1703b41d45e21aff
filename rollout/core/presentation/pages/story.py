"""A run's journal, folded once for every picture of it: counts over time, spans, moments, readings.

The journal is replayed through the machine itself, so the page and the run can never disagree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rollout.core.model.plan import Plan
from rollout.core.model.playbook import Cause, RevertScope
from rollout.core.model.verdict import Reading, Verdict
from rollout.core.presentation.headline import NOTHING_KNOWN, Headline, WhatChanged, nodes_done
from rollout.core.presentation.waiting import extended
from rollout.core.run.events import (
    AbortAsked,
    Answered,
    ContinueAsked,
    CordonsLifted,
    Event,
    FleetRead,
    InterruptAsked,
    PauseAsked,
    Resumed,
    Trigger,
    WaveJudged,
    WaveOpened,
)
from rollout.core.run.machine import opening, replayed
from rollout.core.run.phases import is_out_of_reach
from rollout.core.run.records import Records
from rollout.core.run.state import Goal, Halt, NodeState, Order, Phase, RunState, Verb
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import printable, wall


@dataclass(frozen=True, slots=True)
class Past:
    """What was recorded before the run began. ``plan`` is ``None`` for a rollback; ``change``: what it changes or reverts."""

    order: Order
    counter: int
    at: float
    who: str
    reason: str
    plan: Plan | None = None
    change: WhatChanged = NOTHING_KNOWN


@dataclass(frozen=True, slots=True)
class WaveSample:
    """How many nodes of each wave were in which state from ``at`` on."""

    at: float
    waves: tuple[Mapping[NodeState, int], ...]


@dataclass(frozen=True, slots=True)
class StorySpan:
    """From when to when a wave was released, soaked, held …: ``kind`` is a phase, ``paused`` or ``held``."""

    wave: int
    kind: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Wrong:
    """A node that failed, was refused or was reverted: when and why."""

    at: float
    node: str
    state: NodeState
    cause: Cause | None
    reference: str
    message: str
    controller: int = 0  # how many controllers had taken over before


@dataclass(frozen=True, slots=True)
class Judged:
    """One reading of a wave gate; ``baseline``: before the wave."""

    at: float
    wave: int
    reading: Reading
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """One answer of a node's own gates."""

    at: float
    wave: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class OutsideWord:
    """An event from outside: a pause, an abort, an interrupt, a new controller."""

    at: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Story:
    """See the module. ``ended`` is when the last event was; ``events`` how many there are; ``halts`` every halt and when;
    ``not_left`` are, for each closing, the nodes that did not report a complete cleanup.
    """

    past: Past
    state: RunState
    samples: tuple[WaveSample, ...]
    spans: tuple[StorySpan, ...]
    wrongs: tuple[Wrong, ...]
    judged: tuple[Judged, ...]
    measured: tuple[Measured, ...]
    said: tuple[OutsideWord, ...]
    halted_in: RunState | None
    halts: tuple[tuple[float, Halt], ...]
    not_left: tuple[tuple[str, ...], ...]
    ended: float
    events: int
    asked_back: tuple[str, RevertScope] | None = None  # who aborted it last, and which nodes they wanted reverted

    @property
    def began(self) -> float:
        return self.past.at

    def headline(self, now: float | None = None) -> Headline:
        """``now``: seconds since the epoch, of a run that a controller works on."""
        past, counts = self.past, Counter(record.state.value for record in self.state.nodes.values())
        ended = self.ended if self.state.phase is Phase.ENDED else None
        nodes = nodes_done(past.order.goal, counts)
        now = None if now is None else max(now, self.ended)
        return Headline(past.change, past.order.goal, nodes, past.who, past.reason, past.at, ended, now)


def tell(past: Past, events: Iterable[Event]) -> Story:
    """Replay a journal and collect what the report shows."""
    fold = StoryFold(past)
    for event in events:
        fold.take(event)
    return fold.story()


_VERDICTS = {
    Trigger.GATES_PASSED: Verdict.PASS,
    Trigger.GATES_FAILED: Verdict.FAIL,
    Trigger.GATES_UNKNOWN: Verdict.UNKNOWN,
}
_WRONG = frozenset({NodeState.FAILED, NodeState.REVERTED, NodeState.REFUSED, NodeState.UNREACHABLE})


@dataclass
class StoryFold:
    """The replay in progress. Counts are updated as nodes change: counting 2,000 nodes at every event is too slow."""

    past: Past
    samples: list[WaveSample] = field(default_factory=list)
    spans: list[StorySpan] = field(default_factory=list)
    wrongs: list[Wrong] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    said: list[OutsideWord] = field(default_factory=list)
    halted_in: RunState | None = None
    halts: list[tuple[float, Halt]] = field(default_factory=list)
    not_left: list[tuple[str, ...]] = field(default_factory=list)
    asked_back: tuple[str, RevertScope] | None = None
    controllers: int = 0
    events: int = 0
    slow: set[tuple[str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.state, _ = opening(self.past.order, self.past.counter, self.past.at)
        self.counts = [Counter(self.state.nodes[n].state for n in wave.nodes) for wave in self.past.order.waves]
        self.at = self.began = self.past.at  # a later controller's clock may be behind: the page's time never goes back
        self._sample()

    def take(self, event: Event) -> None:
        before, self.state = self.state, replayed(self.state, (event,))
        self.events += 1
        if isinstance(event, CordonsLifted):
            # The run had ended before; this does not move its end.
            why = f": {printable(event.reason)}" if event.reason else ""
            words = f"cordons lifted later, {wall(event.at)}, by {printable(event.who)}{why}: {printable(fold(event.nodes), 200)}"
            self.said.append(OutsideWord(self.at, "uncordoned", words))
            return
        self.at = max(self.at, event.at)
        self._moved(event, before)
        self._record(event, before)
        if isinstance(event, Answered) and event.trigger is Trigger.DRAINING:
            self._extended(event.node)
        kind = _kind(before)
        if (kind, before.wave) != (_kind(self.state), self.state.wave):
            self.spans.append(StorySpan(before.wave, kind, self.began, self.at))
            if kind == Phase.CLOSING:
                self.not_left.append(_not_left(self.state))
            self.began = self.at
        if before.halt is None and self.state.halt is not None:
            self.asked_back = _asked_back(event)
            self.halted_in = self.state
            self.halts.append((self.at, self.state.halt))

    def _moved(self, event: Event, before: RunState) -> None:
        """Records nodes that changed state. One answer changes one node; any other event may change many."""
        order = self.past.order
        if isinstance(event, Answered) and before.phase is self.state.phase:
            changed = [(event.node, before.nodes[event.node], self.state.nodes[event.node])]
        else:
            changed = list(_records(self.state).changed_since(_records(before)))
        moved = False
        for name, old, new in changed:
            if old.state is new.state:
                continue
            moved = True
            counts = self.counts[order.nodes[name].wave]
            counts[old.state] -= 1
            counts[new.state] += 1
            if new.state in _WRONG and not (new.state is NodeState.REVERTED and order.goal is Goal.REVERT):
                self.wrongs.append(
                    Wrong(self.at, name, new.state, new.cause, new.reference, new.message, self.controllers)
                )
        if moved:
            self._sample()

    def _sample(self) -> None:
        self.samples.append(self._sampled())

    def _sampled(self) -> WaveSample:
        return WaveSample(self.at, tuple(dict(counts) for counts in self.counts))

    def _record(self, event: Event, before: RunState) -> None:
        match event:
            case Answered(verb=Verb.MEASURE):
                if event.trigger in _VERDICTS:
                    wave = self.past.order.nodes[event.node].wave
                    self.measured.append(Measured(self.at, wave, _VERDICTS[event.trigger]))
            case WaveOpened():
                said = Reading("before the wave", event.verdict, event.evidence)
                self.judged.append(Judged(self.at, event.wave, said, baseline=True))
            case WaveJudged():
                readings = event.readings or (Reading("the wave's gates", event.verdict, event.evidence),)
                self.judged.extend(Judged(self.at, event.wave, reading) for reading in readings)
            case InterruptAsked():
                self.said.append(OutsideWord(self.at, "interrupted", "interrupted: nodes in flight finish first"))
            case Resumed():
                self.controllers += 1
                accepted = "; the halt was accepted" if before.halt is not None and self.state.halt is None else ""
                self.said.append(
                    OutsideWord(self.at, "resumed", f"a new controller took over with token {event.counter}{accepted}")
                )
            case FleetRead() if event.left:
                words = f"no longer in the inventory: {printable(fold(event.left), 300)}"
                self.said.append(OutsideWord(self.at, "gone", words))
            case PauseAsked() | ContinueAsked() | AbortAsked() if before is not self.state:
                word = {PauseAsked: "paused", ContinueAsked: "continued", AbortAsked: "aborted"}[type(event)]
                why = f": {printable(event.reason)}" if event.reason else ""
                if asked := _asked_back(event):
                    why += f" (revert: {asked[1]})"
                self.said.append(OutsideWord(self.at, word, f"{word} by {printable(event.who)}{why}"))

    def _extended(self, node: str) -> None:
        """Once for each node and controller."""
        why = extended(self.state, node)
        if why and (node, self.controllers) not in self.slow:
            self.slow.add((node, self.controllers))
            self.said.append(
                OutsideWord(
                    self.at, "extended", f"the drain of {node} takes longer than its time limit: {printable(why, 300)}"
                )
            )

    def story(self) -> Story:
        """The run as far as its events were taken; more may follow."""
        kind = _kind(self.state)
        closing = (_not_left(self.state),) if kind == Phase.CLOSING else ()
        return Story(
            past=self.past,
            state=self.state,
            samples=(*self.samples, self._sampled()),
            spans=(*self.spans, StorySpan(self.state.wave, kind, self.began, self.at)),
            wrongs=tuple(self.wrongs),
            judged=tuple(self.judged),
            measured=tuple(self.measured),
            said=tuple(self.said),
            halted_in=self.halted_in,
            halts=tuple(self.halts),
            not_left=(*self.not_left, *closing),
            asked_back=self.asked_back,
            ended=self.at,
            events=self.events,
        )


def _asked_back(event: Event) -> tuple[str, RevertScope] | None:
    """The user who chose which nodes are reverted, instead of the playbook."""
    if isinstance(event, AbortAsked) and event.revert is not None:
        return event.who, event.revert
    return None


def _not_left(state: RunState) -> tuple[str, ...]:
    """Nodes that reported leftovers, or that were not asked to clean up."""
    ending = state.ending
    return tuple(name for name, record in state.nodes.items() if record.leftovers or is_out_of_reach(ending, record))


def _records(state: RunState) -> Records:
    return Records.of(state.order, state.nodes, state.now, state.fewer)


def _kind(state: RunState) -> str:
    if state.paused is not None and state.phase in (Phase.RUNNING, Phase.SOAKING):
        return "held" if state.paused.held else "paused"
    return state.phase.value
