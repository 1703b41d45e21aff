"""Each finding has input that shows it, and input that looks alike and does not. The other modules have more of both."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from rollout.features.diagnose.rules.diagnosis import IDS
from rollout.features.diagnose.rules.finding import Confidence, Finding
from rollout.kubelet import values
from tests.features.diagnose.rules.logs import NODE, event, event_list, found, klog, lines, logrus, pulls
from tests.features.diagnose.rules.test_endings import POD, ending
from tests.features.diagnose.rules.test_node_starts import BAD, CGROUP, OUT, PLEG, YET, looped
from tests.features.diagnose.rules.test_not_in_force import EDITED, configured, effective, judged
from tests.features.diagnose.rules.test_pulls import CUTS, QUICK, SLOW, queue

STARTED = event(0, "Starting", "Starting kubelet.", NODE, kind="Node")
CHANGED = "Container app definition changed, will be restarted"
LATER = '"Running preStop hook" ' + POD.replace("0f1e2d3c", "99aa88bb")


AWAY = "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
RESERVED = (
    'failed to reserve container name "api_api-0_shop_9f3c_0": name "api_api-0_shop_9f3c_0" is reserved for "7c54f31e"'
)
UNMOUNT = (
    'Operation for "{volumeName:kubernetes.io/nfs/1-data podName:1 nodeName:}" failed. No retries permitted until 2026-06-26 07:44:20.700 +0000 UTC '
    'm=+1 (durationBeforeRetry 2m2s). Error: UnmountVolume.TearDown failed for volume "data" (UniqueName: "kubernetes.io/nfs/1-data") pod "1" (UID: "1") : '
    "remove /var/lib/kubelet/pods/1/volumes/kubernetes.io~nfs/data: device or resource busy"
)


CNI = 'rpc error: code = Unknown desc = failed to destroy network for sandbox "b25b": plugin type="calico" failed (delete): signal: killed'


def sandbox() -> str:
    """A message of pod_workers.go about a sandbox that does not end."""
    told = f'failed to "KillPodSandbox" for "9f3c-11" with KillPodSandboxError: {json.dumps(CNI)}'
    return f'"Error syncing pod, skipping" err={json.dumps(told)} pod="shop/api-0" podUID=9f3c'


OFF = '"Container runtime network not ready" networkReady="NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"'


def no_sandbox() -> str:
    """A message of kuberuntime_manager.go about a sandbox that is not made."""
    return f'"CreatePodSandbox for pod failed" err={json.dumps(CNI.replace("destroy", "setup").replace("(delete)", "(add)"))} pod="shop/api-0"'


def terminating(later: str) -> str:
    """A pod that was to be gone at 09:00:30, and another one with this time."""
    deleted = {
        "name": "api-0",
        "namespace": "shop",
        "deletionTimestamp": "2026-11-20T09:00:30Z",
        "deletionGracePeriodSeconds": 30,
    }
    running = {"containerStatuses": [{"name": "app", "state": {"running": {"startedAt": "2026-11-19T09:00:00Z"}}}]}
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": deleted, "spec": {"nodeName": NODE}, "status": running},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "b", "namespace": "shop", "creationTimestamp": later},
            "spec": {},
            "status": {},
        },
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})


UNREGISTERED = f'"Unable to register node with API server" err="Unauthorized" node="{NODE}"'
RESTARTED = (
    klog(0, '"SyncLoop DELETE" source="api" pods=["shop/api-0"]'),
    klog(0, f'"Killing container with a grace period" {POD} gracePeriod=600'),
    logrus(
        60,
        'An error occurs during waiting for container "0f1e2d3c" to be stopped',
        "error",
        ' error="wait container \\"0f1e2d3c\\" is cancelled"',
    ),
    klog(61, '"Kubelet version" kubeletVersion="v1.21.5"'),
)


def sync(container: str, reason: str, error: str) -> str:
    """A message of pod_workers.go, from 1.21 on."""
    verb = "KillContainer" if reason == "KillContainerError" else "StartContainer"
    told = f'failed to "{verb}" for "{container}" with {reason}: {json.dumps(error)}'
    return f'"Error syncing pod, skipping" err={json.dumps(told)} pod="shop/api-0" podUID=9f3c'


def slow(pulled: str, times: int) -> str:
    return event_list(
        [each for at in range(times) for each in pulls(f"{SLOW}{at}", f"w-{at}", at, 311 + at, done=pulled)]
    )


LOGS: dict[str, tuple[str, str]] = {
    "cgroup-v1-refused": (
        looped(f'"command failed" err="{CGROUP}"', 3, level="E"),
        lines(klog(0, '"CPU and memory are on cgroup v1" warning="cgroup v1 support will be removed in a future release"', "W")),
    ),
    "container-definition-changed": (
        event_list([event(0, "Killing", CHANGED)]),
        event_list([event(0, "Killing", "Container app failed liveness probe, will be restarted")]),
    ),
    "container-config-error": (
        lines(*(klog(at, sync("api", "CreateContainerConfigError", 'secret "db" not found'), "E") for at in (0, 12, 300))),
        lines(*(klog(at, sync("api", "CreateContainerConfigError", 'secret "db" not found'), "E") for at in (0, 12))),
    ),
    "container-create-error": (
        lines(*(klog(at, sync("api", "RunContainerError", "context deadline exceeded"), "E") for at in (0, 120, 300))),
        lines(*(klog(at, sync("api", "RunContainerError", "context deadline exceeded"), "E") for at in (0, 12))),
    ),
    "container-name-reserved": (
        lines(*(klog(at, sync("api", "CreateContainerError", RESERVED), "E") for at in (0, 300))),
        lines(klog(0, sync("api", "CreateContainerError", RESERVED), "E")),
    ),
    "container-not-killed": (
        lines(*(klog(at, sync("app", "KillContainerError", AWAY), "E") for at in (0, 300))),
        lines(*(klog(at, sync("app", "KillContainerError", AWAY), "E") for at in (0, 10))),
    ),
    "runtime-down": (
        lines(klog(0, '"Skipping pod synchronization" err="[container runtime is down, PLEG is not healthy: pleg has yet to be successful]"', "E")),
        lines(klog(0, f'"Skipping pod synchronization" err="{YET}"', "E")),
    ),
    "sandbox-not-created": (
        lines(*(klog(at, no_sandbox(), "E") for at in (0, 300))),
        lines(*(klog(at, no_sandbox(), "E") for at in (0, 10))),
    ),
    "sandbox-not-stopped": (
        lines(*(klog(at, sandbox(), "E") for at in (0, 300))),
        lines(*(klog(at, sandbox(), "E") for at in (0, 10))),
    ),
    "killed-at-kubelet-restart": (
        lines(*RESTARTED),
        lines(*(line.replace("is cancelled", "stop timeout") for line in RESTARTED)),
    ),
    "volume-not-unmounted": (
        lines(*(klog(at, UNMOUNT, "E") for at in (0, 2000))),
        lines(*(klog(at, UNMOUNT.replace("UnmountVolume.TearDown", "MountVolume.SetUp"), "E") for at in (0, 2000))),
    ),
    "image-pull-backoff": (
        event_list([*pulls(QUICK, "web-1", 0, 2, "manifest unknown"), event(9, "BackOff", f'Back-off pulling image "{QUICK}"')]),
        event_list([event(0, "BackOff", "Back-off restarting failed container app in pod web-1")]),
    ),
    "kubelet-crash-loop": (looped(BAD, 4, level="E"), looped(BAD, 4, every=4000, level="E")),
    "network-not-ready": (
        lines(*(klog(at, OFF, "E") for at in range(0, 200, 5))),
        lines(*(klog(at, OFF, "E") for at in range(0, 60, 5)), klog(90, '"Kubelet version" kubeletVersion="v1.33.1"')),
    ),
    "negative-grace-period": (
        ending((0, "delete"), (0, "override -3"), (9, "gone"), (10, "remove")),
        ending((0, "delete"), (0, "override 2"), (1, "gone"), (2, "remove")),
    ),
    "pleg-unhealthy": (
        lines(klog(0, f'"Skipping pod synchronization" err="{PLEG}"', "E")),
        lines(klog(0, f'"Skipping pod synchronization" err="{YET}"', "E")),
    ),
    "pod-rejected-at-readmission": (
        event_list([STARTED, event(8, "OutOfpods", OUT)]),
        event_list([STARTED, event(9000, "OutOfpods", OUT)]),
    ),
    "prestop-failed": (
        event_list([event(0, "FailedPreStopHook", "PreStopHook failed")]),
        event_list([event(0, "FailedPostStartHook", "PostStartHook failed")]),
    ),
    "node-not-registered": (
        lines(*(klog(at, UNREGISTERED, "E") for at in (0, 60, 130))),
        lines(*(klog(at, UNREGISTERED, "E") for at in (0, 60, 110))),
    ),
    "prestop-twice": (
        ending((0, "delete"), (0, "hook"), (3, "hook done"), (5, "hook"), (8, "hook done"), (8, "kill 2"), (9, "gone")),
        ending((0, "delete"), (0, "hook"), (3, "hook done")) + lines(klog(4, LATER)),
    ),
    "pull-progress-deadline": (
        lines(klog(0, CUTS[0], "E")),
        event_list([*pulls(QUICK, "web-1", 0, 70, "context canceled"), event(72, "Starting", "Starting kubelet.", NODE, kind="Node")]),
    ),
    "pull-qps-exceeded": (
        event_list([each for at in range(12) for each in pulls(QUICK, f"web-{at}", at / 10, 1, "pull QPS exceeded")]),
        event_list(pulls(QUICK, "web-1", 0, 2, "toomanyrequests: pull QPS exceeded")),
    ),
    "registry-slow": (
        slow(" in 5m10s (5m11s including waiting). Image size: 300000000 bytes.", 3),
        slow(" in 5m10s (5m11s including waiting). Image size: 9000000000 bytes.", 3),
    ),
    "serial-pull-queue": (
        event_list(queue(11)),
        event_list([each for at in range(9) for each in pulls(QUICK, f"web-{at}", at * 20, 300)]),
    ),
    "slow-termination": (
        ending((0, "delete"), (0, "kill 5"), (40, "gone"), (41, "remove")),
        ending((0, "delete"), (0, "kill 40"), (40, "gone"), (41, "remove")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("id_", LOGS)
def test_a_log_shows_it_and_one_that_looks_alike_does_not(id_: str) -> None:
    shows, looks_alike = LOGS[id_]
    assert id_ in found(shows)
    assert id_ not in found(looks_alike)


def _stale(running: int) -> tuple[Finding, ...]:
    node = configured("maxPods: 60\n")
    return judged(replace(node, stale=EDITED, running=values.canonical({**effective(node), "maxPods": running})))


PODS = {"pod-stays-terminating": (terminating("2026-11-20T10:00:00Z"), terminating("2026-11-20T09:00:40Z"))}


@pytest.mark.parametrize("id_", PODS)
def test_pods_show_it_and_pods_that_look_alike_are_not_sure(id_: str) -> None:
    """The file was changed at the end of the year: a pod that was deleted shortly before its printing may have been gone then."""
    shows, looks_alike = PODS[id_]
    assert found(shows)[id_].confidence is Confidence.CERTAIN
    assert found(looks_alike)[id_].confidence is Confidence.UNKNOWN


NODES: dict[str, tuple[Callable[[], tuple[Finding, ...]], Callable[[], tuple[Finding, ...]]]] = {
    "not-in-force": (lambda: _stale(110), lambda: _stale(60)),
}


@pytest.mark.parametrize("id_", NODES)
def test_a_node_shows_it_and_one_that_looks_alike_does_not(id_: str) -> None:
    shows, looks_alike = NODES[id_]
    assert [finding.id for finding in shows()] == [id_]
    assert looks_alike() == ()


def test_every_finding_is_here() -> None:
    assert sorted({*LOGS, *PODS, *NODES}) == sorted(IDS)
