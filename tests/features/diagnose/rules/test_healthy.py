"""A healthy log has no finding, restarts, rejections of others and pulls included."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import pytest

from tests.features.diagnose.rules.logs import NODE, RECORDED, diagnosis, journal, klog, lines, logrus

START_1_20 = (
    "Version: v1.20.2",
    'FLAG: --container-runtime="remote"',
    "Starting kubelet main sync loop.",
    "skipping pod synchronization - [container runtime status check may not have completed yet, PLEG is not healthy: pleg has yet to be successful]",
    f"Attempting to register node {NODE}",
    f"Successfully registered node {NODE}",
    "Node became not ready: {Type:Ready Status:False Reason:KubeletNotReady Message:container runtime status check may not have completed yet}",
    "Started kubelet",
)
START = (
    '"Kubelet version" kubeletVersion="v1.33.1"',
    '"Golang settings" GOGC="" GOMAXPROCS="" GOTRACEBACK=""',
    '"Starting kubelet main sync loop"',
    '"Skipping pod synchronization" err="[container runtime status check may not have completed yet, PLEG is not healthy: pleg has yet to be successful]"',
    f'"Attempting to register node" node="{NODE}"',
    f'"Successfully registered node" node="{NODE}"',
    f'"Node became not ready" node="{NODE}" condition={{"type":"Ready","status":"False","reason":"KubeletNotReady","message":"[container runtime status check may not have completed yet, PLEG is not healthy: pleg has yet to be successful]"}}',
    '"Started kubelet"',
)


def life(number: int, keyed: bool) -> tuple[tuple[float, str], ...]:
    """A pod comes and goes: seconds and messages."""
    id_, name = f"{number:012x}", f"web-{number}"
    if not keyed:
        pod = f'"{name}_shop(01473fb7-a17b-11ea-8d10-c88d83d31d55)"'
        return (
            (0.0, f'SyncLoop (ADD, "api"): {pod}'),
            (2.0, f'SyncLoop (PLEG): {pod}, event: &pleg.PodLifecycleEvent{{ID:"0f", Type:"ContainerStarted", Data:"{id_}"}}'),
            (60.0, f'SyncLoop (DELETE, "api"): {pod}'),
            (60.0, f'Killing container "docker://{id_}" with a 30 second grace period'),
            (85.0, f'Container "docker://{id_}" exited normally'),
            (85.4, f'SyncLoop (PLEG): {pod}, event: &pleg.PodLifecycleEvent{{ID:"0f", Type:"ContainerDied", Data:"{id_}"}}'),
            (86.0, f'Pod {pod} fully terminated and removed from etcd'),
            (86.1, f'SyncLoop (REMOVE, "api"): {pod}'),
        )  # fmt: skip
    pod = f'pod="shop/{name}"'
    said = f'{pod} podUID="01473fb7-a17b-11ea-8d10-c88d83d31d55" containerName="app" containerID="containerd://{id_}"'
    return (
        (0.0, f'"SyncLoop ADD" source="api" pods=["shop/{name}"]'),
        (2.0, f'"SyncLoop (PLEG): event for pod" {pod} event={{"ID":"0f","Type":"ContainerStarted","Data":"{id_}"}}'),
        (60.0, f'"SyncLoop DELETE" source="api" pods=["shop/{name}"]'),
        (60.0, f'"Killing container with a grace period" {said} gracePeriod=30'),
        (85.4, f'"SyncLoop (PLEG): event for pod" {pod} event={{"ID":"0f","Type":"ContainerDied","Data":"{id_}"}}'),
        (86.1, f'"SyncLoop REMOVE" source="api" pods=["shop/{name}"]'),
    )


def day(keyed: bool) -> Iterator[tuple[float, str]]:
    """Nearly two days in which the kubelet restarts every hour, and containerd pulls an image for each pod."""
    for number in range(6500 if not keyed else 8500):
        at = number * 20.0
        if number % 180 == 0:
            for step, message in enumerate(START if keyed else START_1_20):
                yield at + step / 10, journal(klog(at + step / 10, message), at)
        yield at + 0.5, journal(logrus(at + 0.5, f'PullImage "r.example/web:{number}"'), at, "containerd[7]")
        done = f'PullImage "r.example/web:{number}" returns image reference "sha256:0f"'
        yield at + 1.9, journal(logrus(at + 1.9, done), at, "containerd[7]")
        yield from (
            (at + after, journal(klog(at + after, message), at + after)) for after, message in life(number, keyed)
        )


@pytest.mark.no_cover  # 50,000 lines of what a few lines count
@pytest.mark.parametrize("keyed", [False, True], ids=["1.20", "1.33"])
def test_a_healthy_log_is_silent(keyed: bool) -> None:
    text = [line for _, line in sorted(day(keyed))]
    assert len(text) > 50_000
    told = diagnosis(lines(*text))
    assert told.findings == ()
    assert told.unread_lines == 0


def test_the_log_of_a_real_kubelet_has_true_findings_only() -> None:
    """A kubelet 1.20.2 at -v=4 that was restarted; `make healthy-log` has recorded it.

    After a restart it really begins to end some containers twice, while their first hook and SIGTERM are under way.
    """
    text = gzip.decompress((RECORDED / "healthy-1.20.2.log.gz").read_bytes()).decode()
    log = text.splitlines()
    assert len(log) > 50_000
    assert sum(line.endswith("] Version: v1.20.2") for line in log) > 2, "it was restarted"
    assert sum("exited normally" in line for line in log) > 150
    told = diagnosis(text)
    assert told.unread_lines == 0
    assert {finding.id for finding in told.findings} <= {"prestop-twice"}
    for finding in told.findings:
        runs = [where.line for where in finding.evidence]
        for container in {_container(log[run - 1]) for run in runs}:
            first, *_, last = [run for run in runs if _container(log[run - 1]) == container]
            assert not any("exited normally" in line and container in line for line in log[first:last])


def _container(line: str) -> str:
    return line.rpartition("pods://")[2].rstrip('"')
