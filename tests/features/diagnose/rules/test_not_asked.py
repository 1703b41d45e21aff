"""Images that no runtime is asked for: a name that is none, and a pod that forbids the pull. In a pod's status and in the kubelet's lines."""

from __future__ import annotations

import json

import pytest

from rollout.features.diagnose.rules.finding import Confidence
from rollout.features.diagnose.rules.pull_errors import PullCause
from tests.features.diagnose.rules.logs import found, klog, lines
from tests.features.diagnose.rules.test_hanging_pulls import waiting

NO_NAME = 'Failed to apply default image tag "R/A:1": couldn\'t parse image reference "R/A:1": invalid reference format: repository name must be lowercase'
NEVER = 'Container image "r/a:1" is not present with pull policy of Never'
CASES = (
    ("InvalidImageName", NO_NAME, PullCause.INVALID_NAME),
    ("ErrImageNeverPull", NEVER, PullCause.NEVER),
    ("ErrImagePull", 'rpc error: code = NotFound desc = failed to pull and unpack image "r.example/a:1": failed to resolve reference "r.example/a:1": r.example/a:1: not found', PullCause.NO_IMAGE),
)  # fmt: skip


def keyed(reason: str, message: str) -> str:
    error = f'failed to "StartContainer" for "app" with {reason}: {json.dumps(message)}'
    pod = 'pod="shop/web-1" podUID="01473fb7-a17b-11ea-8d10-c88d83d31d55"'
    return klog(0, f'"Error syncing pod, skipping" err={json.dumps(error)} {pod}', "E", "pod_workers.go:1298")


def worded(reason: str, message: str) -> str:
    pod = '01473fb7 ("web-1_shop(01473fb7-a17b-11ea-8d10-c88d83d31d55)")'
    error = f'failed to "StartContainer" for "app" with {reason}: {json.dumps(message)}'
    return klog(0, f"Error syncing pod {pod}, skipping: {error}", "E", "pod_workers.go:191")


@pytest.mark.parametrize(("reason", "message", "cause"), CASES)
def test_the_cause_is_the_same_in_each_form(reason: str, message: str, cause: PullCause) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", **waiting("web-1", "r/a:1", 0, reason, message)}
    for text in (json.dumps(pod), lines(keyed(reason, message)), lines(worded(reason, message))):
        (finding,) = found(text).values()
        assert (finding.id, finding.confidence) == ("image-pull-backoff", Confidence.CERTAIN)
        assert cause.value in finding.cause


@pytest.mark.parametrize(
    "reason", ["CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"]
)
def test_a_pod_that_waits_for_another_reason_waits_for_no_pull(reason: str) -> None:
    message = 'secret "db" not found'
    pods = [
        {"apiVersion": "v1", "kind": "Pod", **waiting(f"web-{number}", "r/a:1", 0, reason, message)}
        for number in range(4)
    ]
    own = {
        "CreateContainerConfigError": {"container-config-error"},
        "CreateContainerError": {"container-create-error"},
        "RunContainerError": {"container-create-error"},
    }.get(reason, set())
    assert found(json.dumps({"apiVersion": "v1", "items": pods})).keys() == own
    assert found(lines(keyed(reason, message), worded(reason, message))) == {}
