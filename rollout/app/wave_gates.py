"""The wave gates: asked once before a wave (these answers are the baseline), then in every round of its soak.

The worst verdict counts. A back end that does not answer is retried within the gate's own ``timeout``. Without an
answer by then the gate is UNKNOWN, and UNKNOWN is never a pass.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from rollout.app.backends import Backends, patiently
from rollout.app.metric_gates import MetricGates, pattern_of
from rollout.app.ports import Clock, Local, Silence
from rollout.core.health_gates.measured import judge_alerts, judge_page
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import AlertQuery, Gate, GateKind, GateScope, HttpQuery
from rollout.core.model.verdict import SEVERITY, Reading, Verdict
from rollout.core.run.commands import JudgeWave, LiftSilences, OpenWave
from rollout.core.run.events import SilencesLifted, WaveJudged, WaveOpened
from rollout.core.text import json_text
from rollout.core.text.terminal import printable
from rollout.errors import RemoteError

LIFT_SECONDS = 10.0
LAST_LINES = 5
MOST_OUTPUT = 400
"""Most lines and characters of a failed command's output that become evidence. It must not print secrets."""

Said = TypeVar("Said")


@dataclass(frozen=True, slots=True)
class WaveGates:
    """Asks the wave gates of one run. Silences name ``who``."""

    run: str
    plan: Plan
    local: Local
    clock: Clock
    backends: Backends
    who: str = ""

    def open(self, command: OpenWave) -> WaveOpened:
        """Whether the wave may start.

        Command gates are not run here. Silences are set last, if all other gates pass.
        """
        baseline: dict[str, Any] = {}
        readings = [
            self._opened(gate, command, baseline) for gate in self._gates() if gate.kind is not GateKind.COMMAND
        ]
        silences: list[str] = []
        if worst(readings) is Verdict.PASS:
            silenced = (self._silenced(gate, command, silences) for gate in self._gates() if gate.alertmanager)
            readings += [reading for reading in silenced if reading is not None]
        verdict = worst(readings)
        return WaveOpened(
            self.clock.now(), command.wave, verdict, evidence(readings), json.dumps(baseline), tuple(silences)
        )

    def judge(self, command: JudgeWave) -> WaveJudged:
        before = _baseline(command.baseline)
        readings = tuple(self._judged(gate, command, before.get(gate.name)) for gate in self._gates())
        return WaveJudged(self.clock.now(), command.wave, worst(readings), evidence(readings), readings)

    def lift(self, command: LiftSilences) -> SilencesLifted:
        """End the run's silences. An expired silence is fine. A silence that cannot be ended is reported and will
        expire.

        A controller may have died between setting a silence and journaling it. Such a silence is found by its comment.
        """
        left = self._lifted(command.silences)
        left += self._lifted([found for found in self._forgotten(command.silences) if found not in command.silences])
        return SilencesLifted(self.clock.now(), tuple(left))

    def _lifted(self, silences: Sequence[str]) -> list[str]:
        """The silences that could not be ended, each with the reason."""
        left = []
        for silence in silences:
            identity, _, url = silence.partition(" ")
            try:
                self._asked(partial(self.backends.alerts.lift, url, identity), LIFT_SECONDS)
            except RemoteError as error:
                left.append(f"silence {identity} could not be ended and will expire: {error.message}")
        return left

    def _forgotten(self, known: Sequence[str]) -> list[str]:
        """Silences of this run that were not journaled. If they cannot be listed, they expire by themselves."""
        found = []
        for url in dict.fromkeys(silence.partition(" ")[2] for silence in known):
            with suppress(RemoteError):
                standing = self._asked(partial(self.backends.alerts.standing, url, self._comment()), LIFT_SECONDS)
                found += [f"{identity} {url}" for identity in standing]
        return found

    def _comment(self) -> str:
        """The prefix of the comments of all silences of this run."""
        return f"rollout {self.run}, wave "

    def _gates(self) -> Sequence[Gate]:
        return [gate for gate in self.plan.gates if gate.scope is GateScope.WAVE]

    # Before the wave.

    def _opened(self, gate: Gate, command: OpenWave, baseline: dict[str, Any]) -> Reading:
        try:
            if gate.prometheus is not None:
                verdict, said, baseline[gate.name] = self._metrics().before(gate, gate.prometheus, command.nodes)
            elif gate.alertmanager is not None:
                verdict, said, baseline[gate.name] = self._alerts_before(gate, gate.alertmanager)
            elif gate.http is not None:
                verdict, said = self._page(gate, gate.http)
            else:
                verdict, said = Verdict.UNKNOWN, "the gate has no query"
        except RemoteError as error:
            verdict, said = _unanswered(error)
        return Reading(gate.name, verdict, said)

    def _alerts_before(self, gate: Gate, query: AlertQuery) -> tuple[Verdict, str, list[str]]:
        """The baseline includes silenced alerts: the end of a silence during the run must not look like a new alert."""
        known = self._asked(partial(self.backends.alerts.known, query.url, query.matchers), gate.timeout)
        return Verdict.PASS, f"{len(known)} already firing", sorted({alert.fingerprint for alert in known})

    def _silenced(self, gate: Gate, command: OpenWave, silences: list[str]) -> Reading | None:
        query = gate.alertmanager
        if query is None or not query.silence:
            return None
        wave = self.plan.waves[command.wave].name
        try:
            pattern = pattern_of(command.nodes)
            comment = f"{self._comment()}{wave} of {self.plan.cluster}"
            silence = Silence(query.node_label, pattern, query.silence, self.who or "rollout", comment)
            identity = self._asked(partial(self.backends.alerts.silence, query.url, silence), gate.timeout)
        except RemoteError as error:
            verdict, said = _unanswered(error)
            return Reading(gate.name, verdict, f"its silence could not be set: {said}")
        silences.append(f"{identity} {query.url}")
        return None

    # In a round of the soak.

    def _judged(self, gate: Gate, command: JudgeWave, before: Any) -> Reading:
        try:
            verdict, said = self._asked_now(gate, command, before)
        except RemoteError as error:
            verdict, said = _unanswered(error)
        return Reading(gate.name, verdict, said)

    def _asked_now(self, gate: Gate, command: JudgeWave, before: Any) -> tuple[Verdict, str]:
        if gate.prometheus is not None:
            return self._metrics().judged(gate, gate.prometheus, command, before)
        if gate.alertmanager is not None:
            return self._alerts(gate, gate.alertmanager, before)
        if gate.http is not None:
            return self._page(gate, gate.http)
        return self._command(gate, command)

    def _alerts(self, gate: Gate, query: AlertQuery, before: Any) -> tuple[Verdict, str]:
        if not isinstance(before, list):
            return Verdict.UNKNOWN, "it is unknown which alerts fired before the wave"
        firing = self._asked(partial(self.backends.alerts.firing, query.url, query.matchers), gate.timeout)
        return judge_alerts(firing, before)

    def _page(self, gate: Gate, query: HttpQuery) -> tuple[Verdict, str]:
        return judge_page(query, self._asked(partial(self.backends.pages.get, query.url), gate.timeout))

    def _command(self, gate: Gate, command: JudgeWave) -> tuple[Verdict, str]:
        """Runs on the controller. A command that cannot be run, hangs or is killed has measured nothing: UNKNOWN."""
        wave = self.plan.waves[command.wave]
        environment = {"ROLLOUT_RUN": self.run, "ROLLOUT_WAVE": wave.name, "ROLLOUT_CLUSTER": self.plan.cluster}
        ran = self.local.run(gate.command, environment, gate.timeout)
        printed = _last_words(ran.output)
        if ran.status is None:
            return Verdict.UNKNOWN, f"{ran.why}{printed}"
        if ran.status < 0:
            return Verdict.UNKNOWN, f"was killed by signal {-ran.status}{printed}"
        return (
            (Verdict.PASS, "ended with 0") if ran.status == 0 else (Verdict.FAIL, f"ended with {ran.status}{printed}")
        )

    # Asking.

    def _metrics(self) -> MetricGates:
        return MetricGates(self.plan, self.clock, self.backends)

    def _asked(self, ask: Callable[[float], Said], timeout: float) -> Said:
        return patiently(ask, timeout, self.clock.now, self.backends.wait)


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


def _unanswered(error: RemoteError) -> tuple[Verdict, str]:
    return Verdict.UNKNOWN, printable(f"request failed: {error.message} [{error.reference}]", 400)


def _last_words(output: str) -> str:
    """The last lines that a command printed, as one line: bounded and printable."""
    lines = [shown for line in output[-MOST_OUTPUT:].splitlines() if (shown := printable(line, MOST_OUTPUT))]
    said = " | ".join(lines[-LAST_LINES:])
    return f": {said[-MOST_OUTPUT:]}" if said else ""


def _baseline(text: str) -> Mapping[str, Any]:
    try:
        found = json_text.parse(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
