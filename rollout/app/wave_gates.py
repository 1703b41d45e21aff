"""The wave gates: asked once before a wave (these answers are the baseline), then in every round of its soak.

The worst verdict counts. A back end that does not answer is retried within the gate's own ``timeout``. Without an
answer by then the gate is UNKNOWN, and UNKNOWN is never a pass.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rollout.app.asked_gate import AskedGate, WaveRun
from rollout.app.backends import Backends
from rollout.app.ports import Clock, Local
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import Gate, GateScope
from rollout.core.model.plan import Plan
from rollout.core.model.verdict import SEVERITY, Judged, Reading, Verdict
from rollout.core.run.commands import JudgeWave, LiftSilences, OpenWave
from rollout.core.run.events import SilencesLifted, WaveJudged, WaveOpened
from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.errors import AwayError, RemoteError


@dataclass(frozen=True, slots=True)
class WaveGates:
    """Asks the wave gates of one run. Silences name ``who``, the operator."""

    run: str
    plan: Plan
    local: Local
    clock: Clock
    backends: Backends
    who: str = ""

    def open(self, command: OpenWave) -> WaveOpened:
        """Whether the wave may start. Silences are set last, if all gates pass."""
        gates = self._gates()
        baseline: dict[str, Any] = {}
        self._remember(gates, command.earlier)
        readings = [found for gate, asked in gates if (found := _opened(gate.name, asked, command, baseline))]
        silences: list[str] = []
        if worst(readings) is Verdict.PASS:
            silencing = [(gate, asked) for gate, asked in gates if gate.asks.silence]
            readings += [found for gate, asked in silencing if (found := _silenced(gate, asked, command, silences))]
        verdict, why = worst(readings), evidence(readings)
        return WaveOpened(self.clock.now(), command.wave, verdict, why, json.dumps(baseline), tuple(silences))

    def judge(self, command: JudgeWave) -> WaveJudged:
        before, gates = _baseline(command.baseline), self._gates()
        self._remember(gates, command.baseline)
        readings = tuple(_judged(gate.name, asked, command, before.get(gate.name)) for gate, asked in gates)
        return WaveJudged(self.clock.now(), command.wave, worst(readings), evidence(readings), readings)

    def lift(self, command: LiftSilences) -> SilencesLifted:
        """End the run's silences, which one of the gates has set. A silence that cannot be ended is reported and expires."""
        asked = next((asked for gate, asked in self._gates() if gate.asks.silence), None)
        left = asked.lift(command.silences) if asked else command.silences
        return SilencesLifted(self.clock.now(), left)

    def _remember(self, gates: Sequence[tuple[Gate, AskedGate]], baseline: str) -> None:
        kept = _baseline(baseline)
        for gate, asked in gates:
            if gate.name in kept:
                asked.remember(kept[gate.name])

    def _gates(self) -> Sequence[tuple[Gate, AskedGate]]:
        return [(gate, self._asked(gate)) for gate in self.plan.gates if gate.scope is GateScope.WAVE]

    def _asked(self, gate: Gate) -> AskedGate:
        asker = self.backends.askers.get(gate.kind)
        if asker is None:
            return _NotOfAWave(gate.kind)
        run = WaveRun(self.run, self.plan, self.local, self.clock, self.backends.wait, self.who)
        return asker(gate.asks, gate.timeout, run)


@dataclass(frozen=True, slots=True)
class _NotOfAWave(AskedGate):
    """A check of nodes in a plan that names it for a wave: it measures nothing there."""

    kind: str

    def before(self, command: OpenWave) -> tuple[Verdict, str, Any]:  # noqa: ARG002
        return Verdict.UNKNOWN, f"{self.kind} is a gate of nodes, not of a wave", None

    def now(self, command: JudgeWave, before: Any) -> Judged:  # noqa: ARG002
        return Verdict.UNKNOWN, f"{self.kind} is a gate of nodes, not of a wave"


def _opened(name: str, gate: AskedGate, command: OpenWave, baseline: dict[str, Any]) -> Reading | None:
    try:
        opened = gate.before(command)
    except RemoteError as error:
        return Reading(name, *_unanswered(error))
    if opened is None:
        return None
    verdict, said, kept = opened
    if kept is not None:
        baseline[name] = kept
    return Reading(name, verdict, said)


def _silenced(gate: Gate, asked: AskedGate, command: OpenWave, silences: list[str]) -> Reading | None:
    try:
        silences.append(asked.silence(command))
    except RemoteError as error:
        if isinstance(error, AwayError) or error.reference == "bad-answer":
            silences.append(_perhaps(gate))  # its answer may have been lost, or another's
        verdict, said = _unanswered(error)
        return Reading(gate.name, verdict, f"its silence could not be set: {said}")
    return None


def perhaps_set(plan: Plan) -> tuple[str, ...]:
    """The silences of a wave for which no answer was recorded, as the journal names them: without an identity."""
    return tuple(dict.fromkeys(_perhaps(gate) for gate in plan.gates if gate.asks.silence))


def _perhaps(gate: Gate) -> str:
    return f" {gate.asks.url}"


def _judged(name: str, gate: AskedGate, command: JudgeWave, before: Any) -> Reading:
    try:
        return Reading(name, *gate.now(command, before))
    except RemoteError as error:
        return Reading(name, *_unanswered(error))


def worst(readings: Sequence[Reading]) -> Verdict:
    """The worst verdict; PASS if nothing was asked."""
    return max((reading.verdict for reading in readings), key=SEVERITY.__getitem__, default=Verdict.PASS)


def evidence(readings: Sequence[Reading]) -> str:
    """The evidence of a set of readings: the first one with the worst verdict; ``""`` if all pass."""
    verdict = worst(readings)
    if verdict is Verdict.PASS:
        return ""
    reading = next(reading for reading in readings if reading.verdict is verdict)
    return f"gate {reading.gate!r}: {reading.evidence}"


def _unanswered(error: RemoteError) -> Judged:
    return Verdict.UNKNOWN, printable(f"request failed: {error.message} [{error.reference}]", 400)


def _baseline(text: str) -> Mapping[str, Any]:
    try:
        baselines = json_text.parse(text) if text else {}
    except ValueError:
        return {}
    return baselines if isinstance(baselines, dict) else {}
