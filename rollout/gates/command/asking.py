"""The gate that runs a command where the controller runs."""

from __future__ import annotations

from typing import Any

from rollout.app.asked_gate import AskedGate, WaveRun
from rollout.core.model.frozen import dataclass
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.run.commands import JudgeWave, OpenWave
from rollout.core.text.terminal import printable
from rollout.gates.command.query import CommandQuery, gave_no_result

LAST_LINES = 5
MOST_OUTPUT = 400
"""Most lines and characters of a failed command's output that become evidence. It must not print secrets."""


@dataclass(frozen=True, slots=True)
class CommandGate(AskedGate):
    """One gate of a wave. The command must end within ``timeout`` seconds."""

    query: CommandQuery
    timeout: float
    run: WaveRun

    def before(self, command: OpenWave) -> None:
        """Not run: a command may count on the wave's changes."""

    def now(self, command: JudgeWave, before: Any) -> Judged:  # noqa: ARG002
        """In a round of the soak. A command that cannot be run, hangs or is killed has measured nothing: UNKNOWN."""
        run, plan = self.run, self.run.plan
        wave = plan.waves[command.wave].name
        environment = {"ROLLOUT_RUN": run.run, "ROLLOUT_WAVE": wave, "ROLLOUT_CLUSTER": plan.cluster}
        ran = run.local.run(self.query.program, environment, self.timeout)
        printed = _last_words(ran.output)
        if ran.status is None:
            return Verdict.UNKNOWN, f"{ran.why}{printed}"
        if ran.status < 0:
            return Verdict.UNKNOWN, f"was killed by signal {-ran.status}{printed}"
        if gave_no_result(ran.status):
            return Verdict.UNKNOWN, f"gave no result (exit status {ran.status}){printed}"
        if ran.status:
            return Verdict.FAIL, f"ended with {ran.status}{printed}"
        return Verdict.PASS, "ended with 0"


def _last_words(output: str) -> str:
    """The last lines that a command printed, as one line: bounded and printable."""
    lines = [shown for line in output[-MOST_OUTPUT:].splitlines() if (shown := printable(line, MOST_OUTPUT))]
    said = " | ".join(lines[-LAST_LINES:])
    return f": {said[-MOST_OUTPUT:]}" if said else ""
