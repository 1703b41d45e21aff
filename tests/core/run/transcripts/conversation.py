"""Transcripts of the run machine: what is fed in, and what comes out. ``python -m tests.core.run.transcripts.conversation`` writes all of them anew.

A line at the left edge is fed in; the indented lines below it are what came out. ``#`` begins a comment. The laws are checked
after every event, and at the end a replay of the journal must give the same state.

* ``fleet a=2 b=2 KEY=VALUE …``: racks and their nodes, and the run: ``goal``, ``canary`` (so many nodes of each rack are the first
  wave), ``passes``, ``rack`` (most unavailable nodes of a rack), ``pace``, ``budget`` (of the fleet), ``rackbudget``, ``rehearsal``, ``gates``, ``hold``,
  ``drain``, ``pulls``, ``then``, ``failure``, ``data`` (pod starts).
* ``begin``: the first controller; ``resume``: the next one.
* ``NODES TRIGGER KEY=VALUE …``: the nodes answer what they were asked. ``all``: every node that is asked. ``late NODES …``: with
  the number of the question before.
* ``tick SECONDS``: so much later. ``wave pass``: the wave gates answer. ``silences lifted``.
* ``pause``, ``continue``, ``interrupt``, ``abort``, ``window closed``, ``window open``, ``NODES left``, ``NODES returned``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rollout.core.model.playbook import Budget, Busy, Cause, Limits, PullsInFlight, RevertScope, Scope, Share, SoakData
from rollout.core.model.verdict import Verdict
from rollout.core.run.commands import Ask, Command, JudgeWave, LiftSilences, OpenWave
from rollout.core.run.events import (
    AbortAsked,
    Answered,
    ContinueAsked,
    Event,
    FleetRead,
    InterruptAsked,
    PauseAsked,
    Resumed,
    SilencesLifted,
    Ticked,
    Trigger,
    WaveJudged,
    WaveOpened,
    WindowClosed,
    WindowOpened,
)
from rollout.core.run.journal_codec import decode_event, encode_event
from rollout.core.run.laws import broken_laws
from rollout.core.run.machine import as_journaled, opening, replayed, step
from rollout.core.run.state import Goal, NodeRecord, NodeState, Order, Phase, RunState, Verb
from rollout.core.text.nodesets import expand, fold
from tests.orders import make_order

FOLDER = Path(__file__).parent
START = 1.0
"""When each run begins, in seconds."""


class Conversation:
    """One transcript while it is played."""

    def __init__(self) -> None:
        self.order: Order
        self.state: RunState
        self.journal: list[Event] = []
        self.requests = 0

    def hear(self, line: str) -> Iterator[str]:
        """Feed a line in; yields what comes out."""
        word, *rest = line.split()
        if word == "fleet":
            self.order = fleet(_keys(rest))
            return
        if word == "begin":
            self.state, first = opening(self.order, 1, START)
            yield from _asked(first)
            return
        before, asked = self.state, list[Command]()
        for event in self._events(word, rest):
            journaled = as_journaled(self.state, event)
            if journaled is None:
                yield f"ignored: {getattr(event, 'node', '')} has no such question"
                continue
            self.state, commands = step(self.state, journaled)
            asked += commands
            self.journal.append(journaled)
            assert broken_laws(self.state) == (), (line, broken_laws(self.state))
        yield from _changes(before, self.state)
        yield from _asked(asked)

    def _events(self, word: str, rest: list[str]) -> Iterator[Event]:
        state, now = self.state, self.state.now
        who = ("me", "", self.requests + 1)
        match word, rest:
            case "tick", [seconds]:
                yield Ticked(now + float(seconds))
            case "resume", []:
                yield Resumed(now + 1.0, state.counter + 1)
            case "interrupt", []:
                yield InterruptAsked(now)
            case "pause", []:
                yield PauseAsked(now, *who)
            case "continue", []:
                yield ContinueAsked(now, *who)
            case "abort", scope:
                yield AbortAsked(now, *who, RevertScope(scope[0]) if scope else None)
            case "window", ["closed"]:
                yield WindowClosed(now, "Sunday", now + 3600.0)
            case "window", ["open"]:
                yield WindowOpened(now)
            case "wave", [verdict, *silences]:
                said = Verdict(verdict)
                if state.phase is Phase.RUNNING:
                    yield WaveOpened(now, state.wave, said, "the error rate", "0.1 %", tuple(silences))
                else:
                    yield WaveJudged(now, state.wave, said, "the error rate")
            case "silences", ["lifted"]:
                yield SilencesLifted(now)
            case names, ["left"]:
                yield FleetRead(now, dict.fromkeys(expand(names), "not-in-inventory"), {}, {})
            case names, ["returned"]:
                yield FleetRead(now, {}, {}, {})
            case "late", [names, trigger, *more]:
                yield from self._answers(names, trigger, _keys(more), late=1)
            case names, [trigger, *more]:
                yield from self._answers(names, trigger, _keys(more))
            case _:
                raise ValueError(word)
        if word in ("pause", "continue", "abort"):
            self.requests += 1

    def _answers(self, names: str, trigger: str, keys: dict[str, str], late: int = 0) -> Iterator[Event]:
        known = {field.name: field.type for field in fields(Answered)}
        said: dict[str, Any] = {}
        for key, text in keys.items():
            kind = str(known[key])
            value: Any = float(text) if kind == "float" else int(text) if kind.startswith("int") else text
            said[key] = tuple(text.split(",")) if kind.startswith("tuple") else value
        asked = [name for name, record in self.state.nodes.items() if record.asked is not None]
        for name in asked if names == "all" else expand(names):
            record = self.state.nodes[name]
            verb = record.asked if record.asked is not None else Verb.READ
            on = Trigger[trigger.upper().replace("-", "_")]
            yield Answered(self.state.now, name, record.serial - late, verb, on, **said)


def fleet(keys: dict[str, str]) -> Order:
    racks = {rack: int(size) for rack, size in keys.items() if len(rack) == 1}
    canary = int(keys.get("canary", "0"))
    first = (("canary", lambda name: int(name.partition("-")[2]) <= canary),) if canary else ()
    hold = frozenset({"canary"}) if "hold" in keys else frozenset()
    order = make_order(
        racks,
        (*first, ("rest", lambda _: True)),
        goal=Goal(keys.get("goal", "apply")),
        limits=Limits(per_rack=Share(count=int(keys.get("rack", "1"))), pace=float(keys.get("pace", "10"))),
        budgets=(
            Budget(Scope.FLEET, frozenset(Cause), Share(count=int(keys.get("budget", "2")))),
            Budget(Scope.RACK, frozenset(Cause), Share(count=int(keys.get("rackbudget", "9")))),
        ),
        on_failure=RevertScope(keys.get("failure", "node")),
        wave_gates="gates" in keys,
        rehearsal="rehearsal" in keys,
        hold=hold,
        drain=float(keys.get("drain", "0")),
        pulls=PullsInFlight(float(keys.get("pulls", "600")), Busy(keys.get("then", "skip"))),
        soak=3.0,
    )
    data = SoakData(int(keys["data"]), within=60.0) if "data" in keys else None
    return replace(
        order, passes=int(keys.get("passes", "1")), waves=tuple(replace(wave, data=data) for wave in order.waves)
    )


def _keys(words: list[str]) -> dict[str, str]:
    """``_`` in a value is a space."""
    pairs = (word.partition("=") for word in words)
    return {key: value.replace("_", " ") if key == "message" else value for key, _, value in pairs}


def _changes(before: RunState, after: RunState) -> Iterator[str]:
    """What is different: of the run, then of its nodes, those with the same change folded."""
    if after.halt is not None and after.halt != before.halt:
        yield f"halt, {after.halt.ending} [{after.halt.reference}]: {after.halt.message}"
    if before.halt is not None and after.halt is None:
        yield "the halt is accepted"
    for what, was, now in (
        ("paused", before.paused, after.paused),
        ("the window is closed", before.closed, after.closed),
    ):
        if (was is None) is not (now is None):
            yield what if now else f"no longer {what}" if what == "paused" else "the window is open"
    if before.counter != after.counter:
        yield f"token {after.counter}"
    if (before.phase, before.wave) != (after.phase, after.wave):
        wave = after.order.waves[after.wave].name if after.wave < len(after.order.waves) else ""
        yield f"{after.phase} {wave}" if after.phase in (Phase.RUNNING, Phase.SOAKING) else str(after.phase)
    if after.phase is Phase.ENDED is not before.phase:
        yield f"the ending: {after.ending}"
    together: dict[str, list[str]] = {}
    for name, record in after.nodes.items():
        words = "; ".join(_change(before.nodes[name], record))
        if words:
            together.setdefault(words, []).append(name)
    yield from (f"{fold(names)}: {words}" for words, names in together.items())


def _change(before: NodeRecord, after: NodeRecord) -> Iterator[str]:
    was, now = _shown(before), _shown(after)
    if was != now:
        yield now if type(before.current) is type(after.current) else f"{type(before.current).__name__} → {now}"
    if before.cause != after.cause:
        yield f"charged: {after.cause}" if after.cause else "no longer charged"
    if before.accepted != after.accepted:
        yield "accepted" if after.accepted else "no longer accepted"
    if before.owed != after.owed:
        yield "pending recovery" if after.owed else "no longer pending recovery"
    if not before.to_revert and after.to_revert and after.state != "reverting":
        yield "to be reverted"
    if before.to_revert and not after.to_revert and after.state == before.state:
        yield "no longer to be reverted"
    if before.attempt != after.attempt:
        yield f"attempt {after.attempt}"
    if before.cordoned and not after.cordoned:
        yield "no cordon"
    if before.rehearsal != after.rehearsal:
        yield f"rehearsal {after.rehearsal}"
    if (before.reference, before.message) != (after.reference, after.message):
        yield (
            f"[{after.reference}]" + (f" {after.message}" if after.message else "")
            if after.reference
            else "no reason any more"
        )
    if before.leftovers != after.leftovers and after.leftovers:
        yield f"left behind: {', '.join(after.leftovers)}"


def _shown(record: NodeRecord) -> str:
    """A state and those of its fields that say something."""
    at = record.current
    parts = []
    if record.postponed is not None and record.state is not NodeState.APPLYING:
        images = f" {', '.join(record.postponed.images)}" if record.postponed.images else ""
        parts.append(f"postponed for {record.postponed.reason}{images}, again at {record.postponed.again:g} s")
    if waits := getattr(at, "waits", ""):
        parts.append(f"{waits}, again at {at.again:g} s")  # type: ignore[union-attr]
    if reads := getattr(at, "reads", 0):
        parts.append(f"{reads} reads without an answer")
    if away := getattr(at, "away_since", 0.0):
        parts.append(f"the engine is away since {away:g} s")
    return type(at).__name__ + (f" ({'; '.join(parts)})" if parts else "")


def _asked(commands: Iterable[Command]) -> Iterator[str]:
    together: dict[str, list[str]] = {}
    for command in commands:
        match command:
            case Ask():
                extra = "".join(
                    (
                        f" {command.tx}" if command.verb in ("apply", "revert", "confirm") else "",
                        ", and void a late apply" if command.void else "",
                        ", whatever it pulls" if command.regardless else "",
                        f", {command.left:g} s left" if command.verb == "drain" else "",
                        ", with its log" if command.evidence else "",
                    )
                )
                together.setdefault(f"{command.verb}{extra}", []).append(command.node)
            case OpenWave():
                yield f"? the wave gates, before wave {command.wave + 1}"
            case JudgeWave():
                yield f"? the wave gates, over {fold(command.touched) or 'no node'}, against {fold(command.control) or 'no node'}"
            case LiftSilences():
                yield f"? lift {', '.join(command.silences)}"
    yield from (f"? {fold(names)}: {words}" for words, names in together.items())


def played(text: str) -> str:
    """The transcript with what comes out now."""
    talk, lines = Conversation(), list[str]()
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"  {each}" for each in talk.hear(line)]
    told = [decode_event(encode_event(event)) for event in talk.journal]
    assert replayed(opening(talk.order, 1, START)[0], told) == talk.state, "a replay must give the same state"
    return "\n".join(lines) + "\n"


def main() -> None:
    for path in sorted(FOLDER.glob("*.txt")):
        path.write_text(played(path.read_text()))


if __name__ == "__main__":
    main()
