"""Pulls that were cancelled, where nothing shows the deadline: what tells it from restarts and deletions."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.logs import NODE, event, event_list, found, journal, klog, lines, logrus, pulls

BIG = "hub.example/ml/train:2.1"
BARE = "rpc error: code = Canceled desc = context canceled"
OF_CONTAINERD = f'rpc error: code = Canceled desc = failed to pull and unpack image "{BIG}": context canceled'


def failed(times: int, error: str = BARE) -> str:
    events = [
        event(400, "Pulling", f'Pulling image "{BIG}"', first=0, count=times + 1),
        event(390, "Failed", f'Failed to pull image "{BIG}": {error}', first=70, count=times),
    ]
    return event_list(events)


def test_a_pull_that_is_cut_again_and_again_for_one_pod() -> None:
    """The events of the first write-up, without the line that happens to name docker."""
    deadline = found(failed(3))["pull-progress-deadline"]
    assert deadline.confidence is Confidence.LIKELY
    assert deadline.proposal.endswith("--set imagePullProgressDeadline=5m0s")


@pytest.mark.parametrize("text", [failed(2), failed(3, OF_CONTAINERD)], ids=["twice", "in the words of containerd"])
def test_other_cuts_are_unknown(text: str) -> None:
    deadline = found(text)["pull-progress-deadline"]
    assert deadline.confidence is Confidence.UNKNOWN
    assert not deadline.proposal


def test_three_pods_that_are_deleted_while_they_pull() -> None:
    """A rollout of a large image that is stopped. docker is known by another line."""
    docker = event(0, "Killing", "Stopping container docker://0f", "other")
    events = [each for at in range(3) for each in pulls(BIG, f"train-{at}", 200 * at, 200 * at + 75, BARE)]
    assert found(event_list([docker, *events]))["pull-progress-deadline"].confidence is Confidence.UNKNOWN


def test_three_restarts_of_the_kubelet() -> None:
    starts = [event(200 * at + 77, "Starting", "Starting kubelet.", NODE, kind="Node") for at in range(3)]
    events = [each for at in range(3) for each in pulls(BIG, "train-0", 200 * at, 200 * at + 75, BARE)]
    assert found(event_list([*events, *starts])) == {}


def test_one_failure_with_three_lines_is_one() -> None:
    """A kubelet 1.19 at ``-v=2``."""
    pod = "train_ml(0147)"
    cut = (
        'PullImage "{image}" from image service failed: {error}', 'Pull image "{image}" failed: {error}',
        "container &Container{{Name:t,Image:{image},Command:[],}} start failed in pod {pod}: ErrImagePull: {error}",
        'Error syncing pod 0147 ("{pod}"), skipping: failed to "StartContainer" for "t" with ErrImagePull: "{error}"',
    )  # fmt: skip
    once = [klog(70 + at / 1000, text.format(image=BIG, pod=pod, error=BARE), "E") for at, text in enumerate(cut)]
    assert found(lines(*once))["pull-progress-deadline"].confidence is Confidence.UNKNOWN


def test_the_containerd_of_docker_is_no_other_runtime() -> None:
    """It starts with the line of any containerd, and gets no pulls; one that gets a pull has no docker beside it."""
    start = journal(logrus(-60, "starting containerd", rest=" revision=0 version=v1.6.20"), -60, "containerd[9]")
    assert found(lines(start), failed(3))["pull-progress-deadline"].confidence is Confidence.LIKELY
    pull = journal(logrus(-50, 'PullImage "r.example/x:1"'), -50, "containerd[9]")
    assert found(lines(start, pull), failed(3))["pull-progress-deadline"].confidence is Confidence.UNKNOWN


def synced(at: float, pod: str, error: str = BARE) -> str:
    """The one line of a failure that a log may have: it names the pod and not the image."""
    told = f'failed to \\"StartContainer\\" for \\"t\\" with ErrImagePull: \\"{error}\\"'
    return klog(at, f'"Error syncing pod, skipping" err="{told}" pod="shop/{pod}" podUID="1"', "E")


def test_a_failure_without_its_image_has_that_of_its_pod() -> None:
    back = event(500, "BackOff", f'Back-off pulling image "{BIG}"', "train-0")
    deadline = found(lines(*(synced(100 * at, "train-0") for at in range(3))), event_list([back]))
    assert BIG in deadline["pull-progress-deadline"].cause


def test_a_failure_of_a_pod_with_two_images_is_of_neither() -> None:
    backs = [
        event(500 + at, "BackOff", f'Back-off pulling image "{image}"', "train-0")
        for at, image in enumerate((BIG, "x:1"))
    ]
    assert "pull-progress-deadline" not in found(lines(synced(0, "train-0")), event_list(backs))
