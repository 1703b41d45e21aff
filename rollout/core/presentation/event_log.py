"""A run's events as lines for people, as they happen: waves, gates, failures, holds, halts.

A run of 2,000 nodes has few of them: nodes that succeed have no line of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from rollout.core.model.approvals import USED
from rollout.core.model.config_map import ConfigMapChange, ConfigMapOutcome, ConfigMapStanding
from rollout.core.model.plan import Wave
from rollout.core.model.verdict import Verdict
from rollout.core.presentation.summary import WITH_OTHERS, rehearsed
from rollout.core.presentation.summary_text import counts_text
from rollout.core.presentation.waiting import extended, waits_for
from rollout.core.run.events import (
    Answered,
    ConfigMapRead,
    Event,
    FleetRead,
    InterruptAsked,
    Resumed,
    Ticked,
    Trigger,
    WaveJudged,
    WaveOpened,
)
from rollout.core.run.facts import AT_REST, IN_MOTION
from rollout.core.run.state import Ending, Goal, NodeRecord, NodeState, Phase, RunState, Verb
from rollout.core.run.transitions import GRACE
from rollout.core.text.message_folding import folded, for_all
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable, seconds_text

MOST_OF_A_KIND = 20
"""Failed nodes with the same state and reference that have a line each, in a log with ``details``."""

_NO_CLAIM = frozenset({Trigger.UNREACHED, Trigger.AWAY, Trigger.LOST, Trigger.REFUSED, Trigger.GONE})
"""Answers to a claim of nodes that have not accepted it, as far as is known, unless ``USED`` is why they are refused."""

_WRONG = frozenset({NodeState.FAILED, NodeState.REVERTED, NodeState.REFUSED, NodeState.UNREACHABLE})


class Tone(StrEnum):
    """How a line is meant."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class LogLine:
    text: str
    tone: Tone = Tone.PLAIN


@dataclass
class EventLog:
    """The lines of one run. ``details``: also the beginning of each wave, its gates, and every failed node."""

    details: bool = False
    wave_began: float = 0.0
    kinds: Counter[tuple[NodeState, str]] = field(default_factory=Counter)
    slow: set[str] = field(default_factory=set)
    judged: set[int] = field(default_factory=set)
    rehearsed: bool = False
    to_claim: frozenset[str] | None = None
    claimed: set[str] = field(default_factory=set)
    waited_for: tuple[str, ...] = ()
    waiting_since: float = 0.0

    def lines(self, event: Event, before: RunState, after: RunState) -> Iterator[LogLine]:
        """What is to be told of ``event``, which turned ``before`` into ``after``. In the order of the journal."""
        if self.to_claim is None or isinstance(event, Resumed):
            self.to_claim = _with_work(after if isinstance(event, Resumed) else before)
        if isinstance(event, Answered) and event.verb is Verb.READ and before.phase is Phase.OPENING:
            is_claimed = event.trigger not in _NO_CLAIM or event.reference == USED
            (self.claimed.add if is_claimed else self.claimed.discard)(event.node)
        match event:
            case InterruptAsked():
                yield LogLine("stopping: finishing nodes in flight first; interrupt again to stop at once")
            case Resumed():
                self.claimed.clear()
                yield LogLine(f"a new controller took over, token {after.counter}")
            case FleetRead() if event.left:
                yield LogLine(f"no longer in the inventory: {printable(fold(event.left), 300)}")
            case ConfigMapRead() if (change := after.order.config_map) is not None:
                yield _config_map(event, change, after.config_map)
            case Answered(trigger=Trigger.DRAINING):
                # Once for each node with pods that terminate more slowly than their time limit.
                why = extended(after, event.node)
                if why and event.node not in self.slow:
                    self.slow.add(event.node)
                    yield LogLine(f"  {event.node}: {printable(why, 400)}")
            case Answered():
                yield from self._node(event.node, before, after)
            case WaveOpened() | WaveJudged() if self.details:
                yield from self._gates(event, after)
        if after.phase is Phase.HALTING and isinstance(event, Answered | Ticked):
            yield from self._waiting(event, after)
        elif self.waited_for and after.phase is not Phase.HALTING:
            states: dict[str, list[str]] = {}
            for name in self.waited_for:
                states.setdefault(str(after.nodes[name].state), []).append(name)
            self.waited_for = ()
            ends = ", ".join(f"{fold(names)} {state}" for state, names in states.items())
            yield LogLine(f"waited {seconds_text(after.now - self.waiting_since)}: {printable(ends, 400)}")
        yield from self._rehearsal(after)
        if before.phase is not after.phase or before.wave != after.wave:
            yield from self._phase(before, after)
        if (before.paused, before.closed) != (after.paused, after.closed) and after.halt is None:
            yield LogLine(waits_for(after, after.now) if after.waits else "the run continues")

    def _node(self, name: str, before: RunState, after: RunState) -> Iterator[LogLine]:
        record = after.nodes[name]
        if record.state is before.nodes[name].state or record.state not in _WRONG:
            return
        if after.order.goal is Goal.REVERT and record.state is NodeState.REVERTED:
            return
        kind = (record.state, record.reference)
        self.kinds[kind] += 1
        most = MOST_OF_A_KIND if self.details else 1
        if self.kinds[kind] > most or (self.details and record.reference == WITH_OTHERS):
            return
        why = printable(record.message, 200) or ("reverted with the run" if record.cause is None else "no message")
        more = " (more of this kind are in the summary)" if self.kinds[kind] == most else ""
        yield LogLine(f"  {name} {record.state}: {why} [{record.reference}]{more}", Tone.BAD)

    def _waiting(self, event: Answered | Ticked, after: RunState) -> Iterator[LogLine]:
        """Once, when nodes are only read again and again: nothing else would be printed until they answer or are given up."""
        if self.waited_for or (isinstance(event, Answered) and not _is_waited_for(after.nodes[event.node], after.now)):
            return
        moving = {name: record for name, record in after.nodes.items() if record.state in IN_MOTION}
        if not moving or not all(_is_waited_for(record, after.now) for record in moving.values()):
            return
        self.waited_for, self.waiting_since = tuple(moving), min(record.since for record in moving.values())
        longest = max(record.since for record in moving.values()) + after.order.guard + GRACE - after.now
        why = {
            name: " ".join(
                filter(None, (record.message or "no answer", f"[{record.reference}]" if record.reference else ""))
            )
            for name, record in moving.items()
        }
        reasons = "; ".join(f"{fold(names)}: {for_all(reason, names)}" for reason, names in folded(why).items())
        yield LogLine(
            f"waiting for {counted(len(moving), 'node')} that must answer, {seconds_text(max(0.0, longest))} at most: {printable(reasons, 400)}"
        )

    def _gates(self, event: WaveOpened | WaveJudged, after: RunState) -> Iterator[LogLine]:
        """The baseline of a wave, its first pass in the soak, and whatever did not pass."""
        passed = event.verdict is Verdict.PASS
        known = isinstance(event, WaveJudged) and event.wave in self.judged
        if not event.evidence or (passed and known):
            return
        self.judged |= {event.wave} if isinstance(event, WaveJudged) else set()
        when = "before" if isinstance(event, WaveOpened) else "of"
        wave = printable(after.order.waves[event.wave].name, 60)
        message = f"gates {when} wave {wave}: {event.verdict.value.upper()} {printable(event.evidence, 300)}"
        yield LogLine(message, Tone.PLAIN if passed else Tone.BAD)

    def _rehearsal(self, after: RunState) -> Iterator[LogLine]:
        """Once, when every node of the first wave was reverted."""
        if self.rehearsed or after.wave > 0 or not after.order.rehearsal:
            return
        outcome = rehearsed(after)
        if outcome is not None and outcome.done == outcome.nodes:
            self.rehearsed = True
            yield LogLine(str(outcome))

    def _phase(self, before: RunState, after: RunState) -> Iterator[LogLine]:
        order = after.order
        if before.phase is Phase.OPENING:
            self.wave_began = after.now
        if before.phase is Phase.OPENING and not _is_turned_away(after):
            missing = len((self.to_claim or frozenset()) - self.claimed)
            others = f"; {missing} not claimed" if missing else ""
            yield LogLine(
                f"claimed {counted(len(self.claimed), 'node')} of {order.cluster} as {order.run}, token {after.counter}{others}"
            )
        if after.phase is Phase.SOAKING and before.phase is not Phase.SOAKING:
            wave = order.waves[after.wave]
            took = after.now - self.wave_began
            counts: dict[str, int] = {}
            for name in wave.nodes:
                counts[str(after.nodes[name].state)] = counts.get(str(after.nodes[name].state), 0) + 1
            yield LogLine(
                f"wave {wave.name} ({counted(len(wave.nodes), 'node')}): {counts_text(counts)} in {took:.0f} s; soaking {wave.soak:g} s"
            )
        if after.wave != before.wave and after.wave > 0:
            self.wave_began = after.now
            yield _wave_over(order.waves[before.wave], after)
        if (
            self.details
            and after.phase is Phase.RUNNING
            and order.goal is Goal.APPLY
            and before.phase is not after.phase
        ):
            wave = order.waves[after.wave]
            yield LogLine(f"wave {wave.name} ({counted(len(wave.nodes), 'node')}) begins")
        if after.halt is not None and before.halt is None:
            yield LogLine(f"halting: {printable(after.halt.message, 400)} [{after.halt.reference}]", Tone.BAD)
        if after.phase is Phase.HALTING and order.goal is Goal.REVERT and (going := _with_work(after)):
            yield LogLine(f"reverting {counted(len(going), 'node')}, at most {order.limits.pace:g} nodes/s")
        if after.phase is Phase.CLOSING:
            # In one line: the nodes that did not fail themselves.
            names = [name for name, record in after.nodes.items() if record.reference == WITH_OTHERS]
            back = [name for name in names if after.nodes[name].state is NodeState.REVERTED]
            if self.details and back:
                yield LogLine(
                    f"  {counted(len(back), 'node')} reverted because the run halted: {printable(fold(back), 200)}"
                )
            yield LogLine("cleaning up on every node")


def _with_work(state: RunState) -> frozenset[str]:
    """The nodes that are not at rest. A resumed run does not claim the others again."""
    return frozenset(name for name, record in state.nodes.items() if record.state not in AT_REST)


SILENT = 5.0
"""Seconds without progress after which a node is waited for: most are read again, and answer, before."""


def _is_waited_for(record: NodeRecord, now: float) -> bool:
    return record.state is NodeState.UNKNOWN and now - record.since >= SILENT


def _is_turned_away(state: RunState) -> bool:
    """Whether the run ended while it claimed its nodes: it has not claimed them all."""
    return state.halt is not None and state.halt.ending in (Ending.CLAIMED, Ending.PREFLIGHT)


def has_changed(state: RunState, wave: Wave) -> bool:
    """Whether a node of the wave is changed. After a resume, none may be left that could have passed a gate."""
    return any(state.nodes[name].state is NodeState.CONFIRMED for name in wave.nodes)


def _config_map(event: ConfigMapRead, change: ConfigMapChange, standing: ConfigMapStanding) -> LogLine:
    done = "restored" if standing.restores else "written"
    title = printable(change.title, 200)
    if event.outcome is ConfigMapOutcome.WRITTEN:
        return LogLine(f"{title}: {done}, and read back", Tone.GOOD)
    return LogLine(f"{title}: not {done}: {printable(event.message, 400)} [{event.reference}]", Tone.BAD)


def _wave_over(wave: Wave, after: RunState) -> LogLine:
    if has_changed(after, wave):
        return LogLine(f"wave {wave.name}: passed", Tone.GOOD)
    return LogLine(f"wave {wave.name}: over, none of its nodes is changed", Tone.PLAIN)
