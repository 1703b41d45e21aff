"""The keys of ``rollout watch``: what each does, what is asked back, and what the nodes' and the gates' lists show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from rollout.core.model.verdict import Reading
from rollout.core.run.events import Event, RequestWord, WaveJudged, WaveOpened
from rollout.core.run.facts import BROKEN, IN_MOTION
from rollout.core.run.state import NodeRecord, NodeState, Phase, RunState
from rollout.core.text.terminal import printable, wall


class Panel(StrEnum):
    """A list below the display."""

    NODES = "nodes"
    GATES = "gates"


@dataclass(frozen=True, slots=True)
class Keyboard:
    """``asking``: the request that the next key confirms or drops. ``said``: what the last key did."""

    panel: Panel | None = None
    asking: RequestWord | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class Pressed:
    """``request``: to be sent to the run now. ``leave``: to stop watching."""

    keyboard: Keyboard
    request: RequestWord | None = None
    leave: bool = False


_REQUESTS = {"p": RequestWord.PAUSE, "c": RequestWord.CONTINUE, "a": RequestWord.ABORT}
_PANELS = {"n": Panel.NODES, "g": Panel.GATES}


def possible(state: RunState) -> tuple[RequestWord, ...]:
    """The requests that a controller would do now."""
    if state.halt is not None or state.phase in (Phase.CLOSING, Phase.ENDED):
        return ()
    return (RequestWord.PAUSE if state.paused is None else RequestWord.CONTINUE, RequestWord.ABORT)


def pressed(keyboard: Keyboard, key: str, state: RunState, *, alone: bool = True) -> Pressed:
    """What one key does. What stops harm is sent at once; what starts more nodes only after a ``y``.

    ``alone``: no other key came with it. A typed or pasted text sends nothing.
    """
    if (asked := keyboard.asking) is not None:
        if key in "yY" and alone:
            return Pressed(replace(keyboard, asking=None, said=f"{asked.value}: sent"), request=asked)
        return Pressed(replace(keyboard, asking=None, said=f"{asked.value}: nothing was done"))
    if key == "q":
        return Pressed(keyboard, leave=True)
    if key in _PANELS:
        panel = None if keyboard.panel is _PANELS[key] else _PANELS[key]
        return Pressed(Keyboard(panel=panel))
    if (word := _REQUESTS.get(key)) is None:
        return Pressed(keyboard)
    if word not in possible(state):
        return Pressed(replace(keyboard, said=f"{word.value}: not possible now"))
    if word is RequestWord.CONTINUE:
        return Pressed(replace(keyboard, asking=word, said=""))
    if not alone:
        return Pressed(replace(keyboard, said=f"{word.value}: not sent, other keys came with it: press {key} alone"))
    return Pressed(replace(keyboard, said=f"{word.value}: sent"), request=word)


def question(word: RequestWord, state: RunState) -> str:
    """The request in words, with what it would do: last, because a small screen shows only the beginning."""
    run, cluster = state.order.run, state.order.cluster
    return f"{word.value} run {run} on {cluster}? y: yes, any other key: no (more nodes are started)"


def key_list(state: RunState) -> str:
    """The keys that do something now, in one line."""
    requests = [f"{key} {word.value}" for key, word in _REQUESTS.items() if word in possible(state)]
    return " · ".join((*requests, "n nodes", "g gates", "q leave"))


def node_lines(state: RunState) -> Iterator[str]:
    """The failed nodes, then those in flight, then the others of the current wave."""
    wave = set(state.order.waves[min(state.wave, len(state.order.waves) - 1)].nodes if state.order.waves else ())
    shown = [(name, record) for name, record in state.nodes.items() if name in wave or _rank(record) < _OTHERS]
    for name, record in sorted(shown, key=lambda pair: (_rank(pair[1]), pair[0])):
        why = printable(f"{record.message} [{record.reference}]" if record.reference else record.message, 200)
        rack = printable(state.order.nodes[name].rack, 16)
        yield f"{printable(name, 40):<24} {rack:<10} {record.state.value:<11} {why}".rstrip()


_OTHERS = 2


def _rank(record: NodeRecord) -> int:
    if record.cause is not None or record.state in BROKEN or record.state is NodeState.REFUSED:
        return 0
    return 1 if record.state in IN_MOTION else _OTHERS


@dataclass(frozen=True, slots=True)
class GateReading:
    """The newest reading of a gate; ``baseline``: before the wave."""

    at: float
    wave: int
    reading: Reading
    baseline: bool


def newest_readings(known: Mapping[str, GateReading], event: Event) -> Mapping[str, GateReading]:
    """``known`` with what ``event`` measured; by gate."""
    match event:
        case WaveOpened():
            readings: tuple[Reading, ...] = (Reading("before the wave", event.verdict, event.evidence),)
        case WaveJudged():
            readings = event.readings or (Reading("the wave's gates", event.verdict, event.evidence),)
        case _:
            return known
    baseline = isinstance(event, WaveOpened)
    return {**known, **{reading.gate: GateReading(event.at, event.wave, reading, baseline) for reading in readings}}


def gate_lines(state: RunState, known: Mapping[str, GateReading]) -> Iterator[str]:
    """The newest reading of each gate of the waves."""
    if not known:
        yield "no gate of a wave was checked yet"
    for name, each in known.items():
        wave = printable(state.order.waves[each.wave].name, 40)
        evidence = printable(each.reading.evidence, 300) or "no evidence"
        yield f"{each.reading.verdict.value.upper():<7} {printable(name, 40)}, wave {wave}, {wall(each.at)}: {evidence}"
