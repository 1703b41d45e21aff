"""The node gates over readings: PASS, FAIL, UNKNOWN, without guesses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.model.gates import Gate, GateKind, GateScope
from rollout.core.model.plan import Change, FileChange
from rollout.core.model.playbook import Disruption
from rollout.core.model.snapshot import FileState, Measurement, Process, Service, UnitState
from rollout.core.model.verdict import Verdict
from rollout.kubelet.health_gates.expectations import judge

AFTER = "a" * 64
CHANGE = Change(
    files=(FileChange("/c", "b" * 64, AFTER, "644", ()),),
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


ON_THE_NODE = (GateKind.UNIT, GateKind.PROCESS, GateKind.HEALTHZ, GateKind.EFFECTIVE_CONFIG, GateKind.COMMAND)
"""The gates that measure the node itself; the others ask the API server."""


def gate(kind: GateKind) -> Gate:
    return Gate(kind, GateScope.NODE, "pulls" if kind is GateKind.COMMAND else kind.value)


@pytest.mark.parametrize("kind", ON_THE_NODE)
def test_a_healthy_node_passes(kind: GateKind) -> None:
    assert judge(gate(kind), CHANGE, GOOD, GOOD)[0] is Verdict.PASS
    assert judge(gate(kind), CHANGE, GOOD, None)[0] is Verdict.PASS


@pytest.mark.parametrize("kind", ON_THE_NODE)
def test_nothing_read_is_unknown(kind: GateKind) -> None:
    assert judge(gate(kind), CHANGE, Measurement(), GOOD)[0] is Verdict.UNKNOWN


@pytest.mark.parametrize("kind", sorted(set(GateKind) - set(ON_THE_NODE)))
def test_a_gate_that_asks_others_is_unknown_here_and_never_passes(kind: GateKind) -> None:
    assert judge(gate(kind), CHANGE, GOOD, GOOD) == (Verdict.UNKNOWN, f"{kind.value} is not measured on a node")


@pytest.mark.parametrize(
    ("kind", "measurement", "verdict", "evidence"),
    [
        (GateKind.UNIT, unit(ActiveState="activating", SubState="auto-restart"), Verdict.FAIL, "kubelet.service is activating (auto-restart)"),
        (GateKind.UNIT, unit(ActiveState=""), Verdict.UNKNOWN, "systemd did not report the state of kubelet.service"),
        (GateKind.PROCESS, unit(MainPID="0"), Verdict.FAIL, "no kubelet process"),
        (GateKind.PROCESS, unit(MainPID=""), Verdict.UNKNOWN, "the kubelet's process could not be read"),
        (GateKind.PROCESS, unit(MainPID="8"), Verdict.FAIL, "MainPID changed from 7 to 8 during the measurement"),
        (GateKind.PROCESS, unit(NRestarts="1"), Verdict.FAIL, "restarted: MainPID 7 → 7, NRestarts 0 → 1"),
        (GateKind.PROCESS, replace(GOOD, lenient=3), Verdict.FAIL,
         '3 "lenient decoding" lines: the kubelet ignores part of its configuration'),
        (GateKind.PROCESS, replace(GOOD, lenient=None), Verdict.UNKNOWN, "MainPID 7, but its log cannot be read"),
        (GateKind.PROCESS, replace(GOOD, process=Process(7, ("k", "--config=/c"))), Verdict.FAIL, "the command line does not contain --x=1"),
        (GateKind.HEALTHZ, replace(GOOD, healthz="timeout"), Verdict.FAIL, "timeout"),
        (GateKind.HEALTHZ, replace(GOOD, healthz="not-its-own"), Verdict.UNKNOWN,
         "another process than the main process of the kubelet's unit listens on the health port [healthz-not-its-own]"),
        (GateKind.HEALTHZ, replace(GOOD, healthz="not-observed"), Verdict.UNKNOWN,
         "the node does not show which process listens on the health port [healthz-not-its-own]"),
        (GateKind.HEALTHZ, replace(GOOD, healthz="off"), Verdict.FAIL, "off, port 10248 was planned"),
        (GateKind.EFFECTIVE_CONFIG, replace(GOOD, process=Process(7, ("k", "--x=1"))), Verdict.FAIL, "the command line does not contain --config=/c"),
        (GateKind.EFFECTIVE_CONFIG, replace(GOOD, files={}), Verdict.UNKNOWN, "/c could not be read"),
        (GateKind.EFFECTIVE_CONFIG, replace(GOOD, files={"/c": FileState("/c", "absent")}), Verdict.FAIL, "/c is absent"),
        (GateKind.EFFECTIVE_CONFIG, replace(GOOD, files={"/c": FileState("/c", "regular", digest="b" * 64)}), Verdict.FAIL,
         "/c is bbbbbbbbbbbb, planned aaaaaaaaaaaa"),
        (GateKind.COMMAND, replace(GOOD, commands={"pulls": 1}), Verdict.FAIL, "pulls ended with 1"),
        (GateKind.COMMAND, replace(GOOD, commands={"pulls": 1}, outputs={"pulls": "3 pulls failed"}), Verdict.FAIL, "pulls ended with 1: 3 pulls failed"),
        (GateKind.COMMAND, replace(GOOD, commands={"pulls": 124}), Verdict.UNKNOWN, "pulls gave no result (exit status 124)"),
        (GateKind.COMMAND, replace(GOOD, commands={}), Verdict.UNKNOWN, "pulls did not run"),
    ],
)  # fmt: skip
def test_judged(kind: GateKind, measurement: Measurement, verdict: Verdict, evidence: str) -> None:
    assert judge(gate(kind), CHANGE, measurement, GOOD) == (verdict, evidence)


def test_healthz_that_is_planned_off_passes() -> None:
    assert judge(gate(GateKind.HEALTHZ), replace(CHANGE, healthz_port=0), replace(GOOD, healthz="off"), None) == (
        Verdict.PASS,
        "off",
    )


def test_the_evidence_counts_the_files() -> None:
    both = replace(CHANGE, files=(*CHANGE.files, FileChange("/d", "", AFTER, "644", ())))
    measured = replace(GOOD, files={**GOOD.files, "/d": FileState("/d", "regular", digest=AFTER)})
    assert judge(gate(GateKind.EFFECTIVE_CONFIG), both, measured, None) == (
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
    verdict, evidence = judge(gate(GateKind.UNIT), RUNTIME, beside(), None)
    assert verdict is Verdict.PASS
    assert evidence == (
        "kubelet.service is active (running), containerd.service is active (running), docker.service is active (running)"
    )
    dead = beside(docker={"ActiveState": "failed", "SubState": "failed"}, containerd={"ActiveState": ""})
    assert judge(gate(GateKind.UNIT), RUNTIME, dead, None) == (Verdict.FAIL, "docker.service is failed (failed)")
    assert judge(gate(GateKind.UNIT), RUNTIME, GOOD, None) == (
        Verdict.UNKNOWN,
        "systemd did not report containerd.service",
    )
    assert judge(gate(GateKind.UNIT), CHANGE, dead, None)[0] is Verdict.PASS  # not this change's business


def test_no_unit_of_the_change_may_restart_between_two_readings() -> None:
    now = beside(containerd={"MainPID": "88", "NRestarts": "1"})
    assert judge(gate(GateKind.PROCESS), RUNTIME, beside(), beside())[0] is Verdict.PASS
    assert judge(gate(GateKind.PROCESS), RUNTIME, now, beside()) == (
        Verdict.FAIL,
        "containerd.service restarted: MainPID 8 → 88, NRestarts 0 → 1",
    )
    assert judge(gate(GateKind.PROCESS), CHANGE, now, beside())[0] is Verdict.PASS


def test_ignored_fields_do_not_count_where_the_change_does_not_restart_the_kubelet() -> None:
    files_only = replace(CHANGE, units=())
    assert judge(gate(GateKind.PROCESS), files_only, replace(GOOD, lenient=3), None)[0] is Verdict.PASS
