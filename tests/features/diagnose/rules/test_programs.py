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


def test_the_last_error_of_another_program_or_node_is_not_the_kubelets() -> None:
    reason = '"Failed to frobnicate" err="no such frob"'
    other = '"Failed to watch" err="refused"'
    text = lines(
        *(
            line
            for at in AT
            for line in (
                journal(klog(at, reason, "E"), at),
                journal(klog(at + 0.1, other, "E", "reflector.go:1"), at, "kube-proxy[7]"),
                journal(klog(at + 0.2, other, "E", "reflector.go:1"), at, node="tess-node-0008"),
                klog(at + 0.3, other, "E", "reflector.go:1"),
                journal("kubelet.service: Main process exited, code=exited, status=1/FAILURE", at + 1, "systemd[1]"),
            )
        )
    )
    assert f"The last error before each end: {reason}." in found(text)["kubelet-crash-loop"].cause


def as_json(line: str, at: float, program: str, node: str = "tess-node-0007") -> str:
    stamp = str(1795683600000000 + int(at * 1e6))
    names = {"SYSLOG_IDENTIFIER": program, "_HOSTNAME": node, "_COMM": program}
    return json.dumps({"__REALTIME_TIMESTAMP": stamp, "MESSAGE": line, **names})


def test_the_last_error_in_a_journal_as_json_is_of_the_kubelet_too() -> None:
    reason = '"Failed to frobnicate" err="no such frob"'
    text = lines(
        *(
            line
            for at in AT
            for line in (
                as_json(klog(at, reason, "E"), at, "kubelet"),
                as_json(klog(at + 0.1, '"Failed to watch" err="refused"', "E", "reflector.go:1"), at, "kube-proxy"),
                as_json("kubelet.service: Main process exited, code=exited, status=1/FAILURE", at + 1, "systemd"),
            )
        )
    )
    assert f"The last error before each end: {reason}." in found(text)["kubelet-crash-loop"].cause


DOWN = (
    '"ListContainers with filter from runtime service failed" err="rpc error: code = Unavailable desc = connection error: '
    'desc = \\"transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused\\"" filter="nil"'
)


def test_another_client_of_the_runtime_is_not_the_kubelet() -> None:
    def down(program: str) -> str:
        return lines(*(journal(klog(at, DOWN, "E", "remote_runtime.go:277"), at, program) for at in range(0, 200, 10)))

    assert found(down("crictl[9]")) == {}
    assert found(down("kubelet[9]"))["runtime-down"].confidence is Confidence.CERTAIN


def test_a_runtime_tells_of_its_own_containers() -> None:
    stuck = 'time="2026-11-20T09:00:00Z" level=error msg="StopContainer for \\"%s\\" failed" error="deadline"' % (
        "ab" * 32
    )
    text = [
        journal(stuck.replace("09:00:00", f"09:0{at // 60}:{at % 60:02}"), at, "containerd[5]")
        for at in range(0, 400, 60)
    ]
    assert "container-not-killed" in found(lines(*text))


NOT_PULLED = '"Failed to pull image" err="failed to resolve reference \\"docker.io/a/b:1\\": docker.io/a/b:1: not found" image="docker.io/a/b:1"'


@pytest.mark.parametrize("program", ["shop-api[3]", "crictl[3]", "fluentd[3]"])
def test_a_pull_that_another_program_reports_in_the_kubelets_words_is_not_the_kubelets(program: str) -> None:
    line = klog(0, NOT_PULLED, "E", "kuberuntime_image.go:55")
    assert found(lines(journal(line, 0, program))) == {}


@pytest.mark.parametrize(
    "program", ["kubelet[3]", "origin-node[3]", "microshift[3]", "0a1b2c3d4e5f[3]", "hyperkube[3]"]
)
def test_a_pull_that_a_kubelet_reports_under_any_of_its_names(program: str) -> None:
    line = klog(0, NOT_PULLED, "E", "kuberuntime_image.go:55")
    assert found(lines(journal(line, 0, program)))["image-pull-backoff"].confidence is Confidence.CERTAIN


@pytest.mark.parametrize(
    ("program", "shows"), [("systemd[1]", True), ("(kubelet)[9]", True), ("fluentd[3]", False), ("shop-api[3]", False)]
)
def test_a_line_of_systemd_that_another_program_prints_is_not_systemds(program: str, shows: bool) -> None:
    refused = journal("kubelet.service: Start request repeated too quickly.", 0, program)
    assert bool(found(lines(refused))) is shows
    ended = "kubelet.service: Main process exited, code=exited, status=1/FAILURE"
    assert bool(found(lines(*(journal(ended, at * 10, program) for at in range(3))))) is shows


def test_a_pull_that_any_client_of_the_runtime_reports_may_be_one_by_hand() -> None:
    """``crictl pull`` prints this line of the kubelet's client, without the name of a program."""
    error = 'err="reading manifest 1 in x/y: unauthorized: access" image="quay.io/x/y:1"'
    line = klog(0, f'"PullImage from image service failed" {error}', "E", "remote_image.go:238")
    alone = found(lines(line))["image-pull-backoff"]
    assert alone.confidence is Confidence.LIKELY
    assert "`crictl` writes it too" in alone.cause
    assert found(lines(journal(line, 0)))["image-pull-backoff"].confidence is Confidence.CERTAIN
    both = lines(line, klog(0, f'"Failed to pull image" {error}', "E", "kuberuntime_image.go:55"))
    assert found(both)["image-pull-backoff"].confidence is Confidence.CERTAIN
