"""Findings about kubelets and their nodes: each with a log that shows it, and one that looks alike and is not."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.logs import NODE, event, event_list, found, journal, klog, lines, pulls

CGROUP = "kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is unsupported and will be removed in a future release"
PLEG = "PLEG is not healthy: pleg was last seen active 3m15.79s ago; threshold is 3m0s"
YET = "PLEG is not healthy: pleg has yet to be successful"


def looped(end: str, times: int, every: float = 11.0, level: str = "") -> str:
    """Starts that end with this line; with ``level`` it is a line of klog."""
    ends = (at * every + 1 for at in range(times))
    return lines(
        *(line for at in ends for line in (_start(at - 1), journal(klog(at, end, level) if level else end, at)))
    )


def _start(at: float) -> str:
    return journal(klog(at, '"Kubelet version" kubeletVersion="v1.33.1"', place="server.go:530"), at)


BAD = '"command failed" err="failed to validate kubelet configuration, error: invalid configuration: maxParallelImagePulls 0 must be a positive number, path: &TypeMeta{}"'


@pytest.mark.parametrize(
    ("end", "level", "reason"),
    [
        (BAD, "E", "maxParallelImagePulls 0 must be a positive number"),
        ("Error: failed to parse kubelet flag: unknown flag: --image-pull-progress-deadline", "", "does not have the flag --image-pull-progress-deadline"),
        ("panic: failed to merge global and in-flight KubeletConfiguration while setting defaults, error: unrecognized feature gate: X", "", "unrecognized feature gate: X"),
        ("unrecognized feature gate: NoSuchGate", "F", "NoSuchGate"),
    ],
)  # fmt: skip
def test_a_loop_has_its_reason(end: str, level: str, reason: str) -> None:
    (loop,) = found(looped(end, 4, level=level)).values()
    assert (loop.id, loop.confidence) == ("kubelet-crash-loop", Confidence.CERTAIN)
    assert "4 attempts" in loop.cause
    assert reason in loop.cause
    assert loop.nodes == (NODE,)


def test_a_loop_without_the_kubelets_lines() -> None:
    exit_ = "kubelet.service: Main process exited, code=exited, status=1/FAILURE"
    (loop,) = found(lines(*(journal(exit_, at * 11, "systemd[1]") for at in range(5)))).values()
    assert loop.confidence is Confidence.LIKELY
    assert "status 1/FAILURE" in loop.cause


def test_restarts_and_a_corrected_mistake_are_no_loop() -> None:
    assert found(looped(BAD, 2, level="E")) == {}
    assert found(looped(BAD, 4, every=4000, level="E")) == {}, "an hour apart"
    assert found(lines(*(_start(at * 11.0) for at in range(5)))) == {}, "started five times by hand"
    stopped = "kubelet.service: Main process exited, code=exited, status=0/SUCCESS"
    assert found(lines(*(journal(stopped, at * 11, "systemd[1]") for at in range(5)))) == {}
    other = "nginx.service: Main process exited, code=exited, status=1/FAILURE"
    assert found(lines(*(journal(other, at * 11, "systemd[1]") for at in range(5)))) == {}


def test_cgroup_v1_is_refused() -> None:
    findings = found(looped(f'"command failed" err="{CGROUP}"', 3, level="E"))
    assert (
        findings["cgroup-v1-refused"].proposal
        == f"rollout plan --cluster rno --limit '{NODE}' --set failCgroupV1=false"
    )
    assert set(findings) == {"cgroup-v1-refused", "kubelet-crash-loop"}


def test_a_warning_about_cgroup_v1_is_no_refusal() -> None:
    text = '"CGROUPv1 support is in maintenance mode. Please migrate to cgroup v2"'
    assert found(lines(klog(0, text, "W", "kubelet.go:600"))) == {}


@pytest.mark.parametrize(
    "message",
    [
        f"skipping pod synchronization - {PLEG}",
        f'"Skipping pod synchronization" err="{PLEG}"',
        f"Node became not ready: {{Type:Ready Status:False Reason:KubeletNotReady Message:{PLEG}}}",
        f'"Node became not ready" node="{NODE}" condition={{"type":"Ready","status":"False","message":"{PLEG}"}}',
    ],
)
def test_a_runtime_that_does_not_list_its_containers(message: str) -> None:
    (pleg,) = found(lines(klog(0, message, "E"))).values()
    assert (pleg.id, pleg.confidence) == ("pleg-unhealthy", Confidence.CERTAIN)
    assert "3 min 16 s" in pleg.cause


def test_every_healthy_start_has_a_line_about_pleg() -> None:
    text = f'"Skipping pod synchronization" err="[container runtime status check may not have completed yet, {YET}]"'
    assert found(lines(klog(0, text, "E"), klog(0, f"skipping pod synchronization - [{YET}]", "E"))) == {}


OUT = "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"


def test_a_restart_that_rejects_pods() -> None:
    events = [event(0, "Starting", "Starting kubelet.", NODE, kind="Node"), event(8, "OutOfpods", OUT)]
    (rejected,) = found(event_list(events)).values()
    assert (rejected.id, rejected.confidence) == ("pod-rejected-at-readmission", Confidence.CERTAIN)
    assert rejected.proposal.endswith("--set maxPods=2")


def test_a_pod_that_ran_before() -> None:
    (rejected,) = found(
        event_list([*pulls("web:1", "web-1", 0, 5), event(900, "OutOfcpu", "Node didn't have enough resource: cpu")])
    ).values()
    assert rejected.confidence is Confidence.LIKELY
    assert not rejected.proposal


def test_a_full_node_rejects_new_pods() -> None:
    events = [event(0, "Starting", "Starting kubelet.", NODE, kind="Node"), event(9000, "OutOfpods", OUT)]
    assert found(event_list(events)) == {}


def test_a_rejection_alone_is_unknown() -> None:
    (rejected,) = found(event_list([event(0, "NodeAffinity", "Predicate NodeAffinity failed")])).values()
    assert rejected.confidence is Confidence.UNKNOWN


def test_containers_that_an_upgrade_restarts() -> None:
    log = [
        klog(0, '"Kubelet version" kubeletVersion="v1.30.7"'),
        klog(600, '"Kubelet version" kubeletVersion="v1.31.14"'),
        klog(610, '"Message for Container of pod" containerName="app" containerStatusID={"Type":"containerd"} pod="shop/web-1" containerMessage="Container app definition changed, will be restarted"'),
        klog(1, f'"Successfully registered node" node="{NODE}"'),
    ]  # fmt: skip
    (changed,) = found(lines(*log)).values()
    assert changed.id == "container-definition-changed"
    assert "from v1.30.7 to v1.31.14" in changed.cause


def test_an_edited_pod() -> None:
    (changed,) = found(
        event_list([event(0, "Killing", "Container app definition changed, will be restarted")])
    ).values()
    assert "The pod was edited" in changed.cause


@pytest.mark.parametrize(
    "message", ["Container app failed liveness probe, will be restarted", "Stopping container app"]
)
def test_a_container_that_stops_for_another_reason(message: str) -> None:
    assert found(event_list([event(0, "Killing", message)])) == {}
