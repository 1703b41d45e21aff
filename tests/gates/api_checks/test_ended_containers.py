"""``containersKept`` and ``devicesKept``: a container that was to end, and has ended, was not restarted.

Sources: ``ShouldContainerBeRestarted`` in pkg/kubelet/container/helpers.go, and the restart policies of init containers and of single
containers (KEP-753, KEP-5307).
"""

from __future__ import annotations

from typing import Any

import pytest

from rollout.adapters.kubernetes.objects import pod
from rollout.core.model.live import LiveNode, Sight
from rollout.core.model.verdict import Verdict
from rollout.gates.api_checks.query import ApiCheck, ApiKind
from rollout.kubelet.node_baseline import Since, baseline_of, read_baseline

NODE = LiveNode(
    "n1", "u", "", (), {}, unschedulable=False, taints=(), kubelet_version="", runtime="", os_image="", ready="True"
)
RUNS = {"running": {"startedAt": "2026-11-20T08:00:00Z"}}


def ended(code: int, identity: str = "containerd://aaaa") -> dict[str, Any]:
    done = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": "2026-11-20T08:01:00Z"}
    return {"terminated": {**done, **({"containerID": identity} if identity else {})}}


def judged(kind: str, state: dict[str, Any], policy: str = "", restarts: int = 0, identity: str = "aaaa") -> Verdict:
    """Of a pod that must run for ever; its container ``job``, an init container or another, ran before the change."""

    def seen(now: dict[str, Any], count: int, of: str) -> Sight:
        written = {"name": "job", **({"restartPolicy": policy} if policy else {})}
        status = {"name": "job", "containerID": f"containerd://{of}" if of else "", "restartCount": count, "state": now}
        document = {
            "metadata": {"uid": "uid-1", "namespace": "shop", "name": "web"},
            "spec": {
                "restartPolicy": "Always",
                f"{kind}s": [{**written, "resources": {"limits": {"amd.com/gpu": "1"}}}],
            },
            "status": {"phase": "Running", f"{kind}Statuses": [status]},
        }
        return Sight(NODE, None, (pod(document),))

    before = read_baseline(baseline_of(seen(RUNS, 0, "aaaa")))
    since = Since(None, renewed=True, seconds=30.0, settle=0.0)
    gates: tuple[ApiKind, ...] = ("containersKept", "devicesKept")
    found = {ApiCheck(gate).judge(seen(state, restarts, identity), before, since)[0] for gate in gates}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize(
    ("kind", "policy", "code"),
    [("initContainer", "", 0), ("container", "OnFailure", 0), ("container", "Never", 0), ("container", "Never", 1)],
)
def test_a_container_that_has_ended_and_is_not_started_again_is_kept(kind: str, policy: str, code: int) -> None:
    assert judged(kind, ended(code), policy) is Verdict.PASS


def test_an_init_container_that_has_ended_and_was_removed_from_the_runtime_is_kept() -> None:
    assert judged("initContainer", ended(0, ""), identity="") is Verdict.PASS


@pytest.mark.parametrize(
    ("kind", "policy", "code"),
    [("initContainer", "Always", 0), ("initContainer", "", 137), ("container", "", 0), ("container", "OnFailure", 137)],
)
def test_a_container_that_has_ended_and_must_run_again_is_a_failure(kind: str, policy: str, code: int) -> None:
    assert judged(kind, ended(code), policy) is Verdict.FAIL


def test_an_init_container_that_was_run_again_is_a_failure_although_it_has_succeeded() -> None:
    assert judged("initContainer", ended(0), restarts=1, identity="bbbb") is Verdict.FAIL
    assert judged("initContainer", ended(0, ""), restarts=1, identity="") is Verdict.FAIL
