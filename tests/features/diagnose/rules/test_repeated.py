"""What a kubelet reports again and again: by its whole form, since when, how often, and of what."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from rollout.features.diagnose.rules.troubles import troubles_in
from tests.features.diagnose.rules.logs import found, klog, lines
from tests.features.diagnose.rules.test_each_finding import AWAY, RESERVED, UNMOUNT, sync


def test_a_runtime_that_is_down_is_shown_with_the_pull_that_was_under_way() -> None:
    pull = 'Aug 11 10:00:00 n1 containerd[1]: time="2026-08-11T10:00:00Z" level=info msg="PullImage \\"reg.example/base:2\\""'
    down = 'Aug 11 10:06:0{0} n1 kubelet[2]: E0811 10:06:0{0}.000000       2 kubelet.go:2034] "Skipping pod synchronization" err="container runtime is down"'
    finding = found(lines(pull, down.format(0), down.format(5)))["runtime-down"]
    assert (finding.confidence, finding.nodes) == (Confidence.CERTAIN, ("n1",))
    assert "The pull of reg.example/base:2 was under way then." in finding.cause


def test_an_event_that_counts_is_enough() -> None:
    table = (
        "Events:\n  Type     Reason         Age                From     Message\n"
        '  Warning  FailedKillPod  2m (x31 over 60m)  kubelet  error killing pod: failed to "KillContainer" for "app" with KillContainerError: '
        f'"{AWAY}"\n'
    )
    finding = found(table)["container-not-killed"]
    assert "container app" in finding.cause
    assert "Reported 31 times over 58 min" in finding.cause


def test_each_container_and_pod_is_named() -> None:
    text = lines(*(klog(at, sync("api", "CreateContainerError", RESERVED), "E") for at in (0, 90, 400)))
    finding = found(text)["container-name-reserved"]
    assert "the name api_api-0_shop_9f3c_0" in finding.cause
    assert "Of pod shop/api-0. Reported 3 times over 6 min 40 s." in finding.cause


@pytest.mark.parametrize(
    "error",
    [
        "container runtime is downloading",
        "the container runtime is down the road",
        f'a pod says: failed to "KillContainer" for "app" with KillContainerError: {AWAY}',
        "Error: failed to reserve container",
        "",
    ],
)
def test_words_in_another_form_are_none(error: str) -> None:
    assert list(troubles_in(error)) == []


@pytest.mark.parametrize(
    "message", ["Failed to start ContainerManager", "Failed to start cAdvisor", "Failed to load kubelet config file"]
)
def test_the_last_error_before_the_end_is_the_reason_of_a_loop(message: str) -> None:
    """Kubelets from 1.21 on write it as an error and end with status 1; the status alone shows no reason."""
    told = []
    for at in (0, 12, 24, 36):
        told += [
            klog(at, f'"{message}" err="no such thing"', "E"),
            klog(at, "kubelet.service: Main process exited, code=exited, status=1/FAILURE", "I"),
        ]
    loop = found(lines(*told))["kubelet-crash-loop"]
    assert loop.confidence is Confidence.CERTAIN
    assert f"each ended by: {message}: no such thing" in loop.cause


NAMED = 'pod="shop/api-0" podUID="9f3c" containerName="app" containerID="containerd://0f1e2d3c4b5a"'


def failed(at: float) -> tuple[str, str, str]:
    """One try, as the layers of a kubelet report it."""
    return (
        klog(at, f'"StopContainer from runtime service failed" err="{AWAY}" containerID="0f1e2d3c4b5a"', "E"),
        klog(at, f'"Container termination failed with gracePeriod" err="{AWAY}" {NAMED} gracePeriod=30', "E"),
        klog(at, sync("app", "KillContainerError", AWAY), "E"),
    )


def test_one_try_that_three_layers_report_is_one() -> None:
    asked = klog(0, f'"Killing container with a grace period" {NAMED} gracePeriod=30')
    finding = found(lines(asked, *failed(150), *failed(450), *failed(750)))["container-not-killed"]
    assert "container app" in finding.cause
    assert "The kubelet began to end it at 09:00:00.0, with a grace period of 30 s." in finding.cause
    assert finding.cause.endswith("Reported 3 times over 10 min.")


def test_a_later_success_is_told() -> None:
    gone = klog(900, f'"Container exited normally" {NAMED}')
    assert found(lines(*failed(150), *failed(450), gone))["container-not-killed"].cause.endswith(
        "It succeeded at 09:15:00.0."
    )
    earlier = klog(10, f'"Container exited normally" {NAMED}')
    assert "succeeded" not in found(lines(earlier, *failed(150), *failed(450)))["container-not-killed"].cause
    unmounted = klog(
        3000,
        'UnmountVolume.TearDown succeeded for volume "kubernetes.io/nfs/1-data" (OuterVolumeSpecName: "data") pod "1" (UID: "1").',
    )
    held = lines(*(klog(at, UNMOUNT, "E") for at in (0, 2000)), unmounted)
    assert found(held)["volume-not-unmounted"].cause.endswith("It succeeded at 09:50:00.0.")


def test_a_container_that_is_gone_already_was_stopped() -> None:
    gone = "rpc error: code = NotFound desc = an error occurred when try to find container"
    assert found(lines(*(line.replace(AWAY, gone) for at in (0, 300, 600) for line in failed(at)[:2]))) == {}


@pytest.mark.parametrize(
    ("every", "times", "is_down"), [(30, 6, True), (30, 2, False), (1200, 6, False)], ids=["often", "twice", "rarely"]
)
def test_lists_past_their_deadline_count_if_they_follow_each_other(every: int, times: int, is_down: bool) -> None:
    call = f'"ListPodSandbox with filter from runtime service failed" err="{AWAY}" filter="nil"'
    findings = found(lines(*(klog(at * every, call, "E") for at in range(times))))
    assert ("runtime-down" in findings) is is_down
    if is_down:
        assert findings["runtime-down"].confidence is Confidence.LIKELY


def test_a_check_that_never_succeeds_is_within_one_process() -> None:
    yet = '"Skipping pod synchronization" err="container runtime status check may not have completed yet"'
    told = [klog(at, yet, "E") for at in range(0, 400, 5)]
    assert found(lines(*told))["runtime-down"].confidence is Confidence.LIKELY
    starts = [klog(at - 0.5, '"Kubelet version" kubeletVersion="v1.33.1"') for at in range(60, 400, 60)]
    assert "runtime-down" not in found(lines(*sorted((*told, *starts), key=lambda line: line[5:20])))


def test_the_kubelets_own_word_is_surer_than_its_calls() -> None:
    call = f'"ListPodSandbox with filter from runtime service failed" err="{AWAY}" filter="nil"'
    down = klog(300, '"Skipping pod synchronization" err="container runtime is down"', "E")
    finding = found(lines(*(klog(at * 30, call, "E") for at in range(6)), down))["runtime-down"]
    assert finding.confidence is Confidence.CERTAIN
    assert "at least 30 s" in finding.cause


def test_what_is_over_is_told_as_over() -> None:
    gone = klog(900, f'"Container exited normally" {NAMED}')
    assert found(lines(*failed(150), *failed(450), gone))["container-not-killed"].cause.startswith(
        "over since 09:15:00.0; until then: "
    )
    call = f'"ListPodSandbox with filter from runtime service failed" err="{AWAY}" filter="nil"'
    answered = klog(
        300, '"Container runtime initialized" containerRuntime="containerd" version="1.7.22" apiVersion="v1"'
    )
    cause = found(lines(*(klog(at * 30, call, "E") for at in range(6)), answered))["runtime-down"].cause
    assert cause.startswith("over since 09:05:00.0; until then: ")
    assert cause.endswith("It answered at 09:05:00.0.")


def test_a_success_between_two_failures_parts_them() -> None:
    unmounted = 'UnmountVolume.TearDown succeeded for volume "kubernetes.io/nfs/1-data" (OuterVolumeSpecName: "data") pod "1" (UID: "1").'
    first = UNMOUNT.replace("2m2s", "500ms")
    assert found(lines(klog(0, first, "E"), klog(1, unmounted), klog(400, first, "E"))) == {}
    assert "volume-not-unmounted" in found(lines(klog(0, first, "E"), klog(400, first, "E")))


def test_a_long_back_off_alone_shows_that_the_tries_failed_for_long() -> None:
    cause = found(lines(klog(0, UNMOUNT, "E")))["volume-not-unmounted"].cause
    assert "The kubelet waited up to 2 min 2 s between the tries." in cause
    assert found(lines(klog(0, UNMOUNT.replace("2m2s", "1m4s"), "E"))) == {}


@pytest.mark.parametrize(("apart", "counts"), [(300, True), (3600, False)])
def test_failures_of_a_name_alone_belong_together_only_if_they_follow_each_other(apart: int, counts: bool) -> None:
    told = lines(*(klog(at, sync("app", "KillContainerError", AWAY), "E") for at in (0, apart)))
    assert ("container-not-killed" in found(told)) is counts


STATUS = '"Status from runtime service failed" err="rpc error: code = {} desc = stat /proc/1087/ns/pid: permission denied: unknown"'


def test_a_runtime_that_answers_its_status_with_an_error_is_told_by_it() -> None:
    (finding,) = found(lines(*(klog(at, STATUS.format("Unknown"), "E") for at in (0, 5, 10, 300)))).values()
    assert (finding.id, finding.confidence) == ("runtime-down", Confidence.CERTAIN)
    assert "with an error: `stat /proc/1087/ns/pid: permission denied`" in finding.cause
    assert not found(lines(*(klog(at, STATUS.format("Unknown"), "E") for at in (0, 5, 10)))), "it starts"
    assert not found(lines(*(klog(at, STATUS.format("Unimplemented"), "E") for at in (0, 5, 300)))), "another CRI"
