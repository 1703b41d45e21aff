"""Pulls that fail without a back-off in what was read, and those that a runtime's own time limit ended (cri-dockerd#105)."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.finding import Confidence, Finding
from tests.features.diagnose.rules.logs import event, event_list, found, klog, lines, logrus, pulls

IMAGE = "quay.io/lab/sim:600m"
BARE = "rpc error: code = Unknown desc = context deadline exceeded"
NO_TAG = "rpc error: code = Unknown desc = Error response from daemon: manifest for quay.io/lab/sim:600m not found: manifest unknown: manifest unknown"


def started(version: str) -> str:
    return logrus(-600, f"Starting cri-dockerd {version} (0f1e2d3)")


def failed(at: float, error: str = BARE) -> str:
    return klog(at, f'"Failed to pull image" err="{error}" image="{IMAGE}"', "E")


def progress(at: float, share: str) -> str:
    return logrus(at, f"Pulling image {IMAGE}: 3b65ec22a9e9: Downloading [==>   ]  {share}MB/600MB")


def only(*files: str) -> Finding:
    return found(*files)["image-pull-backoff"]


def test_with_the_times_and_the_version_the_two_minutes_are_certain() -> None:
    finding = only(lines(started("0.2.3"), progress(10, "40"), progress(110, "480"), failed(120)))
    assert finding.confidence is Confidence.CERTAIN
    assert "ended the pull at a time limit of its own, after 1 min 50 s" in finding.cause
    assert "an upgrade to 0.2.6 or later fixes it. This node has cri-dockerd 0.2.3." in finding.cause
    assert "cannot be reached" not in finding.cause
    assert finding.proposal == ""


def test_without_the_version_they_are_likely_and_the_version_decides() -> None:
    finding = only(lines(progress(10, "40"), failed(120)))
    assert finding.confidence is Confidence.LIKELY
    assert finding.fetch_next.startswith("cri-dockerd --version")


def test_a_later_version_has_no_such_limit() -> None:
    finding = only(lines(started("0.3.4"), progress(10, "40"), failed(120)))
    assert finding.confidence is Confidence.UNKNOWN
    assert "cri-dockerd 0.3.4 has no limit of this kind" in finding.cause


def test_another_length_is_another_limit() -> None:
    finding = only(lines(started("0.2.3"), progress(10, "40"), failed(300)))
    assert finding.confidence is Confidence.UNKNOWN
    assert finding.fetch_next.startswith("the log of the runtime's daemon at that time")


def test_lengths_that_differ_are_no_limit() -> None:
    finding = only(event_list([*pulls(IMAGE, "a", 0, 120, BARE), *pulls(IMAGE, "a", 200, 500, BARE)]))
    assert finding.confidence is Confidence.UNKNOWN
    assert "after 2 min to 5 min" in finding.cause


def test_the_version_without_a_beginning_is_likely() -> None:
    finding = only(lines(started("0.2.3"), failed(120)))
    assert (finding.confidence, finding.fetch_next) == (Confidence.LIKELY, "when these pulls began")


def test_events_show_the_two_minutes() -> None:
    finding = only(
        event_list([*pulls(IMAGE, "a", 0, 120, BARE), event(200, "BackOff", f'Back-off pulling image "{IMAGE}"', "a")])
    )
    assert finding.confidence is Confidence.LIKELY
    assert "after 2 min. cri-dockerd before 0.2.6" in finding.cause


@pytest.mark.parametrize("error", ["rpc error: code = DeadlineExceeded desc = context deadline exceeded"])
def test_the_kubelets_own_deadline_is_not_that_of_the_runtime(error: str) -> None:
    finding = only(lines(progress(10, "40"), failed(120, error)))
    assert finding.confidence is Confidence.LIKELY
    assert "cri-dockerd" not in finding.cause


# Failures without a back-off.


def test_a_failure_is_told_without_its_back_off() -> None:
    finding = only(lines(failed(0, NO_TAG)))
    assert finding.confidence is Confidence.CERTAIN
    assert finding.cause == f"the pull of {IMAGE} failed: the registry has no such image or tag."


def test_a_failure_that_a_later_pull_mended_is_not_told() -> None:
    assert found(event_list([*pulls(IMAGE, "a", 0, 9, NO_TAG), *pulls(IMAGE, "a", 20, 30)])) == {}


def test_a_pull_on_another_node_mends_nothing() -> None:
    other = event(30, "Pulled", f'Successfully pulled image "{IMAGE}"', "b", node="other")
    assert "image-pull-backoff" in found(event_list([*pulls(IMAGE, "a", 0, 9, NO_TAG), other]))


def test_the_runtimes_log_alone_shows_the_failure() -> None:
    error = f'rpc error: code = NotFound desc = failed to pull and unpack image \\"{IMAGE}\\": failed to resolve reference \\"{IMAGE}\\": {IMAGE}: not found'
    finding = only(
        lines(logrus(0, f'PullImage "{IMAGE}"'), logrus(2, f'PullImage "{IMAGE}" failed', "error", f' error="{error}"'))
    )
    assert "has no such image or tag" in finding.cause


def test_a_restart_of_the_runtime_is_no_failure_of_the_image() -> None:
    assert found(lines(failed(0, "rpc error: code = Unavailable desc = transport is closing"))) == {}


def test_an_unknown_error_without_a_back_off_is_unknown_and_says_what_decides() -> None:
    finding = only(lines(failed(0, "a new kind of trouble")))
    assert (finding.confidence, finding.fetch_next) == (
        Confidence.UNKNOWN,
        "the runtime's log of that pull: this error is not known",
    )


def test_a_signature_is_refused_under_the_kubelets_own_reason() -> None:
    """From 1.28 on it has reasons of its own in place of ErrImagePull."""
    said = "SignatureValidationFailed: copying system image from manifest list: Source image rejected: A signature was required, but no signature exists"
    sync = f'failed to \\"StartContainer\\" for \\"app\\" with SignatureValidationFailed: \\"{said}\\"'
    back = event(9, "BackOff", f'Back-off pulling image "{IMAGE}"', "web-1")
    log = lines(klog(2, f'"Error syncing pod, skipping" err="{sync}" pod="shop/web-1" podUID=1', "E"))
    names = event(0, "Scheduled", "Successfully assigned shop/web-1 to tess-node-0007", "web-1")
    assert "image-pull-backoff" in found(log, event_list([names, back]))
