"""What a kubelet reports again and again: by its whole form, since when, how often, and of what."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from rollout.features.diagnose.rules.troubles import troubles_in
from tests.features.diagnose.rules.logs import found, klog, lines
from tests.features.diagnose.rules.test_each_finding import AWAY, RESERVED, sync


def test_a_runtime_that_is_down_is_shown_with_the_pull_that_was_under_way() -> None:
    pull = 'Aug 11 10:00:00 n1 containerd[1]: time="2026-08-11T10:00:00Z" level=info msg="PullImage \\"reg.example/base:2\\""'
    down = 'Aug 11 10:06:00 n1 kubelet[2]: E0811 10:06:00.000000       2 kubelet.go:2034] "Skipping pod synchronization" err="container runtime is down"'
    finding = found(lines(pull, down))["runtime-down"]
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
