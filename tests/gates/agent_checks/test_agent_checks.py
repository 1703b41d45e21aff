"""The node gates over readings: PASS, FAIL, UNKNOWN, without guesses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rollout.core.model.measured_query import MeasuredQuery
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.playbook import Disruption
from rollout.core.model.snapshot import FileState, Measurement, Process, Service, UnitState
from rollout.core.model.verdict import Judged, Verdict
from rollout.gates import table
from rollout.gates.agent_checks.query import AgentCheck
from rollout.gates.command.query import CommandQuery

FILE = FileChange("/c", b"1", b"2")
AFTER = FILE.digest_after
CHANGE = Change(
    files=(FILE,),
    units=("kubelet.service",),
    reload=False,
    disruption=Disruption.RESTART_KUBELET,
    arguments=("--config=/c", "--x=1"),
    config_path="/c",
    healthz_port=10248,
    settle=20.0,
)
UNIT = {"ActiveState": "active", "SubState": "running", "MainPID": "7", "NRestarts": "0"}
GOOD = Measurement(
    unit=UnitState("kubelet.service", UNIT),
    process=Process(7, ("/usr/bin/kubelet", "--config=/c", "--x=1")),
    healthz="ok",
    lenient=0,
    files={"/c": FileState("/c", "regular", digest=AFTER)},
    commands={"pulls": 0},
)


def unit(**properties: str) -> Measurement:
    return replace(GOOD, unit=UnitState("kubelet.service", {**UNIT, **properties}))


ON_THE_NODE = ("unit", "process", "healthz", "effectiveConfig", "command")
"""The gates that measure the node itself; the others ask the API server."""


def gate(kind: str) -> MeasuredQuery:
    made: type[Any] = table.QUERIES[kind]
    query: MeasuredQuery = made(kind) if made is AgentCheck else CommandQuery(("look",))
    return query


def judge(query: MeasuredQuery, change: Change, measurement: Measurement, previous: Measurement | None) -> Judged:
    """``pulls`` is the name of the gate."""
    return query.judge("pulls", change, measurement, previous)


@pytest.mark.parametrize("kind", ON_THE_NODE)
def test_a_healthy_node_passes(kind: str) -> None:
    assert judge(gate(kind), CHANGE, GOOD, GOOD)[0] is Verdict.PASS
    assert judge(gate(kind), CHANGE, GOOD, None)[0] is Verdict.PASS


@pytest.mark.parametrize("kind", ON_THE_NODE)
def test_nothing_read_is_unknown(kind: str) -> None:
    assert judge(gate(kind), CHANGE, Measurement(), GOOD)[0] is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("kind", "measurement", "verdict", "evidence"),
    [
        ("unit", unit(ActiveState="activating", SubState="auto-restart"), Verdict.FAIL, "kubelet.service ended, and systemd is to start it again (activating, auto-restart)"),
        ("unit", unit(ActiveState=""), Verdict.UNKNOWN, "systemd did not report the state of kubelet.service"),
        ("process", unit(MainPID="0"), Verdict.FAIL, "no kubelet process"),
        ("process", unit(MainPID=""), Verdict.UNKNOWN, "the kubelet's process could not be read"),
        ("process", unit(MainPID="8"), Verdict.FAIL, "MainPID changed from 7 to 8 during the measurement"),
        ("process", unit(NRestarts="1"), Verdict.FAIL, "restarted: MainPID 7 → 7, NRestarts 0 → 1"),
        ("process", replace(GOOD, lenient=3), Verdict.FAIL,
         '3 "lenient decoding" lines: the kubelet ignores part of its configuration'),
        ("process", replace(GOOD, lenient=None), Verdict.UNKNOWN, "MainPID 7, but its log cannot be read"),
        ("process", replace(GOOD, process=Process(7, ("k", "--config=/c"))), Verdict.FAIL, "the command line does not contain --x=1"),
        ("healthz", replace(GOOD, healthz="timeout"), Verdict.FAIL, "timeout"),
        ("healthz", replace(GOOD, healthz="not-its-own"), Verdict.UNKNOWN,
         "another process than the main process of the kubelet's unit listens on the health port [healthz-not-its-own]"),
        ("healthz", replace(GOOD, healthz="not-observed"), Verdict.UNKNOWN,
         "the node does not show which process listens on the health port [healthz-not-its-own]"),
        ("healthz", replace(GOOD, healthz="off"), Verdict.FAIL, "off, port 10248 was planned"),
        ("effectiveConfig", replace(GOOD, process=Process(7, ("k", "--x=1"))), Verdict.FAIL, "the command line does not contain --config=/c"),
        ("effectiveConfig", replace(GOOD, files={}), Verdict.UNKNOWN, "/c could not be read"),
        ("effectiveConfig", replace(GOOD, files={"/c": FileState("/c", "absent")}), Verdict.FAIL, "/c is absent"),
        ("effectiveConfig", replace(GOOD, files={"/c": FileState("/c", "regular", digest="b" * 64)}), Verdict.FAIL,
         f"/c is bbbbbbbbbbbb, planned {AFTER[:12]}"),
        ("command", replace(GOOD, commands={"pulls": 1}), Verdict.FAIL, "pulls ended with 1"),
        ("command", replace(GOOD, commands={"pulls": 1}, outputs={"pulls": "3 pulls failed"}), Verdict.FAIL, "pulls ended with 1: 3 pulls failed"),
        ("command", replace(GOOD, commands={"pulls": 124}), Verdict.UNKNOWN, "pulls gave no result (exit status 124)"),
        ("command", replace(GOOD, commands={}), Verdict.UNKNOWN, "pulls did not run"),
    ],
)  # fmt: skip
def test_judged(kind: str, measurement: Measurement, verdict: Verdict, evidence: str) -> None:
    assert judge(gate(kind), CHANGE, measurement, GOOD) == (verdict, evidence)


def test_healthz_that_is_planned_off_passes() -> None:
    assert judge(gate("healthz"), replace(CHANGE, healthz_port=0), replace(GOOD, healthz="off"), None) == (
        Verdict.PASS,
        "off",
    )


def test_the_evidence_counts_the_files() -> None:
    both = replace(CHANGE, files=(*CHANGE.files, FileChange("/d", None, FILE.after)))
    measured = replace(GOOD, files={**GOOD.files, "/d": FileState("/d", "regular", digest=AFTER)})
    assert judge(gate("effectiveConfig"), both, measured, None) == (
        Verdict.PASS,
        "command line and 2 files as planned",
    )


# --------------------------------------------------------------------------------------------- units beyond the kubelet

RUNTIME = replace(CHANGE, units=("containerd.service", "kubelet.service"), hangups=("docker.service",))


def beside(**changed: dict[str, str]) -> Measurement:
    """Containerd and docker in a healthy state, except for these properties."""
    units = {"containerd.service": {**UNIT, "MainPID": "8"}, "docker.service": {**UNIT, "MainPID": "9"}}
    found = {name: {**said, **changed.get(name.partition(".")[0], {})} for name, said in units.items()}
    return replace(GOOD, services={name: Service(UnitState(name, said)) for name, said in found.items()})


def test_every_unit_of_the_change_must_run() -> None:
    verdict, evidence = judge(gate("unit"), RUNTIME, beside(), None)
    assert verdict is Verdict.PASS
    assert evidence == (
        "kubelet.service is active (running), containerd.service is active (running), docker.service is active (running)"
    )
    dead = beside(docker={"ActiveState": "failed", "SubState": "failed"}, containerd={"ActiveState": ""})
    assert judge(gate("unit"), RUNTIME, dead, None) == (Verdict.FAIL, "docker.service is failed (failed)")
    assert judge(gate("unit"), RUNTIME, GOOD, None) == (
        Verdict.UNKNOWN,
        "systemd did not report containerd.service",
    )
    assert judge(gate("unit"), CHANGE, dead, None)[0] is Verdict.PASS  # not this change's business


def test_no_unit_of_the_change_may_restart_between_two_readings() -> None:
    now = beside(containerd={"MainPID": "88", "NRestarts": "1"})
    assert judge(gate("process"), RUNTIME, beside(), beside())[0] is Verdict.PASS
    assert judge(gate("process"), RUNTIME, now, beside()) == (
        Verdict.FAIL,
        "containerd.service restarted: MainPID 8 → 88, NRestarts 0 → 1",
    )
    assert judge(gate("process"), CHANGE, now, beside())[0] is Verdict.PASS


def test_ignored_fields_do_not_count_where_the_change_does_not_restart_the_kubelet() -> None:
    files_only = replace(CHANGE, units=())
    assert judge(gate("process"), files_only, replace(GOOD, lenient=3), None)[0] is Verdict.PASS
