"""Findings about the end of pods: each with a log that shows it, and one that looks alike and is not."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.logs import RECORDED, found, klog, lines

POD = 'pod="shop/web-1" podUID="0f" containerName="app" containerID="containerd://0f1e2d3c"'


def ending(*steps: tuple[float, str]) -> str:
    """The lines of a kubelet from 1.21 on."""
    words = {
        "delete": '"SyncLoop DELETE" source="api" pods=["shop/web-1"]',
        "remove": '"SyncLoop REMOVE" source="api" pods=["shop/web-1"]',
        "hook": f'"Running preStop hook" {POD}',
        "hook done": f'"PreStop hook completed" {POD}',
        "gone": f'"Container exited normally" {POD}',
        "died": '"SyncLoop (PLEG): event for pod" pod="shop/web-1" event={"ID":"0f","Type":"ContainerDied","Data":"0f1e2d3c"}',
        "start": '"Kubelet version" kubeletVersion="v1.33.1"',
    }

    def text(step: str) -> str:
        word, _, grace = step.partition(" ")
        if word == "kill":
            return f'"Killing container with a grace period" {POD} gracePeriod={grace}'
        if word == "override":
            return f'"Killing container with a grace period override" {POD} gracePeriod={grace}'
        return words[step]

    return lines(*(klog(at, text(step)) for at, step in steps))


def test_incident_2_from_its_log() -> None:
    findings = found((RECORDED / "incident-2.kubelet.log").read_text())
    assert {name: each.confidence for name, each in findings.items()} == {
        "slow-termination": Confidence.CERTAIN,
        "negative-grace-period": Confidence.CERTAIN,
        "prestop-twice": Confidence.CERTAIN,
    }
    assert (
        "needed 22 s to end its containers, with a grace period of 5 s, and 12 s more"
        in findings["slow-termination"].cause
    )
    assert (
        "Without the 10 s of the negative grace period about 23.6 s of 33.6 s remain"
        in findings["slow-termination"].cause
    )
    assert "a grace period of -3 s" in findings["negative-grace-period"].cause
    assert "agent-kirovpre-krds-ys02 ran 2 times" in findings["prestop-twice"].cause
    assert "the sidecar patch" in findings["prestop-twice"].fetch_next


def test_the_timeline_of_incident_2() -> None:
    timeline = found((RECORDED / "incident-2.kubelet.log").read_text())["slow-termination"].timeline
    assert [line.split(" s  ")[1] for line in timeline] == [
        "the kubelet receives the deletion",
        "preStop hook of agent-kirovpre-krds-ys02 starts",
        "preStop hook of agent-kirovpre-krds-ys02 ends",
        "the kubelet begins to end kirovpre-krds-ys02, with 5 s",
        "preStop hook of kirovpre-krds-ys02 starts",
        "preStop hook of kirovpre-krds-ys02 ends",
        "SIGTERM to kirovpre-krds-ys02, 2 s left",
        "kirovpre-krds-ys02 is stopped",
        "the kubelet begins to end agent-kirovpre-krds-ys02, with 5 s",
        "preStop hook of agent-kirovpre-krds-ys02 starts",
        "the kubelet sees that kirovpre-krds-ys02 has ended",
        "preStop hook of agent-kirovpre-krds-ys02 ends",
        "SIGTERM to agent-kirovpre-krds-ys02, -3 s left",
        "agent-kirovpre-krds-ys02 is stopped",
        "the pod is gone from the API",
    ]
    assert timeline[-1].startswith("20:40:11.5   +33.6 s")


def test_a_pod_that_uses_its_grace_period_is_in_order() -> None:
    assert found(ending((0, "delete"), (0, "kill 30"), (31, "gone"), (33, "remove"))) == {}


def test_a_hook_and_the_rest_of_the_grace_period_are_in_order() -> None:
    assert (
        found(ending((0, "delete"), (0, "hook"), (20, "hook done"), (20, "kill 10"), (30.5, "gone"), (32, "remove")))
        == {}
    )
    assert found(ending((0, "delete"), (20, "kill 10"), (30.5, "died"), (32, "remove"))) == {}, "at -v=2"


def test_a_kubelet_1_21_calls_each_grace_period_an_override() -> None:
    assert found(ending((0, "delete"), (20, "override 10"), (30.5, "died"), (32, "remove"))) == {}


def test_a_hook_that_is_not_deducted() -> None:
    """1.22 to 1.27, kubernetes #115817."""
    steps = (
        (0, "delete"),
        (0, "hook"),
        (20, "hook done"),
        (20, "override 30"),
        (20, "kill 30"),
        (50, "gone"),
        (51, "remove"),
    )
    (slow,) = found(ending(*steps)).values()
    assert slow.id == "slow-termination"
    assert "needed 50 s" in slow.cause
    assert "20 s: preStop hook of app" in slow.cause


def test_the_same_at_a_lower_verbosity_needs_the_minor() -> None:
    text = ending((0, "delete"), (20, "kill 30"), (50, "died"), (51, "remove"))
    assert found(text) == {}
    (slow,) = found(text, minor=25).values()
    assert "20 s: before the first SIGTERM (a preStop hook, which this log does not show)" in slow.cause


def test_a_pod_that_stays_in_the_api() -> None:
    (slow,) = found(ending((0, "delete"), (0, "kill 30"), (2, "gone"), (62, "remove"))).values()
    assert (
        "needed 2 s to end its containers, with a grace period of 30 s, and 60 s more until it left the API"
        in slow.cause
    )
    assert "finalizer" in slow.fetch_next


def test_a_log_that_ends_before_the_pod_does() -> None:
    (slow,) = found(ending((0, "delete"), (0, "kill 5"), (40, "gone"))).values()
    assert "second half" in slow.fetch_next


def test_a_pod_without_a_grace_period_in_the_log_is_not_judged() -> None:
    assert found(ending((0, "delete"), (600, "died"), (601, "remove"))) == {}


@pytest.mark.parametrize("grace", ["0", "1", "2"])
def test_a_short_grace_period_is_not_a_negative_one(grace: str) -> None:
    assert found(ending((0, "delete"), (0, f"override {grace}"), (1, "gone"), (2, "remove"))) == {}


def test_a_negative_grace_period_in_keys() -> None:
    findings = found(ending((0, "delete"), (0, "override -3"), (100, "gone"), (101, "remove")))
    assert "it took 1 min 40 s" in findings["negative-grace-period"].cause


def test_a_negative_grace_period_without_an_end() -> None:
    findings = found(ending((0, "override -3")))
    assert "no end of it is in the files" in findings["negative-grace-period"].cause


def test_a_hook_of_each_container_is_not_twice() -> None:
    other = f'"Running preStop hook" {POD.replace("0f1e2d3c", "4b5a6978").replace("app", "agent")}'
    assert found(ending((0, "delete"), (0, "hook"), (1, "hook done")) + lines(klog(1, other))) == {}


def test_a_hook_that_a_restarted_kubelet_runs_again_is_not_twice() -> None:
    steps = (
        (0, "delete"),
        (0, "hook"),
        (5, "start"),
        (8, "hook"),
        (11, "hook done"),
        (11, "kill 20"),
        (12, "gone"),
        (13, "remove"),
    )
    assert "prestop-twice" not in found(ending(*steps))


def test_a_hook_behind_the_sigterm_of_the_first_is_of_an_end_that_began_again() -> None:
    """A real 1.20.2 that ended a pod 31 s after its start: the second end begins 0.07 s after the SIGTERM of the first."""
    steps = ((0, "delete"), (0.1, "hook"), (1.1, "hook done"), (1.1, "kill 29"), (1.17, "hook"), (2.2, "gone"))
    (twice,) = found(ending(*steps)).values()
    assert twice.fetch_next.startswith("nothing: the kubelet began to end the container again")


def test_two_runs_of_one_hook_side_by_side_are_of_two_ends() -> None:
    """A real 1.20.2 again. The patch for sidecars runs the second when the first is over."""
    steps = (
        (0, "delete"),
        (0.1, "hook"),
        (0.9, "hook"),
        (1.1, "hook done"),
        (1.1, "kill 29"),
        (1.9, "hook done"),
        (2.2, "gone"),
    )
    (twice,) = found(ending(*steps)).values()
    assert twice.fetch_next.startswith("nothing: the kubelet began to end the container again")


def test_a_hook_that_runs_twice_in_keys() -> None:
    steps = (
        (0, "delete"),
        (0, "hook"),
        (3, "hook done"),
        (8, "hook"),
        (11, "hook done"),
        (11, "kill 20"),
        (12, "gone"),
        (13, "remove"),
    )
    (twice,) = found(ending(*steps)).values()
    assert "container app ran 2 times in one end of its pod, 8 s apart" in twice.cause


def test_a_container_that_is_ended_anew_while_it_ends() -> None:
    """Recorded from a kubelet 1.20.2: pods that were removed right after its restart."""
    steps = ((0, "delete"), (0, "hook"), (1, "hook done"), (1, "kill 29"), (2, "hook"), (2.2, "gone"), (3, "hook done"))
    (twice,) = found(ending(*steps)).values()
    assert twice.id == "prestop-twice"
    assert "began to end the container again" in twice.fetch_next
    assert "app began 2 times" in twice.cause
    assert "The container ended before the last run did." in twice.cause


@pytest.mark.parametrize(
    "failed",
    [
        "ExecSync 0f1e2d3c 'sleep 1' from runtime service failed: rpc error: code = FailedPrecondition desc = the container is not running",
        '"ExecSync cmd from runtime service failed" err="rpc error: code = NotFound desc = failed to find container" containerID="0f1e2d3c" cmd=["sleep","1"]',
        "rpc error: code = DeadlineExceeded",
    ],
)
def test_a_hook_that_the_runtime_did_not_run_has_not_run(failed: str) -> None:
    """A real 1.20.2 ended 15 of 113 containers again that had just ended; its runtime, which counts, ran each hook once."""
    timed_out = failed.startswith("rpc")
    if timed_out:
        failed = f"ExecSync 0f1e2d3c 'sleep 1' from runtime service failed: {failed} desc = context deadline exceeded"
    steps = ((0, "delete"), (0, "hook"), (1, "hook done"), (1, "kill 29"), (3, "hook"), (3.2, "hook done"))
    told = found(ending(*steps) + lines(klog(3.1, failed, "E")))
    assert ("prestop-twice" in told) is timed_out


def test_a_hook_that_is_requested_of_a_stopped_container_does_not_run() -> None:
    assert found(ending((0, "delete"), (0, "hook"), (1, "hook done"), (1, "kill 29"), (2, "gone"), (4, "hook"))) == {}


def two_hooks(first: float, last: float, grace: tuple[int, int]) -> str:
    """Two containers of one pod, their hooks side by side. Each needs all of the period behind its hook."""
    other = POD.replace("0f1e2d3c", "99aa88bb").replace("app", "proxy")
    said = [(0.0, '"SyncLoop DELETE" source="api" pods=["shop/web-1"]')]
    for pod, hook, seconds in ((POD, first, grace[0]), (other, last, grace[1])):
        said += [
            (0.01, f'"Running preStop hook" {pod}'), (hook, f'"PreStop hook completed" {pod}'),
            (hook + 0.1, f'"Killing container with a grace period override" {pod} gracePeriod={seconds}'),
            (hook + seconds + 0.2, f'"Container exited normally" {pod}'),
        ]  # fmt: skip
    end = max(at for at, _ in said) + 1
    return lines(
        *(klog(at, text) for at, text in sorted([*said, (end, '"SyncLoop REMOVE" source="api" pods=["shop/web-1"]')]))
    )


def test_the_same_period_behind_different_hooks_is_the_whole_one_again() -> None:
    """Kubelets 1.22 to 1.27, shown by the log alone. Of others each container has what its hook has left."""
    slow = found(two_hooks(20, 28, (30, 30)))["slow-termination"]
    assert "needed 58 s to end its containers, with a grace period of 30 s" in slow.cause
    assert found(two_hooks(20, 28, (10, 2))) == {}
