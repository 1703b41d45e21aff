"""Findings about pulls: each with a log that shows it, and one that looks alike and is not."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.diagnosis import OF_OTHERS
from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.logs import (
    NODE,
    RECORDED,
    event,
    event_list,
    found,
    klog,
    lines,
    logrus,
    pulls,
)  # fmt: skip

SLOW, QUICK = "10.8.2.9:9083/ais/ais-platform:1", "10.8.14.9:9083/shop/web:1"
UNKNOWN_MANIFEST = "rpc error: code = NotFound desc = manifest unknown"
UP_TO_1_20 = 'Event(v1.ObjectReference{{Kind:"Pod", Namespace:"shop", Name:"{pod}", UID:"1", APIVersion:"v1", ResourceVersion:"2", FieldPath:"spec.containers{{app}}"}}): type: \'{type}\' reason: \'{reason}\' {message}'


def queue(behind: int, error: str = UNKNOWN_MANIFEST, image: str = QUICK) -> list[dict[str, object]]:
    """A pull that hangs for two hours, and others that begin every 10 s and end with it."""
    events = pulls(SLOW, "ais-1", 0, 7500, "context deadline exceeded")
    for number in range(behind):
        events += pulls(f"{image}{number}", f"web-{number}", 60 + 10 * number, 7500, error)
    return events


def test_a_convoy_behind_one_pull_is_a_queue() -> None:
    findings = found(event_list(queue(11)))
    queue_ = findings["serial-pull-queue"]
    assert queue_.confidence is Confidence.LIKELY
    assert queue_.cause.startswith(f"11 pulls waited in one queue behind the pull of {SLOW}, which took 2 h 5 min")
    assert "10.8.14.9:9083: 11, 10.8.2.9:9083: 1" in queue_.cause
    assert queue_.proposal == f"rollout plan --cluster rno --limit '{NODE}' --set serializeImagePulls=false"
    assert queue_.nodes == (NODE,)
    assert queue_.since == "2026-11-20T09:00:00Z"
    assert queue_.fetch_next


def test_the_bound_is_proposed_where_the_kubelet_has_it() -> None:
    proposal = found(event_list(queue(11)), minor=27)["serial-pull-queue"].proposal
    assert proposal.endswith("--set serializeImagePulls=false --set maxParallelImagePulls=5")


def test_a_pull_over_the_rate_had_not_left_the_queue() -> None:
    findings = found(event_list(queue(17, "pull QPS exceeded")))
    assert findings["serial-pull-queue"].confidence is Confidence.CERTAIN
    assert "See serial-pull-queue" in findings["pull-qps-exceeded"].cause
    assert not findings["pull-qps-exceeded"].proposal


def test_one_pull_that_waits_two_hours_and_exceeds_the_rate_is_enough() -> None:
    """What the third write-up's events show: scheduled at 12:26, rejected at 14:31."""
    findings = found(event_list(pulls(QUICK, "web-1", 0, 7500, "pull QPS exceeded")))
    assert findings["serial-pull-queue"].confidence is Confidence.CERTAIN
    assert "waited 2 h 5 min" in findings["serial-pull-queue"].cause


def test_one_registry_is_fixed_first() -> None:
    findings = found(event_list(queue(11, "pull QPS exceeded", SLOW)))
    assert (
        "fix it, or the mirror that serves it, first, because parallel pulls add load"
        in findings["serial-pull-queue"].cause
    )


def test_one_registry_that_comes_back_alone_proves_no_queue() -> None:
    queue_ = found(event_list(queue(11, image=SLOW)))["serial-pull-queue"]
    assert queue_.confidence is Confidence.UNKNOWN
    assert not queue_.proposal
    assert "/configz" in queue_.fetch_next


def test_pulls_side_by_side_that_a_runtime_drops_are_no_queue() -> None:
    """A restart of the runtime ends all that it works on, with the same error."""
    assert "serial-pull-queue" not in found(
        event_list(queue(11, "rpc error: code = Unavailable desc = error reading from server: EOF"))
    )


def test_pulls_of_one_image_end_together() -> None:
    """containerd fetches a layer once for all of them."""
    events = [each for number in range(9) for each in pulls(QUICK, f"web-{number}", number * 20, 300)]
    assert found(event_list(events)) == {}


def test_pulls_that_begin_and_end_together_are_no_queue() -> None:
    events = [each for number in range(9) for each in pulls(f"{QUICK}{number}", f"web-{number}", number, 40)]
    assert found(event_list(events)) == {}


def one_by_one(*spans: tuple[float, float]) -> str:
    """Pulls from the second registry with these begins and ends, and one from the first registry from 0 to 92 s."""
    events = pulls(SLOW, "ais-1", 0, 92)
    for number, (begin, end) in enumerate(spans):
        events += pulls(f"{QUICK}{number}", f"web-{number}", begin, end)
    return event_list(events)


def test_a_queue_that_ends_in_pulls_ends_one_by_one() -> None:
    """Measured by `make incidents` with a real containerd: each pull takes its own three seconds."""
    queue_ = found(one_by_one((10, 95), (29, 98), (48, 101), (70, 105)))["serial-pull-queue"]
    assert queue_.confidence is Confidence.LIKELY
    assert "when it ended, all ended one by one within 13 s" in queue_.cause


@pytest.mark.parametrize(
    "spans",
    [
        ((10, 95), (29, 60), (48, 101), (70, 105)),
        ((10, 105), (29, 101), (48, 98), (70, 95)),
        ((10, 102), (29, 121), (48, 140), (70, 162)),
    ],
    ids=["one ends meanwhile", "not in their order", "side by side: they end as far apart as they began"],
)
def test_slow_pulls_side_by_side_are_no_queue(spans: tuple[tuple[float, float], ...]) -> None:
    assert "serial-pull-queue" not in found(one_by_one(*spans))


def test_the_times_of_the_kubelet_show_the_wait() -> None:
    """From 1.26 on, and in late patches of 1.23 to 1.25."""
    done = " in 1.2s (2m5.2s including waiting). Image size: 12345 bytes."
    queue_ = found(event_list(pulls(QUICK, "web-1", 0, 125, done=done)))["serial-pull-queue"]
    assert queue_.confidence is Confidence.CERTAIN
    assert "waited 2 min 4 s" in queue_.cause
    assert found(event_list(pulls(QUICK, "web-1", 0, 40, done=" in 38s (39.5s including waiting)"))) == {}


def test_the_runtime_shows_that_the_others_came_after() -> None:
    log = [klog(0, UP_TO_1_20.format(pod="ais-1", type="Normal", reason="Pulling", message=f'Pulling image "{SLOW}"'))]
    for number in range(3):
        message = f'Pulling image "{QUICK}{number}"'
        log.append(
            klog(
                100 * number + 10,
                UP_TO_1_20.format(pod=f"web-{number}", type="Normal", reason="Pulling", message=message),
            )
        )
    log.append(
        klog(
            900,
            UP_TO_1_20.format(
                pod="ais-1", type="Warning", reason="Failed", message=f'Failed to pull image "{SLOW}": timeout'
            ),
        )
    )
    for number in range(3):
        message = f'Failed to pull image "{QUICK}{number}": not found'
        log.append(klog(900.02 + number / 100, f'"Pulling image without credentials" image="{QUICK}{number}"'))
        log.append(
            klog(
                900.03 + number / 100,
                UP_TO_1_20.format(pod=f"web-{number}", type="Warning", reason="Failed", message=message),
            )
        )
    queue_ = found(lines(*log))["serial-pull-queue"]
    assert queue_.confidence is Confidence.LIKELY, "a registry's answer may contain the lines behind it"
    assert queue_.fetch_next.startswith(OF_OTHERS)
    assert "reached the runtime only after" in queue_.cause


def test_the_runtime_shows_that_they_ran_side_by_side() -> None:
    """A network that comes back ends all of them."""
    log = [
        klog(10 * number + 60.01, f'"Pulling image without credentials" image="{QUICK}{number}"') for number in range(4)
    ]
    shared = [
        klog(0.1, UP_TO_1_20.format(pod="ais-1", type="Normal", reason="Pulling", message=f'Pulling image "{SLOW}"'))
    ]
    named = klog(0, f"Successfully registered node {NODE}")
    assert "serial-pull-queue" in found(lines(*shared, named), event_list(queue(11)))
    assert "serial-pull-queue" not in found(lines(*shared, named, *log), event_list(queue(11)))


def test_pulls_that_hang_now_are_unknown() -> None:
    events = [event(60 * number, "Pulling", f'Pulling image "{QUICK}{number}"', f"web-{number}") for number in range(4)]
    events.append(event(1800, "Pulling", f'Pulling image "{SLOW}"', "ais-1"))
    queue_ = found(event_list(events))["serial-pull-queue"]
    assert queue_.confidence is Confidence.UNKNOWN
    assert "running pulls" in queue_.fetch_next
    assert found(event_list([*events, event(900, "Pulled", f'Successfully pulled image "{QUICK}3"', "web-3")])) == {}


# The rate limit.


def test_a_burst_of_pods_exceeds_the_rate() -> None:
    events = [
        each for number in range(12) for each in pulls(QUICK, f"web-{number}", number / 10, 1, "pull QPS exceeded")
    ]
    (qps,) = found(event_list(events)).values()
    assert (qps.id, qps.confidence) == ("pull-qps-exceeded", Confidence.CERTAIN)
    assert "registryPullQPS=20" in qps.proposal


def test_a_registry_that_limits_its_rate_is_another_finding() -> None:
    events = pulls(QUICK, "web-1", 0, 2, "toomanyrequests: You have reached your pull rate limit")
    events.append(event(5, "BackOff", f'Back-off pulling image "{QUICK}"'))
    assert set(found(event_list(events))) == {"image-pull-backoff"}


# The progress deadline.


def test_incident_1_from_its_events() -> None:
    findings = found((RECORDED / "incident-1.events.txt").read_text())
    assert set(findings) == {"pull-progress-deadline", "container-definition-changed"}
    deadline = findings["pull-progress-deadline"]
    assert deadline.confidence is Confidence.LIKELY
    assert deadline.nodes == ("tess-node-2g2mc.sutarts.rno.yabe.com",)
    assert deadline.since == "14 min before the events were printed"
    assert deadline.proposal.endswith("--set imagePullProgressDeadline=5m0s")


CUTS = [
    'Cancel pulling image "big:1" because of no progress for 1m0s, latest progress: "a1: Verifying Checksum "',
    '"Cancel pulling image because of exceed image pull deadline, record latest progress" image="big:1" deadline="1m0s" progress="a1: Verifying Checksum"',
    "Cancel pulling image big:1 because it exceeded image pull deadline 1m0s. Latest progress a1: Verifying Checksum",
]


@pytest.mark.parametrize("cut", CUTS)
def test_a_kubelets_own_line_is_certain(cut: str) -> None:
    deadline = found(lines(klog(0, cut, "E", "kube_docker_client.go:345")))["pull-progress-deadline"]
    assert deadline.confidence is Confidence.CERTAIN
    assert "after 1m0s without progress" in deadline.cause
    assert "Verifying Checksum" in deadline.cause


@pytest.mark.parametrize(
    "line",
    [
        logrus(0, "cancel pulling image big:1 because of no progress in 5m0s", "error"),
        logrus(0, "Timed out on waiting up to 10s for image pull progress updates", "error"),
    ],
)
def test_a_runtimes_own_line_is_certain(line: str) -> None:
    assert found(lines(line))["pull-progress-deadline"].confidence is Confidence.CERTAIN


def test_the_longest_silence_is_what_the_deadline_must_exceed() -> None:
    log = [
        klog(at, 'Pulling image "big:1": "a1: Extracting [====> ] 1GB/3GB"', place="kube_docker_client.go:352")
        for at in range(0, 251, 10)
    ]
    deadline = found(lines(*log, klog(260, CUTS[0], "E")))["pull-progress-deadline"]
    assert "no progress for up to 4 min 10 s" in deadline.cause
    assert "imagePullProgressDeadline=9m0s" in deadline.proposal


def test_the_silence_of_the_cancelled_pull_is_no_measure() -> None:
    """Recorded from a kubelet 1.20.2 with dockershim: the pull needed 74 s of silence, and 50 s of them were seen."""
    log = [klog(at, 'Pulling image "big:1": "a1: Downloading [==> ] 950kB/2MB"') for at in range(10, 70, 10)]
    deadline = found(lines(*log, klog(70, CUTS[0], "E")))["pull-progress-deadline"]
    assert "no progress for up to" not in deadline.cause
    assert "a timed pull" in deadline.fetch_next


def test_a_cancelled_pull_alone_is_unknown() -> None:
    (deadline,) = found(
        event_list(pulls("big:1", "web-1", 0, 70, "rpc error: code = Unknown desc = context canceled"))
    ).values()
    assert (deadline.id, deadline.confidence) == ("pull-progress-deadline", Confidence.UNKNOWN)
    assert "Cancel pulling image" in deadline.fetch_next
    assert not deadline.proposal


def test_a_restart_cancels_pulls_too() -> None:
    events = pulls("big:1", "web-1", 0, 70, "rpc error: code = Canceled desc = context canceled")
    assert found(event_list([*events, event(72, "Starting", "Starting kubelet.", NODE, kind="Node")])) == {}


def test_a_remote_runtime_ignores_the_kubelets_deadline() -> None:
    flags = (klog(0, 'FLAG: --container-runtime="remote"'), klog(0, f"Successfully registered node {NODE}"))
    events = [
        event(
            500,
            "Failed",
            'Failed to pull image "big:1": rpc error: code = Canceled desc = context canceled',
            first=100,
            count=3,
        )
    ]
    assert found(lines(*flags), event_list(events))["pull-progress-deadline"].confidence is Confidence.UNKNOWN


# A slow registry.


def test_a_registry_is_slow_by_the_runtimes_own_time() -> None:
    done = " in 5m10s (5m11s including waiting). Image size: 300000000 bytes."
    events = [
        each
        for number in range(3)
        for each in pulls(f"{SLOW}{number}", f"web-{number}", number, 311 + number, done=done)
    ]
    events += pulls(QUICK, "quick", 0, 3, done=" in 2s (2s including waiting). Image size: 300000000 bytes.")
    slow = found(event_list(events))["registry-slow"]
    assert slow.confidence is Confidence.LIKELY
    assert "3 pulls of images of 10.8.2.9:9083 took up to 5 min 10 s, at 1.0 MB/s" in slow.cause
    assert (
        "Those of 10.8.14.9:9083 were quick meanwhile, on the same node, unless their layers were there" in slow.cause
    )


def test_containerd_tells_its_own_times() -> None:
    said = 'Pulled image "{image}" with image id "sha256:0f", repo tag "{image}", repo digest "r@sha256:0f", size "300000000" in 5m10.5s'
    log = [logrus(number * 400, said.format(image=f"{SLOW}{number}")) for number in range(2)]
    # Without images of another registry, the node's disk or network would look the same.
    assert found(lines(*log))["registry-slow"].confidence is Confidence.LIKELY


def test_a_large_image_is_not_a_slow_registry() -> None:
    large = " in 5m10s (5m11s including waiting). Image size: 9000000000 bytes."
    events = [*pulls(SLOW, "a", 0, 311, done=large), *pulls(f"{SLOW}2", "b", 400, 711, done=large)]
    assert found(event_list(events)) == {}


# Back-offs.


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (UNKNOWN_MANIFEST, "has no such image or tag"),
        ("failed to authorize: 401 Unauthorized", "refuses the credentials"),
        ("dial tcp: lookup r.example: no such host", "cannot be resolved"),
        ("x509: certificate signed by unknown authority", "is not trusted"),
        ("dial tcp 10.8.2.9:9083: connect: connection refused", "cannot be reached"),
        ("write /var/lib/containerd/x: no space left on device", "disk is full"),
    ],
)
def test_a_back_off_has_its_cause(error: str, why: str) -> None:
    events = [*pulls(QUICK, "web-1", 0, 2, error), event(20, "BackOff", f'Back-off pulling image "{QUICK}"')]
    (back_off,) = found(event_list(events)).values()
    assert (back_off.id, back_off.confidence) == ("image-pull-backoff", Confidence.CERTAIN)
    assert why in back_off.cause


def test_a_kubelet_from_1_21_on_says_it_in_keys() -> None:
    sync = r'"Error syncing pod, skipping" err="failed to \"StartContainer\" for \"app\" with {reason}: \"{text}\"" pod="shop/web-1" podUID=1'
    log = [
        klog(0, sync.format(reason="ErrImagePull", text="manifest unknown"), "E"),
        klog(9, sync.format(reason="ImagePullBackOff", text=rf"Back-off pulling image \\\"{QUICK}\\\""), "E"),
    ]
    (back_off,) = found(lines(*log)).values()
    assert QUICK in back_off.cause
    assert back_off.confidence is Confidence.CERTAIN


def test_a_container_that_crashes_is_no_image_trouble() -> None:
    assert found(event_list([event(0, "BackOff", "Back-off restarting failed container app in pod web-1")])) == {}


def test_a_back_off_without_its_error_is_unknown() -> None:
    (back_off,) = found(event_list([event(0, "BackOff", f'Back-off pulling image "{QUICK}"')])).values()
    assert back_off.confidence is Confidence.UNKNOWN
    assert "Failed events" in back_off.fetch_next


def test_a_back_off_is_over_once_the_node_has_the_image() -> None:
    failed = [
        *pulls(QUICK, "web-1", 0, 2, "manifest unknown"),
        event(9, "BackOff", f'Back-off pulling image "{QUICK}"', "web-1"),
    ]
    short = [*failed, *pulls(QUICK, "web-1", 20, 30)]
    assert "image-pull-backoff" not in found(event_list(short))
    long = [
        *failed,
        event(300, "BackOff", f'Back-off pulling image "{QUICK}"', "web-1"),
        *pulls(QUICK, "web-1", 320, 330),
    ]
    assert found(event_list(long))["image-pull-backoff"].cause.startswith("over since ")
    again = [*short, event(400, "BackOff", f'Back-off pulling image "{QUICK}"', "web-1")]
    assert found(event_list(again))["image-pull-backoff"].cause.startswith("the kubelet delays ")


def test_the_image_of_a_sandbox_is_there_once_a_container_of_the_pod_is_made() -> None:
    why = 'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox image "reg.example/pause:3.9": failed to pull image: i/o timeout'
    failed = event(0, "FailedCreatePodSandBox", why, "web-1")
    assert "reg.example/pause:3.9" in found(event_list([failed]))["image-pull-backoff"].cause
    assert "image-pull-backoff" not in found(
        event_list([failed, event(20, "Created", "Created container app", "web-1")])
    )
    other = event(20, "Created", "Created container app", "web-2")
    assert "image-pull-backoff" in found(event_list([failed, other]))
