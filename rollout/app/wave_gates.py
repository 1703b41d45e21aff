"""The wave gates: asked once before a wave (these answers are the baseline), then in every round of its soak.

The worst verdict counts. A back end that does not answer is retried within the gate's own ``timeout``. Without an
answer by then the gate is UNKNOWN, and UNKNOWN is never a pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, assert_never

from rollout.app.alert_gates import AlertGate, RunSilences
from rollout.app.backends import Asking, Backends
from rollout.app.command_gates import CommandGate
from rollout.app.metric_gates import MetricGate
from rollout.app.page_gates import PageGate
from rollout.app.ports import Clock, Local
from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import (
    AgentCheck,
    AlertQuery,
    ApiCheck,
    CommandQuery,
    Gate,
    GateKind,
    GateScope,
    HttpQuery,
    NoQuery,
    PrometheusQuery,
)
from rollout.core.model.plan import Plan
from rollout.core.model.verdict import SEVERITY, Judged, Reading, Verdict
from rollout.core.run.commands import JudgeWave, LiftSilences, OpenWave
from rollout.core.run.events import SilencesLifted, WaveJudged, WaveOpened
from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.errors import RemoteError


class AskedGate(Protocol):
    """One gate of a wave. Both methods raise ``RemoteError`` if its back end does not answer."""

    def before(self, command: OpenWave) -> tuple[Verdict, str, Any] | None:
        """The verdict before the wave, and the baseline to compare with; ``None``: it is not asked before a wave."""

    def now(self, command: JudgeWave, before: Any) -> Judged:
        """The verdict in a round of the soak; ``before`` is the baseline."""


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
        gates = tuple(self._gates())
        baseline: dict[str, Any] = {}
        readings = [found for name, gate in gates if (found := _opened(name, gate, command, baseline))]
        silences: list[str] = []
        if worst(readings) is Verdict.PASS:
            silenced = (self._silenced(name, gate, command, silences) for name, gate in gates)
            readings += [reading for reading in silenced if reading is not None]
        verdict, why = worst(readings), evidence(readings)
        return WaveOpened(self.clock.now(), command.wave, verdict, why, json.dumps(baseline), tuple(silences))

    def judge(self, command: JudgeWave) -> WaveJudged:
        before = _baseline(command.baseline)
        readings = tuple(_judged(name, gate, command, before.get(name)) for name, gate in self._gates())
        return WaveJudged(self.clock.now(), command.wave, worst(readings), evidence(readings), readings)

    def lift(self, command: LiftSilences) -> SilencesLifted:
        """End the run's silences. A silence that cannot be ended is reported and expires."""
        return SilencesLifted(self.clock.now(), self._silences.lift(command.silences))

    def _gates(self) -> Iterator[tuple[str, AskedGate]]:
        for gate in self.plan.gates:
            if gate.scope is GateScope.WAVE:
                yield gate.name, self._gate(gate)

    def _gate(self, gate: Gate) -> AskedGate:
        match gate.asks:
            case PrometheusQuery() as query:
                return MetricGate(query, gate.timeout, self.plan, self._asking)
            case AlertQuery() as query:
                return AlertGate(query, gate.timeout, self._asking)
            case HttpQuery() as query:
                return PageGate(query, gate.timeout, self._asking)
            case CommandQuery() as command:
                return CommandGate(command, gate.timeout, self.run, self.plan, self.local)
            case AgentCheck(kind) | ApiCheck(kind) | NoQuery(kind):
                return _NotOfAWave(kind)
            case _ as never:
                assert_never(never)

    def _silenced(self, name: str, gate: AskedGate, command: OpenWave, silences: list[str]) -> Reading | None:
        if not isinstance(gate, AlertGate) or not gate.query.silence:
            return None
        try:
            silences.append(self._silences.set(gate, command))
        except RemoteError as error:
            verdict, said = _unanswered(error)
            return Reading(name, verdict, f"its silence could not be set: {said}")
        return None

    @property
    def _silences(self) -> RunSilences:
        return RunSilences(self.run, self.plan, self._asking, self.who)

    @property
    def _asking(self) -> Asking:
        return Asking(self.clock, self.backends)


@dataclass(frozen=True, slots=True)
class _NotOfAWave:
    """A check of nodes in a plan that names it for a wave: it measures nothing there."""

    kind: GateKind

    def before(self, command: OpenWave) -> tuple[Verdict, str, Any]:  # noqa: ARG002
        return Verdict.UNKNOWN, f"{self.kind.value} is a gate of nodes, not of a wave", None

    def now(self, command: JudgeWave, before: Any) -> Judged:  # noqa: ARG002
        return Verdict.UNKNOWN, f"{self.kind.value} is a gate of nodes, not of a wave"


def _opened(name: str, gate: AskedGate, command: OpenWave, baseline: dict[str, Any]) -> Reading | None:
    try:
        found = gate.before(command)
    except RemoteError as error:
        return Reading(name, *_unanswered(error))
    if found is None:
        return None
    verdict, said, kept = found
    if kept is not None:
        baseline[name] = kept
    return Reading(name, verdict, said)


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
        found = json_text.parse(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
