"""A program with its arguments: on the node for a node gate, where the controller runs for a wave gate."""

from __future__ import annotations

import shlex

from rollout.core.model.frozen import dataclass
from rollout.core.model.measured_query import MeasuredQuery
from rollout.core.model.plan import Change
from rollout.core.model.snapshot import Measurement
from rollout.core.model.verdict import Judged, Verdict

_SIGNALLED = 128
"""A higher exit status is a shell's status for a command that a signal killed: it has measured nothing."""

_NOT_ASKED = frozenset({124, 126, 127})
"""Exit statuses of a command that timed out, could not be executed, or was not found."""


def gave_no_result(status: int) -> bool:
    """Whether a command that ended with this status has measured nothing."""
    return status in _NOT_ASKED or status > _SIGNALLED


@dataclass(frozen=True, slots=True)
class CommandQuery(MeasuredQuery):
    program: tuple[str, ...]

    kind = "command"

    def words(self) -> tuple[str, ...]:
        return (shlex.join(self.program),)

    def judge(self, name: str, change: Change, measurement: Measurement, previous: Measurement | None) -> Judged:  # noqa: ARG002
        status = measurement.commands.get(name)
        if status is None:
            return Verdict.UNKNOWN, f"{name} did not run"
        output = measurement.outputs.get(name, "")
        printed = f": {output}" if output else ""
        if gave_no_result(status):
            return Verdict.UNKNOWN, f"{name} gave no result (exit status {status}){printed}"
        return (Verdict.PASS if status == 0 else Verdict.FAIL), f"{name} ended with {status}{printed}"
