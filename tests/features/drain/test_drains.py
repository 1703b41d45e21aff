"""Drains on a real API server or its recorded answers: the contract, and behaviour that only a real server shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.core.model.pods import ContainerEnd, LeavingPod
from rollout.errors import RemoteError
from rollout.features.drain.rules import Eviction
from rollout.kubelet.restarts.termination import budget
from tests.adapters.kubernetes.apiserver import DRAINER, READER
from tests.adapters.kubernetes.bed import Bed, running
from tests.features.drain.drain_contract import CASES, SECONDS, Subject

pytestmark = pytest.mark.process

READY = {**running(), "conditions": [{"type": "Ready", "status": "True"}]}


class OnApi:
    """The contract's subject."""

    def __init__(self, api: Bed) -> None:
        api.has_node()
        api.has_pod("web", labels={"app": "web"}, **READY)
        self._api = api
        self.cluster, self.client = api.cluster(DRAINER), ApiClient(load_kubeconfig(str(api.kubeconfig(DRAINER))))
        self.node, self.pod = api.node, f"{api.namespace}/web"

    def somebody_cordons(self) -> None:
        self._api.is_cordoned()

    def budget_blocks(self) -> None:
        self._api.has_budget("web", needs=1, allows=0)

    def two_budgets_match(self) -> None:
        self._api.has_budget("web", needs=1, allows=1)
        self._api.has_budget("all", needs=1, allows=1)

    def kubelet_ends(self, pod: str) -> None:
        self._api.removes(pod.partition("/")[2])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_contract(api: Bed, case: Callable[[Subject], None]) -> None:
    subject = OnApi(api)
    try:
        case(subject)
    finally:
        subject.client.close()


def only(api: Bed) -> LeavingPod:
    (pod,) = api.cluster(DRAINER).leaving(api.node, SECONDS)
    return pod


def test_who_looks_only_may_not_drain(api: Bed) -> None:
    subject = OnApi(api)
    reader = api.cluster(READER)
    assert reader.missing_to_drain() == ("patch nodes", "create pods/eviction")
    with pytest.raises(RemoteError, match='cannot patch resource "nodes"') as error:
        reader.cordon(subject.node, "rno-1", 9, SECONDS)
    assert error.value.reference == "forbidden"
    answer = reader.evict(only(api), SECONDS)
    assert answer.eviction is Eviction.REFUSED
    assert 'cannot create resource "pods/eviction"' in answer.message


def test_a_budget_that_nobody_has_looked_at_yet_blocks(api: Bed) -> None:
    subject = OnApi(api)
    api.has_budget("web", needs=1, allows=1, looked_at=False)
    answer = subject.cluster.evict(only(api), SECONDS)
    assert answer.eviction is Eviction.BLOCKED
    assert answer.message.endswith("The disruption budget web is still being processed by the server.")


PARTS: dict[str, Any] = {
    "volumes": [{"name": "scratch", "emptyDir": {}}],
    "containers": [
        {"name": "app", "image": "a", "lifecycle": {"preStop": {"exec": {"command": ["sleep", "3"]}}}},
        {"name": "log", "image": "a"},
    ],
    "initContainers": [{"name": "first", "image": "a"}],
    "terminationGracePeriodSeconds": 45,
}


def test_what_is_read_of_a_pod(api: Bed) -> None:
    api.has_node()
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    api.has_pod("web", spec=PARTS, ownerReferences=[owner], finalizers=["example.com/held"])
    pod = only(api)
    assert pod == LeavingPod(
        uid=pod.uid,
        name=f"{api.namespace}/web",
        grace=45,
        local=True,
        controlled=True,
        held_by=("example.com/held",),
        containers=(ContainerEnd("app", hook=True, hook_sleeps=3), ContainerEnd("log")),
    )
    assert len(pod.uid) == 36


@pytest.mark.parametrize("why", ["daemon-set", "static", "over"])
def test_what_a_drain_leaves(api: Bed, why: str) -> None:
    api.has_node()
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    if why == "static":
        api.has_pod("web", annotations={"kubernetes.io/config.mirror": "0123", "kubernetes.io/config.source": "file"})
    else:
        api.has_pod("web", ownerReferences=[owner] if why == "daemon-set" else [])
    if why == "over":
        api.pod_is("web", phase="Succeeded")
    assert only(api).stays == why


def test_a_pod_that_nothing_makes_anew(api: Bed) -> None:
    api.has_node()
    api.has_pod("web")
    assert not only(api).controlled


def test_a_finalizer_holds_a_pod_that_has_ended(api: Bed) -> None:
    api.has_node()
    api.has_pod("web", finalizers=["example.com/held"])
    pod = only(api)
    assert api.cluster(DRAINER).evict(pod, SECONDS).eviction is Eviction.ACCEPTED
    api.removes("web", held=True)
    held = only(api)
    assert (held.uid, held.held_by, held.deletion_grace) == (pod.uid, ("example.com/held",), 0)


def test_a_budget_minds_no_pod_that_is_not_ready(api: Bed) -> None:
    subject = OnApi(api)
    subject.budget_blocks()
    api.pod_is("web", conditions=[{"type": "Ready", "status": "False"}])
    assert subject.cluster.evict(only(api), SECONDS).eviction is Eviction.ACCEPTED


def test_a_negative_grace_period_is_none_to_an_old_api_server(api: Bed) -> None:
    """1.20 deletes the pod at once, and its kubelet gives the containers 2 s.

    From 1.22 on a grace period of 1 s is granted.
    """
    api.has_node()
    api.has_pod("web", spec={"terminationGracePeriodSeconds": -3})
    pod = only(api)
    assert pod.grace == -3
    assert budget(pod, 20).seconds == 2
    assert api.cluster(DRAINER).evict(pod, SECONDS).eviction is Eviction.ACCEPTED
    assert api.cluster(DRAINER).leaving(api.node, SECONDS) == ()
