"""``podsKept``: pods that were rejected or evicted since the change, and pressure that was not there before."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rollout.core.model.live import Container, Lease, LiveNode, Pod, Sight
from rollout.core.model.verdict import Judged, Verdict
from rollout.gates.api_checks.query import ApiCheck, ApiKind
from rollout.kubelet.node_baseline import Since, baseline_of, read_baseline

NODE = LiveNode(
    "n1", "u", "", (), {}, unschedulable=False, taints=(), kubelet_version="", runtime="", os_image="", ready="True"
)
WEB = Pod("uid-1", "shop/web", "Running", containers=(Container("app", "docker://aaaa", 0, "running"),))
LOW = "The node was low on resource: memory. Threshold quantity: 115200Mi, available: 62411Mi. "
EVICTED = replace(WEB, phase="Failed", reason="Evicted", message=LOW, containers=())
BEFORE = Sight(NODE, None, (WEB,))


def judged(
    now: Sight,
    before: Sight = BEFORE,
    seconds: float = 30.0,
    kind: ApiKind = "podsKept",
    deleted: frozenset[str] = frozenset(),
) -> Judged:
    since = Since(None, renewed=True, seconds=seconds, settle=0.0, deleted=deleted)
    return ApiCheck(kind).judge(now, read_baseline(baseline_of(before)), since)


def test_pods_that_stay_pass() -> None:
    assert judged(BEFORE) == (Verdict.PASS, "1 pod of 1 still there, none of them rejected or evicted")


def test_an_evicted_pod_is_a_failure() -> None:
    verdict, said = judged(replace(BEFORE, pods=(EVICTED,)))
    assert verdict is Verdict.FAIL
    assert said.startswith("1 pod evicted: shop/web Failed (Evicted: The node was low on resource: memory.")


@pytest.mark.parametrize("policy", [True, False])
def test_a_pod_that_came_after_the_change_and_was_evicted_is_one_too(policy: bool) -> None:
    """Its controller makes another one, on the same node: under pressure that is not admitted."""
    pressed = "The node had condition: [MemoryPressure]. "
    pods = [
        replace(EVICTED, uid=f"uid-{at}", name=f"shop/w{at}", message=pressed, forever=policy) for at in range(2, 7)
    ]
    verdict, said = judged(replace(BEFORE, pods=(WEB, *pods)))
    assert verdict is Verdict.FAIL
    assert said.startswith("5 pods evicted: shop/w2 Failed (Evicted: The node had condition: [MemoryPressure].")
    assert said.endswith(" and 2 more")


def test_what_was_evicted_before_does_not_count() -> None:
    old = replace(EVICTED, uid="uid-0", name="shop/old")
    before = replace(BEFORE, pods=(WEB, old))
    assert judged(before, before)[0] is Verdict.PASS


@pytest.mark.parametrize(
    "message",
    [
        "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
        'Container app exceeded its local ephemeral storage limit "1Gi". ',
        'Usage of EmptyDir volume "cache" exceeds the limit "1Gi". ',
    ],
)
def test_an_eviction_for_a_limit_of_the_pod_itself_does_not_count(message: str) -> None:
    assert judged(replace(BEFORE, pods=(replace(EVICTED, message=message),)))[0] is Verdict.PASS


def test_rejected_and_evicted_pods_are_told_apart() -> None:
    rejected = replace(
        EVICTED, uid="uid-2", name="shop/gpu", reason="UnexpectedAdmissionError", message="Allocate failed"
    )
    verdict, said = judged(replace(BEFORE, pods=(EVICTED, rejected)))
    assert verdict is Verdict.FAIL
    assert "1 pod evicted: shop/web" in said
    assert "; 1 pod rejected or ended: shop/gpu Failed (UnexpectedAdmissionError: Allocate failed)" in said


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"),
        ("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled"),
        ("PodFeatureUnsupported", "Pod requires node features that are not available"),
        ("UnknownReason", "GeneralPredicates failed due to unknown reason, which is unexpected."),
        ("VolumeAttachmentLimitExceeded", "attachment limit of the node is reached"),
        ("ReasonOfALaterKubelet", "Pod was rejected: something new"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_job_that_a_kubelet_rejects_is_a_failure_whatever_its_reason(reason: str, message: str, known: bool) -> None:
    """Its pods may end by themselves, so a phase shows nothing. Reasons: ``admissionRejectionReasons`` in pkg/kubelet/kubelet.go."""
    job = replace(WEB, uid="uid-2" if known else "uid-3", name="ci/job", forever=False)
    before = replace(BEFORE, pods=(WEB, replace(job, uid="uid-2")))
    rejected = replace(job, phase="Failed", reason=reason, message=message, containers=())
    verdict, said = judged(replace(BEFORE, pods=(WEB, rejected)), before)
    assert (verdict, said) == (Verdict.FAIL, f"1 pod rejected or ended: ci/job Failed ({reason}: {message})")


@pytest.mark.parametrize("forever", [True, False])
def test_a_pod_that_has_reached_its_own_deadline_is_no_rejected_pod(forever: bool) -> None:
    """``activeDeadlineSeconds``: pkg/kubelet/active_deadline.go."""
    job = replace(WEB, forever=forever)
    failed = replace(
        job,
        phase="Failed",
        reason="DeadlineExceeded",
        message="Pod was active on the node longer than the specified deadline",
    )
    assert judged(replace(BEFORE, pods=(failed,)), replace(BEFORE, pods=(job,)))[0] is Verdict.PASS


def test_pressure_since_the_change_is_no_pass_although_no_pod_is_evicted_yet() -> None:
    pressed = replace(BEFORE, node=replace(NODE, pressures=("MemoryPressure",)))
    said = "MemoryPressure since the change: an eviction threshold is reached"
    assert judged(pressed) == (Verdict.UNKNOWN, f"{said}, and no pod is evicted yet")
    assert judged(replace(pressed, pods=(EVICTED,)))[1].endswith(f"; {said}")
    assert judged(pressed, pressed)[0] is Verdict.PASS, "it was there before"


def test_pressure_and_evictions_of_later_are_the_workloads_own() -> None:
    """A tenant fills a disk in the night of a long soak."""
    pressed = replace(
        BEFORE, node=replace(NODE, pressures=("DiskPressure",)), pods=(WEB, replace(EVICTED, uid="uid-9"))
    )
    verdict, said = judged(pressed, seconds=301.0)
    assert (verdict, said.endswith("; DiskPressure later than 300 s after the change")) == (Verdict.PASS, True)
    lease = Lease("1", "2026-11-20T08:00:00.000000Z")
    hours_later = replace(pressed, lease=Lease("9", "2026-11-20T12:00:00.000000Z"))
    assert judged(hours_later, replace(BEFORE, lease=lease))[0] is Verdict.PASS, (
        "a new process knows it by the node's clock"
    )
    ran = Container("app", "docker://aaaa", 0, "terminated", since="2026-11-20T12:00:00Z")
    before = replace(BEFORE, lease=lease)
    late = replace(EVICTED, containers=(ran,))
    assert judged(replace(before, pods=(late,)), before)[0] is Verdict.PASS
    at_once = replace(late, containers=(replace(ran, since="2026-11-20T08:01:00Z"),))
    assert judged(replace(before, pods=(at_once,)), before)[0] is Verdict.FAIL


def test_a_baseline_of_an_older_version_knows_no_pressure() -> None:
    pressed = replace(BEFORE, node=replace(NODE, pressures=("DiskPressure",)))
    old = read_baseline('{"v":1,"lease":"","at":3,"ended":[],"pods":{"uid1":["app aaaa 0"]}}')
    assert (old.pressures, old.devices) == (None, None)
    since = Since(None, renewed=True, seconds=30.0, settle=0.0)
    assert ApiCheck("podsKept").judge(pressed, old, since)[0] is Verdict.PASS
    assert ApiCheck("devicesKept").judge(pressed, old, since) == (
        Verdict.UNKNOWN,
        "the devices before the change are not known",
    )


AGENT = replace(WEB, uid="uid-7", name="kube-system/agent-x", controller="DaemonSet")
WITH_AGENT = replace(BEFORE, pods=(WEB, AGENT))
GONE = "a DaemonSet or a StatefulSet deletes a rejected pod at once"


@pytest.mark.parametrize("kind", ["podsKept", "containersKept"])
@pytest.mark.parametrize("controller", ["DaemonSet", "StatefulSet"])
def test_a_pod_that_vanished_unseen_may_have_been_rejected(kind: ApiKind, controller: str) -> None:
    before = replace(BEFORE, pods=(WEB, replace(AGENT, controller=controller)))
    said = f"1 pod gone, and not seen why: kube-system/agent-x; {GONE}"
    assert judged(BEFORE, before, kind=kind) == (Verdict.UNKNOWN, said)


def test_a_pod_that_was_seen_while_it_was_deleted_is_nobodys_fault() -> None:
    assert judged(BEFORE, WITH_AGENT, deleted=frozenset({"uid7"}))[0] is Verdict.PASS
    leaving = replace(BEFORE, pods=(WEB, replace(AGENT, deleting=True)))
    assert judged(leaving, WITH_AGENT)[0] is Verdict.PASS
    assert judged(BEFORE, leaving)[0] is Verdict.PASS, "it was being deleted before the change"


@pytest.mark.parametrize("controller", ["", "Job", "ReplicaSet"])
def test_a_pod_that_stays_when_it_was_rejected_has_been_deleted_by_others(controller: str) -> None:
    before = replace(BEFORE, pods=(WEB, replace(AGENT, controller=controller)))
    said = "1 pod of 2 still there, none of them rejected or evicted"
    assert judged(BEFORE, before) == (Verdict.PASS, said)


def test_a_pod_that_vanishes_long_after_the_change_does_not_count() -> None:
    assert judged(BEFORE, WITH_AGENT, seconds=301.0)[0] is Verdict.PASS


def test_a_baseline_without_controllers_is_read() -> None:
    """An older version of rollout has written it."""
    written = json.loads(baseline_of(WITH_AGENT))
    del written["replaced"]
    assert read_baseline(json.dumps(written)).replaced == {}
