"""The node gates compare a node's measurement with the expected result of its change: PASS, FAIL or UNKNOWN.

``/healthz`` is a bare ping and ``systemctl restart`` returns 0 for a kubelet in a crash loop (Type=simple, RestartSec=10),
so each gate measures something else and none is sufficient alone. They stand together because one measurement holds all four answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, assert_never

from rollout.core.model.frozen import dataclass
from rollout.core.model.measured_query import MeasuredQuery
from rollout.core.model.plan import Change
from rollout.core.model.snapshot import NOT_ITS_OWN, NOT_OBSERVED, FileState, Measurement, UnitState
from rollout.core.model.verdict import Judged, Verdict

AgentKind = Literal["unit", "process", "healthz", "effectiveConfig"]


@dataclass(frozen=True, slots=True)
class AgentCheck(MeasuredQuery):
    """What the agent measures on each node."""

    kind: AgentKind

    @property
    def reads_configz(self) -> bool:
        return self.kind == "effectiveConfig"

    def judge(self, name: str, change: Change, measurement: Measurement, previous: Measurement | None) -> Judged:  # noqa: ARG002
        match self.kind:
            case "unit":
                return _unit(change, measurement)
            case "process":
                return _process(change, measurement, previous)
            case "healthz":
                return _healthz(change, measurement)
            case "effectiveConfig":
                return _effective_config(change, measurement)
            case _ as never:
                assert_never(never)


def _unit(change: Change, measurement: Measurement) -> Judged:
    """The kubelet's unit runs, and so do the change's other units: the first that does not run is reported."""
    if measurement.unit is None:
        return Verdict.UNKNOWN, "systemd did not answer"
    judged = [_running(measurement.unit.name, measurement.unit)]
    judged += [_running(name, _unit_of(name, measurement)) for name in _beside(change, measurement)]
    for verdict in (Verdict.FAIL, Verdict.UNKNOWN):
        found = next((each for each in judged if each[0] is verdict), None)
        if found is not None:
            return found
    return Verdict.PASS, ", ".join(evidence for _, evidence in judged)


def _running(name: str, unit: UnitState | None) -> Judged:
    if unit is None:
        return Verdict.UNKNOWN, f"systemd did not report {name}"
    active, sub = _properties(unit, "ActiveState", "SubState")
    if not active or not sub:
        return Verdict.UNKNOWN, f"systemd did not report the state of {name}"
    verdict = Verdict.PASS if (active, sub) == ("active", "running") else Verdict.FAIL
    return verdict, unit.standing


def _beside(change: Change, measurement: Measurement) -> tuple[str, ...]:
    """The units of the change without the kubelet's, once each."""
    kubelet = measurement.unit.name if measurement.unit else ""
    return tuple(dict.fromkeys(name for name in (*change.units, *change.hangups) if name != kubelet))


def _unit_of(name: str, measurement: Measurement) -> UnitState | None:
    if measurement.unit is not None and measurement.unit.name == name:
        return measurement.unit
    service = measurement.services.get(name)
    return service.unit if service else None


def _process(change: Change, measurement: Measurement, previous: Measurement | None) -> Judged:
    if measurement.unit is None:
        return Verdict.UNKNOWN, "systemd did not answer"
    pid, restarts = _identity(measurement.unit)
    if pid == "0":
        return Verdict.FAIL, "no kubelet process"
    if not pid or measurement.process is None:
        return Verdict.UNKNOWN, "the kubelet's process could not be read"
    wrong = (
        _exchanged(change, measurement, previous) or _ignoring(change, measurement) or _not_holding(change, measurement)
    )
    if wrong:
        return Verdict.FAIL, wrong
    if measurement.lenient is None and not change.log_unread:
        return Verdict.UNKNOWN, f"MainPID {pid}, but its log cannot be read"
    return Verdict.PASS, f"MainPID {pid}, NRestarts {restarts}"


def _exchanged(change: Change, measurement: Measurement, previous: Measurement | None) -> str:
    """Which unit's process changed since the last reading, or during this one."""
    pid = _identity(measurement.unit)[0]
    if measurement.process is not None and str(measurement.process.pid) != pid:
        return f"MainPID changed from {measurement.process.pid} to {pid} during the measurement"
    if previous is None or previous.unit is None or measurement.unit is None:
        return ""
    restarted = _restarted(previous.unit, measurement.unit)
    if restarted:
        return f"restarted: {restarted}"
    for name in _beside(change, measurement):
        restarted = _restarted(_unit_of(name, previous), _unit_of(name, measurement))
        if restarted:
            return f"{name} restarted: {restarted}"
    return ""


def _restarted(before: UnitState | None, now: UnitState | None) -> str:
    then, today = _identity(before), _identity(now)
    if before is None or now is None or not then[0] or not today[0] or then == today:
        return ""
    return f"MainPID {then[0]} → {today[0]}, NRestarts {then[1]} → {today[1]}"


def _identity(unit: UnitState | None) -> tuple[str, ...]:
    return (unit.kubelet_pid, *_properties(unit, "NRestarts")) if unit else ("", "")


def _ignoring(change: Change, measurement: Measurement) -> str:
    """Only a kubelet that the change restarts counts: another one logged such lines about its earlier configuration."""
    restarted = measurement.unit is not None and measurement.unit.name in change.units
    if not measurement.lenient or not restarted:
        return ""
    return f'{measurement.lenient} "lenient decoding" lines: the kubelet ignores part of its configuration'


def _healthz(change: Change, measurement: Measurement) -> Judged:
    healthz = measurement.healthz
    if healthz is None:
        return Verdict.UNKNOWN, "no program on the node can query healthz"
    if healthz == "off":
        return (
            (Verdict.PASS, "off")
            if change.healthz_port == 0
            else (Verdict.FAIL, f"off, port {change.healthz_port} was planned")
        )
    if healthz == "ok":
        return Verdict.PASS, f"ok on port {change.healthz_port}"
    if healthz in NOT_OBSERVED:
        return Verdict.UNKNOWN, f"{NOT_OBSERVED[healthz]} [{NOT_ITS_OWN}]"
    return Verdict.FAIL, healthz


def _effective_config(change: Change, measurement: Measurement) -> Judged:
    if measurement.process is None:
        return Verdict.UNKNOWN, "the kubelet's command line could not be read"
    wrong = _not_holding(change, measurement)
    if wrong:
        return Verdict.FAIL, wrong
    for file in change.files:
        verdict, evidence = _file(file.path, file.digest_after, measurement.files)
        if verdict is not Verdict.PASS:
            return verdict, evidence
    what = "1 file" if len(change.files) == 1 else f"{len(change.files)} files"
    return Verdict.PASS, f"command line and {what} as planned"


def _file(path: str, digest: str, files: Mapping[str, FileState]) -> Judged:
    state = files.get(path)
    if state is None or (state.kind == "regular" and not state.digest):
        return Verdict.UNKNOWN, f"{path} could not be read"
    if state.kind != "regular":
        return Verdict.FAIL, f"{path} is {state.kind}"
    if state.digest != digest:
        return Verdict.FAIL, f"{path} is {state.digest[:12]}, planned {digest[:12]}"
    return Verdict.PASS, path


def _not_holding(change: Change, measurement: Measurement) -> str:
    words = measurement.process.command_line[1:] if measurement.process else ()
    missing = next((argument for argument in change.arguments if argument not in words), "")
    return f"the command line does not contain {missing}" if missing else ""


def _properties(unit: UnitState, *names: str) -> tuple[str, ...]:
    return tuple(unit.properties.get(name, "") for name in names)
