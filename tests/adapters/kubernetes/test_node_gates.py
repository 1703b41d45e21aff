"""The node gates of the API server: each returns PASS, FAIL and UNKNOWN, and only new problems count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rollout.app.node_gates import UntouchableError
from rollout.gates.api_checks.query import ApiKind
from tests.adapters.kubernetes.apiserver import NOBODY
from tests.adapters.kubernetes.bed import Bed, running, waiting
from tests.adapters.kubernetes.node_gates import FAILED, PASSED, UNKNOWN, Asked

pytestmark = pytest.mark.process

READY: ApiKind = "nodeReady"
PODS: ApiKind = "podsKept"
CONTAINERS: ApiKind = "containersKept"
PULLS: ApiKind = "imagePulls"
REJECTED: dict[str, Any] = {
    "phase": "Failed",
    "reason": "OutOfpods",
    "message": "Node didn't have enough resource: pods",
    "containerStatuses": [],
}


def asked(api: Bed, kind: ApiKind) -> Asked:
    return Asked(kind, api.node, api.cluster())


# nodeReady


def test_ready_is_passed_once_the_lease_was_renewed(api: Bed) -> None:
    api.has_node()
    api.has_lease()
    gate = asked(api, READY).before()
    assert gate.now() == (UNKNOWN, "Ready, but its lease was not renewed in 0 s of watching")
    api.renews()
    assert gate.now() == (PASSED, "")
    assert gate.now() == (PASSED, "")


def test_a_renewal_before_the_first_look_proves_nothing(api: Bed) -> None:
    """It may be from before the restart. Clocks of two machines are not compared."""
    api.has_node()
    api.has_lease()
    gate = asked(api, READY).before()
    api.renews()
    assert gate.now()[0] is UNKNOWN
    gate.clock.at += 12
    assert gate.now() == (UNKNOWN, "Ready, but its lease was not renewed in 12 s of watching")


def test_a_second_restart_wants_a_renewal_of_its_own(api: Bed) -> None:
    api.has_node()
    api.has_lease()
    gate = asked(api, READY).before()
    gate.now()
    api.renews()
    assert gate.now() == (PASSED, "")
    assert gate.now(tx="r1-2")[0] is UNKNOWN


def test_not_ready_may_be_right_after_a_restart_and_is_a_failure_later(api: Bed) -> None:
    api.has_node()
    api.has_lease()
    gate = asked(api, READY).before()
    api.is_ready("False", "KubeletNotReady", "container runtime status check may not have completed yet")
    verdict, evidence = gate.now()
    assert verdict is UNKNOWN
    assert evidence == (
        "Ready is False: KubeletNotReady: container runtime status check may not have completed yet; "
        "allowed for 20 s after a restart"
    )
    gate.clock.at += 21
    assert gate.now() == (FAILED, evidence.partition(";")[0])


def test_a_node_that_flaps_is_not_passed_for_good(api: Bed) -> None:
    api.has_node()
    api.has_lease()
    gate = asked(api, READY).before()
    gate.now()
    api.renews()
    assert gate.now()[0] is PASSED
    gate.clock.at += 60
    api.is_ready("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    assert gate.now() == (FAILED, "Ready is Unknown: NodeStatusUnknown: Kubelet stopped posting node status.")
    api.is_ready("True")
    assert gate.now()[0] is PASSED


def test_a_node_without_a_lease_is_unknown(api: Bed) -> None:
    api.has_node()
    assert asked(api, READY).before().now() == (UNKNOWN, "Ready, but it has no lease in kube-node-lease")


def test_a_node_that_is_not_ready_before_is_not_touched(api: Bed) -> None:
    api.has_node("False", "KubeletNotReady", "PLEG is not healthy")
    with pytest.raises(
        UntouchableError, match="is not Ready before the change: KubeletNotReady: PLEG is not healthy"
    ) as error:
        asked(api, READY).before()
    assert error.value.reference == "not-ready-before"


def test_after_a_restart_of_our_own_it_may_take_a_while(api: Bed) -> None:
    """A canary's rehearsal reverts the change and applies it again. In between a Node may be NotReady for 10 s."""
    api.has_node("False", "KubeletNotReady", "container runtime status check may not have completed yet")
    gate = asked(api, READY)
    gate.gates.forget(api.node)
    ready = iter([None, None, None, lambda: api.is_ready("True")])

    def wait(_seconds: float) -> None:
        if (make := next(ready)) is not None:
            make()

    gate.gates.backends = replace(gate.gates.backends, wait=wait)
    assert gate.before().baseline


def test_a_node_that_the_api_does_not_know_is_not_touched(api: Bed) -> None:
    with pytest.raises(UntouchableError, match="the API server knows no Node") as error:
        asked(api, PODS).before()
    assert error.value.reference == "baseline-unknown"


# podsKept


def test_pods_that_stay_are_kept_and_deleted_ones_are_nobodys_fault(api: Bed) -> None:
    api.has_node()
    api.has_pod("web")
    api.has_pod("old")
    api.has_pod("job", policy="Never")
    gate = asked(api, PODS).before()
    api.deletes("old")
    api.pod_is("job", phase="Succeeded")
    assert gate.now() == (PASSED, "")


def test_a_pod_that_was_rejected_at_admission_is_a_failure(api: Bed) -> None:
    api.has_node()
    api.has_pod("web")
    gate = asked(api, PODS).before()
    assert gate.now()[0] is PASSED
    api.pod_is("web", **REJECTED)
    verdict, evidence = gate.now()
    assert verdict is FAILED
    assert evidence.startswith("1 pod rejected or ended: ")
    assert evidence.endswith("/web Failed (OutOfpods: Node didn't have enough resource: pods)")


def test_a_rejected_pod_that_its_controller_replaced_is_one_too(api: Bed) -> None:
    """A DaemonSet deletes a failed pod within a second. Its replacement is rejected as well."""
    api.has_node()
    api.has_pod("web-1")
    gate = asked(api, PODS).before()
    api.deletes("web-1")
    api.has_pod("web-2", **REJECTED)
    assert gate.now()[0] is FAILED


def test_a_pod_that_should_run_for_ever_and_succeeded_is_one_too(api: Bed) -> None:
    """1.36 leaves a pod that it rejected in this state."""
    api.has_node()
    api.has_pod("web")
    gate = asked(api, PODS).before()
    api.pod_is("web", phase="Succeeded", reason="", message="")
    assert gate.now()[0] is FAILED


def test_the_next_controller_judges_by_the_baseline_in_the_journal(api: Bed) -> None:
    api.has_node()
    api.has_pod("web")
    first = asked(api, PODS).before()
    api.pod_is("web", **REJECTED)
    second = asked(api, PODS)
    second.baseline = first.baseline
    assert second.now()[0] is FAILED


def test_a_pod_that_had_failed_before_does_not_count(api: Bed) -> None:
    api.has_node()
    api.has_pod("web", **REJECTED)
    assert asked(api, PODS).before().now() == (PASSED, "")


# containersKept


def test_containers_that_run_on_are_kept(api: Bed) -> None:
    api.has_node()
    api.has_lease()
    api.has_pod("web", **running("aaaa"))
    assert asked(api, CONTAINERS).before().now() == (PASSED, "")


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (running("bbbb", 1, "2026-11-20T12:00:08Z"), "web app (running, restarts 0 → 1)"),
        (running("bbbb", 0, "2026-11-20T12:00:08Z"), "web app (running, restarts 0 → 0)"),
        (waiting("CrashLoopBackOff", identity="aaaa", restarts=1), "web app (waiting, restarts 0 → 1)"),
    ],
    ids=["restarted", "made anew", "dead"],
)
def test_another_container_is_a_failure(api: Bed, after: dict[str, Any], said: str) -> None:
    api.has_node()
    api.has_lease()
    api.has_pod("web", **running("aaaa"))
    gate = asked(api, CONTAINERS).before()
    api.pod_is("web", **after)
    verdict, evidence = gate.now()
    assert verdict is FAILED
    assert evidence.endswith(said)


@pytest.mark.parametrize(
    "before",
    [
        waiting("CrashLoopBackOff", identity="aaaa", restarts=7),
        running("aaaa", 7, "2026-11-20T11:59:30Z"),
    ],
    ids=["waiting", "just back"],
)
def test_a_container_that_crashed_before_does_not_count(api: Bed, before: dict[str, Any]) -> None:
    api.has_node()
    api.has_lease()
    api.has_pod("web", **before)
    gate = asked(api, CONTAINERS).before()
    api.pod_is("web", **running("bbbb", 8, "2026-11-20T12:00:08Z"))
    assert gate.now() == (PASSED, "")


def test_a_container_that_crashes_hours_later_is_not_our_doing(api: Bed) -> None:
    """A wave may be held for a night. By the node's own clock this container ran for hours."""
    api.has_node()
    api.has_lease()
    api.has_pod("web", **running("aaaa"))
    gate = asked(api, CONTAINERS).before()
    api.pod_is("web", **running("bbbb", 1, "2026-11-20T15:00:00Z"))
    assert gate.now() == (PASSED, "")


# imagePulls


def test_no_new_pull_failure(api: Bed) -> None:
    api.has_node()
    api.has_pod("web")
    api.has_pod("typo", **waiting("ImagePullBackOff", "not found"))
    gate = asked(api, PULLS).before()
    assert gate.now() == (PASSED, "")
    api.has_pod("new", **waiting("ContainerCreating"))
    assert gate.now() == (PASSED, "")


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
def test_a_new_pull_failure_is_a_failure(api: Bed, reason: str) -> None:
    api.has_node()
    gate = asked(api, PULLS).before()
    api.has_pod("new", **waiting(reason, "pull QPS exceeded"))
    verdict, evidence = gate.now()
    assert verdict is FAILED
    assert evidence.endswith(f"new app ({reason}: pull QPS exceeded)")


# UNKNOWN, whichever gate


@pytest.mark.parametrize("kind", [READY, PODS, CONTAINERS, PULLS], ids=["ready", "pods", "containers", "pulls"])
def test_without_a_baseline_nothing_is_passed(api: Bed, kind: ApiKind) -> None:
    api.has_node()
    api.has_lease()
    api.has_pod("web")
    assert asked(api, kind).now() == (UNKNOWN, "there is no baseline from before the change to compare with")


@pytest.mark.parametrize("kind", [READY, PODS, CONTAINERS, PULLS], ids=["ready", "pods", "containers", "pulls"])
def test_a_gate_that_may_not_look_is_unknown(api: Bed, kind: ApiKind) -> None:
    api.has_node()
    verdict, evidence = Asked(kind, api.node, api.cluster(NOBODY)).now()
    assert verdict is UNKNOWN
    assert 'is forbidden: User "nobody" cannot get resource "nodes"' in evidence


# Rights


def test_who_may_look_misses_nothing(api: Bed) -> None:
    assert api.cluster().missing_rights() == ()


def test_what_is_missing_is_named(api: Bed) -> None:
    missing = ("get nodes", "list nodes", "list pods", "get leases in kube-node-lease")
    assert api.cluster(NOBODY).missing_rights() == missing


def test_all_nodes_as_they_are(api: Bed) -> None:
    api.has_node()
    found = next(node for node in api.cluster().nodes() if node.name == api.node)
    assert (found.ready, found.kubelet_version, found.runtime) == ("True", "v1.20.2", "docker://19.3.15")
    assert (found.addresses, found.labels, found.unschedulable) == (
        (("InternalIP", "10.0.0.1"),),
        {"rack": "r1"},
        False,
    )
    assert found.taints == ("node.kubernetes.io/not-ready:NoSchedule",)
