"""A program that should give the kubelet credentials and fails is told beside the refusal, and only there."""

from __future__ import annotations

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from tests.features.diagnose.rules.logs import found, klog, lines

OF = "1.dkr.ecr.eu-central-1.amazonaws.com/shop/worker"
WHY = "fork/exec /usr/local/lib/kubelet/ecr-credential-provider: no such file or directory"
TOLD = f"error execing credential provider plugin ecr-credential-provider for image {OF}: {WHY}: "
WORDS = f"Failed getting credential from external registry credential provider: {TOLD}"
KEYED = f'"Failed getting credential from external registry credential provider" err="{TOLD}"'
REFUSED = "pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials"


def pull(seconds: float, error: str = REFUSED, image: str = f"{OF}:1") -> str:
    told = f'failed to pull and unpack image \\"{image}\\": failed to resolve reference \\"{image}\\": {error}'
    return klog(seconds, f'"Failed to pull image" err="{told}" image="{image}"', "E", "kuberuntime_image.go:42")


@pytest.mark.parametrize("told", [WORDS, KEYED])
def test_the_plugin_is_told_beside_the_refusal(told: str) -> None:
    (finding,) = found(lines(klog(0, told, "E", "plugin.go:440"), pull(1))).values()
    assert finding.confidence is Confidence.CERTAIN
    assert (
        f"Before it the kubelet's credential plugin ecr-credential-provider failed for this image: {WHY}."
        in finding.cause
    )
    assert any("plugin.go:440" in line.text for line in finding.evidence)


@pytest.mark.parametrize(
    "failed",
    [
        pull(1, image=f"{OF}-2:1"),
        pull(1, error=f"{OF}:1: not found"),
        pull(600),
    ],
)
def test_of_another_image_another_error_or_another_time_it_is_no_reason(failed: str) -> None:
    (finding,) = found(lines(klog(0, WORDS, "E", "plugin.go:440"), failed)).values()
    assert "plugin" not in finding.cause


def test_a_plugin_that_fails_for_an_image_that_is_pulled_is_no_finding() -> None:
    assert not found(lines(klog(0, WORDS, "E", "plugin.go:440")))
