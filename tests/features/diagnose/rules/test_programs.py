"""Words that several programs share are the kubelet's only where its name, its own words, its process or its unit tells so."""

from __future__ import annotations

import json

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from rollout.features.diagnose.rules.programs import is_kubelet
from tests.features.diagnose.rules.logs import found, journal, klog, lines

SHARED = '"command failed" err="open /etc/kubernetes/x.conf: no such file or directory"'
AT = (0.0, 20.0, 40.0)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["kubelet"], True), (["/usr/bin/kubelet"], True), (["(kubelet)"], True), (["k3s-agent"], True), (["kubelite"], True),
        (["docker", "docker", "kubelet.service"], True), (["snap.kubelet-eks.daemon"], True),
        (["kube-proxy"], False), (["kubelet", "kube-proxy"], True),
        (["-"], None), (["sh"], None), (["/bin/bash"], None), (["hyperkube"], None), (["kubelet-csr-approver"], None), ([""], None), ([], None),
    ],
)  # fmt: skip
def test_a_name_is_of_a_kubelet_of_another_program_or_tells_nothing(names: list[str], told: bool | None) -> None:
    assert is_kubelet(names) is told


def test_the_fields_of_a_journal_in_json_name_the_program() -> None:
    def of(program: str) -> str:
        return lines(
            *(
                json.dumps(
                    {
                        "__REALTIME_TIMESTAMP": str(1795683600000000 + int(at * 1e6)),
                        "MESSAGE": klog(at, SHARED, "E", "run.go:74"),
                        "SYSLOG_IDENTIFIER": program,
                    }
                )
                for at in AT
            )
        )

    assert found(of("kube-scheduler")) == {}
    assert found(of("kubelet"))["kubelet-crash-loop"].confidence is Confidence.CERTAIN


def ends(place: str = "run.go:74") -> list[str]:
    return [klog(at, SHARED, "E", place) for at in AT]


def test_without_a_name_the_process_or_the_starts_between_the_ends_tell_it() -> None:
    start = klog(-1, '"Kubelet version" kubeletVersion="v1.33.1"', place="server.go:530")
    assert found(lines(*ends()))["kubelet-crash-loop"].confidence is Confidence.UNKNOWN
    assert found(lines(start, *ends()))["kubelet-crash-loop"].confidence is Confidence.CERTAIN
    panics = [journal("panic: x", at, "sh[3]") for at in AT]
    assert found(lines(*panics))["kubelet-crash-loop"].confidence is Confidence.UNKNOWN
    starts = [journal(start, at + 5, "kubelet[3]") for at in AT]
    mixed = [line for pair in zip(panics, starts, strict=True) for line in pair]
    assert found(lines(*mixed))["kubelet-crash-loop"].confidence is Confidence.CERTAIN


def test_the_end_of_the_unit_tells_it() -> None:
    unit = "kubelet.service: Main process exited, code=exited, status=1/FAILURE"
    both = [
        line
        for at, end in zip(AT, ends(), strict=True)
        for line in (journal(end, at, "sh[3]"), journal(unit, at, "systemd[1]"))
    ]
    assert found(lines(*both))["kubelet-crash-loop"].confidence is Confidence.CERTAIN
