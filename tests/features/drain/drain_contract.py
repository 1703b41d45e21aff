"""The contract of an API server for drains: cases for a real server and for the lab's.

A case takes a ``Subject`` of its own and raises ``AssertionError``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import pytest

from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.objects import COUNTER, MARK
from rollout.core.model.live import LiveNode
from rollout.core.model.pods import LeavingPod
from rollout.errors import RemoteError
from rollout.features.drain.client import DrainingCluster
from rollout.features.drain.rules import Cordon, Eviction, EvictionAnswer

SECONDS = 20.0
RUN, OTHER_RUN = "rno-1", "rno-2"
TOKEN, NEWER = 9, 10


class Subject(Protocol):
    """An API server with an uncordoned node and an evictable pod on it, and a client with the rights for drains."""

    cluster: DrainingCluster
    client: ApiClient
    node: str
    pod: str  # "namespace/name", with the default grace period and no hook

    def somebody_cordons(self) -> None: ...

    def budget_blocks(self) -> None: ...

    def two_budgets_match(self) -> None: ...

    def kubelet_ends(self, pod: str) -> None:
        """Its containers have ended. Returns when the API shows that."""


def cordon(subject: Subject, run: str = RUN, counter: int = TOKEN) -> Cordon:
    return subject.cluster.cordon(subject.node, run, counter, SECONDS)


def uncordon(subject: Subject, run: str = RUN, counter: int | None = TOKEN) -> Cordon:
    return subject.cluster.uncordon(subject.node, run, counter, SECONDS)


def node(subject: Subject) -> LiveNode:
    return next(node for node in subject.cluster.nodes() if node.name == subject.node)


def cordoned(subject: Subject) -> tuple[bool, str]:
    found = node(subject)
    return found.unschedulable, found.cordoned_by


def pods(subject: Subject) -> dict[str, LeavingPod]:
    return {pod.name: pod for pod in subject.cluster.leaving(subject.node, SECONDS)}


def evict(subject: Subject, pod: LeavingPod) -> EvictionAnswer:
    return subject.cluster.evict(pod, SECONDS)


def nothing_is_missing(subject: Subject) -> None:
    assert subject.cluster.missing_to_drain() == ()


def a_cordon_bears_the_mark_and_is_lifted_with_it(subject: Subject) -> None:
    path = f"/api/v1/nodes/{subject.node}"
    before = subject.client.get(path, SECONDS)
    assert cordon(subject) is Cordon.OURS
    assert cordoned(subject) == (True, RUN)
    assert cordon(subject) is Cordon.OURS, "a repeated request changes nothing"
    assert uncordon(subject) is Cordon.NONE
    assert uncordon(subject) is Cordon.NONE
    after = subject.client.get(path, SECONDS)
    assert after["spec"].get("unschedulable") is None
    assert after["metadata"].get("annotations") == before["metadata"].get("annotations"), "restored"


def another_runs_cordon_is_its_own(subject: Subject) -> None:
    assert cordon(subject, OTHER_RUN) is Cordon.OURS
    assert cordon(subject) is Cordon.ANOTHER_RUN
    assert uncordon(subject) is Cordon.ANOTHER_RUN
    assert cordoned(subject) == (True, OTHER_RUN)
    assert uncordon(subject, "") is Cordon.NONE, "unless any run's is to be lifted"
    assert cordoned(subject) == (False, "")


def an_older_token_neither_keeps_nor_lifts_a_cordon(subject: Subject) -> None:
    path = f"/api/v1/nodes/{subject.node}"
    assert cordon(subject) is Cordon.OURS
    assert cordon(subject, RUN, NEWER) is Cordon.OURS, "it is taken over"
    taken = subject.client.get(path, SECONDS)["metadata"]["annotations"]
    assert (taken[MARK], taken[COUNTER]) == (RUN, str(NEWER))
    assert cordon(subject) is Cordon.NEWER
    assert uncordon(subject) is Cordon.NEWER
    assert subject.client.get(path, SECONDS)["metadata"]["annotations"] == taken
    assert cordoned(subject) == (True, RUN)
    assert uncordon(subject, RUN, None) is Cordon.NONE, "unless any token is accepted"
    assert cordoned(subject) == (False, "")


def somebody_elses_cordon_is_never_touched(subject: Subject) -> None:
    subject.somebody_cordons()
    assert cordon(subject) is Cordon.OTHERS
    assert uncordon(subject) is Cordon.OTHERS
    assert uncordon(subject, "") is Cordon.OTHERS
    assert cordoned(subject) == (True, "")


def a_node_that_is_gone_has_no_cordon(subject: Subject) -> None:
    with pytest.raises(RemoteError) as error:
        subject.cluster.cordon("nobody", RUN, TOKEN, SECONDS)
    assert error.value.reference == "no-such-node"
    assert subject.cluster.uncordon("nobody", RUN, TOKEN, SECONDS) is Cordon.NONE


def a_node_that_was_written_meanwhile_is_not_overwritten(subject: Subject) -> None:
    path = f"/api/v1/nodes/{subject.node}"
    version = subject.client.get(path, SECONDS)["metadata"]["resourceVersion"]
    assert cordon(subject) is Cordon.OURS
    stale = {"metadata": {"resourceVersion": version, "annotations": {MARK: None}}, "spec": {"unschedulable": None}}
    with pytest.raises(RemoteError, match="the object has been modified") as error:
        subject.client.patch(path, stale, SECONDS)
    assert error.value.reference == "conflict"
    assert cordoned(subject) == (True, RUN)


def accepted_is_not_gone(subject: Subject) -> None:
    pod = pods(subject)[subject.pod]
    assert (pod.grace, pod.deletion_grace, pod.deleted, pod.stays) == (30, None, "", "")
    assert evict(subject, pod).eviction is Eviction.ACCEPTED
    ending = pods(subject)[subject.pod]
    assert ending.uid == pod.uid
    assert ending.deletion_grace == 30
    assert ending.deleted.endswith("Z")
    assert evict(subject, pod).eviction is Eviction.ACCEPTED, "a repeated request changes nothing"
    subject.kubelet_ends(subject.pod)
    assert subject.pod not in pods(subject)
    assert evict(subject, pod).eviction is Eviction.GONE


def another_pod_of_the_same_name_is_left_alone(subject: Subject) -> None:
    pod = pods(subject)[subject.pod]
    earlier = replace(pod, uid="6f4bd9a6-0000-4000-8000-000000000000")
    assert evict(subject, earlier).eviction is Eviction.GONE
    assert pods(subject)[subject.pod] == pod


def a_budget_blocks_and_says_which(subject: Subject) -> None:
    pod = pods(subject)[subject.pod]
    subject.budget_blocks()
    answer = evict(subject, pod)
    assert answer.eviction is Eviction.BLOCKED
    assert answer.message == (
        "Cannot evict pod as it would violate the pod's disruption budget. "
        "The disruption budget web needs 1 healthy pods and has 1 currently"
    )
    assert pods(subject)[subject.pod].deletion_grace is None


def two_budgets_are_refused_for_good(subject: Subject) -> None:
    pod = pods(subject)[subject.pod]
    subject.two_budgets_match()
    answer = evict(subject, pod)
    assert answer.eviction is Eviction.REFUSED
    assert answer.message.startswith("This pod has more than one PodDisruptionBudget")
    assert pods(subject)[subject.pod].deletion_grace is None


CASES: tuple[Callable[[Subject], None], ...] = (
    nothing_is_missing,
    a_cordon_bears_the_mark_and_is_lifted_with_it,
    another_runs_cordon_is_its_own,
    an_older_token_neither_keeps_nor_lifts_a_cordon,
    somebody_elses_cordon_is_never_touched,
    a_node_that_is_gone_has_no_cordon,
    a_node_that_was_written_meanwhile_is_not_overwritten,
    accepted_is_not_gone,
    another_pod_of_the_same_name_is_left_alone,
    a_budget_blocks_and_says_which,
    two_budgets_are_refused_for_good,
)
