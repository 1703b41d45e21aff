"""The lab's API under a drain: it keeps the contract of a real API server, and its pods end like on a kubelet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.core.model.pods import LeavingPod
from rollout.errors import AwayError, RemoteError
from rollout.features.drain.client import DrainingCluster
from rollout.features.drain.rules import Cordon, Eviction
from rollout.kubelet.restarts.termination import budget
from rollout.lab import api, control, launch, pods
from tests.controllers import until
from tests.features.drain.drain_contract import CASES, RUN, SECONDS, TOKEN, Subject
from tests.lab.labs import Lab, spec

pytestmark = [pytest.mark.process, pytest.mark.drawn(12), pytest.mark.xdist_group("drains")]  # one fleet for all

FIRST, SECOND = "lab-01", "lab-02"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One node for each case, and another one."""
    made = Lab(tmp_path_factory.mktemp("drains") / "fleet", spec(len(CASES) + 1))
    made.up()
    yield made
    log = (made.directory / "lab.log").read_text(encoding="utf-8")
    launch.down(made.directory)
    assert log == ""


class OnLab:
    """The contract's subject, with more methods for a lab's node."""

    def __init__(self, lab: Lab, node: str) -> None:
        self.lab, self.node, self.pod = lab, node, f"default/web-{node}"
        self.client = ApiClient(load_kubeconfig(str(lab.directory / api.KUBECONFIG)))
        self.cluster = DrainingCluster(self.client)
        until(lambda: self.pod in self.pods() and self.ready(), 120, f"{node} is ready and has its pod")

    def somebody_cordons(self) -> None:
        self.lab.fault(self.node, pods.CORDONED)

    def budget_blocks(self) -> None:
        self.lab.fault(self.node, pods.BLOCKED)

    def two_budgets_match(self) -> None:
        self.lab.fault(self.node, pods.BLOCKED_TWICE)

    def kubelet_ends(self, pod: str, node: str = "") -> None:
        until(lambda: pod not in self.pods(node), 120, f"{pod} has ended")

    def another_pod_ends(self) -> None:
        """A pod of the second node is evicted and ends without a fault: that is the time that a normal pod takes."""
        pod = f"default/web-{SECOND}"
        assert self.cluster.evict(self.pods(SECOND)[pod], SECONDS).eviction is Eviction.ACCEPTED
        self.kubelet_ends(pod, SECOND)

    def ready(self) -> bool:
        return self.cluster.look(self.node, SECONDS).node.ready == "True"

    def pods(self, node: str = "") -> dict[str, LeavingPod]:
        return {pod.name: pod for pod in self.cluster.leaving(node or self.node, SECONDS)}

    def evict(self) -> LeavingPod:
        """Evict the pod; returns it as it is afterwards."""
        assert self.cluster.evict(self.pods()[self.pod], SECONDS).eviction is Eviction.ACCEPTED
        return self.pods()[self.pod]


@pytest.mark.parametrize(("number", "case"), [*enumerate(CASES, 1)], ids=[case.__name__ for case in CASES])
def test_contract(fleet: Lab, number: int, case: Callable[[Subject], None]) -> None:
    subject = OnLab(fleet, f"lab-{number:02d}")
    try:
        case(subject)
    finally:
        fleet.clear(subject.node)
        subject.client.close()


@pytest.fixture
def subject(small: Lab) -> Iterator[OnLab]:
    """The first of two nodes."""
    made = OnLab(small, FIRST)
    yield made
    made.client.close()


def test_an_evicted_pod_is_recreated_on_the_next_node_with_room(subject: OnLab) -> None:
    assert subject.cluster.cordon(FIRST, RUN, TOKEN, SECONDS) is Cordon.OURS
    subject.evict()
    subject.kubelet_ends(subject.pod)
    assert set(subject.pods()) == {f"kube-system/kube-proxy-{FIRST}"}, "the DaemonSet's pod stays"
    assert set(subject.pods("lab-02")) == {
        "kube-system/kube-proxy-lab-02",
        "default/web-lab-02",
        f"default/web-{FIRST}-1",
    }
    assert subject.cluster.uncordon(FIRST, RUN, TOKEN, SECONDS) is Cordon.NONE
    assert f"default/web-{FIRST}-1" not in subject.pods(), "no pod returns by itself"


def test_a_kubelet_would_admit_a_daemon_first_then_its_own_replica_then_a_guest(subject: OnLab) -> None:
    """By the age of the pods, as kubelets do after a restart."""
    subject.evict()
    subject.kubelet_ends(subject.pod)
    there = subject.cluster.pods(["lab-02"])
    by_age = [pod.name for pod in sorted(there, key=lambda pod: pod.created)]
    assert by_age == ["kube-system/kube-proxy-lab-02", "default/web-lab-02", f"default/web-{FIRST}-1"]


def test_a_pod_that_no_node_has_room_for_is_pending(subject: OnLab) -> None:
    for node in (FIRST, "lab-02"):
        assert subject.cluster.cordon(node, RUN, TOKEN, SECONDS) is Cordon.OURS
    subject.evict()
    subject.kubelet_ends(subject.pod)
    everywhere = subject.client.get("/api/v1/pods", SECONDS)["items"]
    (waiting,) = (pod for pod in everywhere if pod["metadata"]["name"] == f"web-{FIRST}-1")
    assert (waiting["status"]["phase"], waiting["spec"].get("nodeName")) == ("Pending", None)
    subject.cluster.uncordon("lab-02", RUN, TOKEN, SECONDS)
    until(lambda: f"default/web-{FIRST}-1" in subject.pods(SECOND), 120, "the next node runs it")


def test_a_slow_pod_ends_as_late_as_its_kubelet_allows(subject: OnLab) -> None:
    subject.lab.fault(FIRST, pods.SLOW, 1.0)
    expected = budget(subject.pods()[subject.pod], 20).seconds
    assert expected == 3.0, "1 s of grace, all used by the hook, and the minimum of 2 s"
    began = time.monotonic()
    ending = subject.evict()
    assert ending.deletion_grace == 1
    subject.kubelet_ends(subject.pod)
    assert time.monotonic() - began >= expected


def test_a_held_pod_stays_until_it_is_released(subject: OnLab) -> None:
    subject.lab.fault(FIRST, pods.HELD)
    held = subject.evict()
    assert held.held_by == ("example.com/held",)
    subject.another_pod_ends()
    assert subject.pod in subject.pods()
    subject.lab.clear(FIRST)
    subject.kubelet_ends(subject.pod)


def test_without_a_kubelet_no_pod_ends(subject: OnLab) -> None:
    subject.lab.ssh(FIRST, "systemctl stop kubelet")
    subject.evict()
    subject.another_pod_ends()
    assert subject.pod in subject.pods()
    subject.lab.ssh(FIRST, "systemctl start kubelet")
    subject.kubelet_ends(subject.pod)


def test_an_api_that_was_down_during_a_drain_has_lost_nothing(subject: OnLab) -> None:
    assert subject.cluster.cordon(FIRST, RUN, TOKEN, SECONDS) is Cordon.OURS
    pod = subject.evict()
    control.ask(subject.lab.directory, {"op": "api", "kind": api.DOWN})
    for _ in range(2):  # over the connection that was kept, and over a new one
        with pytest.raises(AwayError):
            subject.cluster.evict(pod, SECONDS)
    control.ask(subject.lab.directory, {"op": "api"})
    subject.kubelet_ends(subject.pod)
    assert subject.cluster.uncordon(FIRST, "", TOKEN, SECONDS) is Cordon.NONE


def test_missing_rights_are_named(subject: OnLab) -> None:
    pod = subject.pods()[subject.pod]
    control.ask(subject.lab.directory, {"op": "api", "kind": api.FORBIDDEN})
    with pytest.raises(RemoteError, match='cannot get resource "nodes"'):
        subject.cluster.cordon(FIRST, RUN, TOKEN, SECONDS)
    with pytest.raises(RemoteError, match='cannot patch resource "nodes"'):
        subject.client.patch(f"/api/v1/nodes/{FIRST}", {"spec": {"unschedulable": True}}, SECONDS)
    control.ask(subject.lab.directory, {"op": "api"})
    assert subject.pods()[subject.pod] == pod


def test_a_node_is_changed_by_merge_patch_and_in_nothing_but_its_cordon(subject: OnLab) -> None:
    path = f"/api/v1/nodes/{FIRST}"
    with pytest.raises(RemoteError, match="nothing else") as error:
        subject.client.patch(path, {"metadata": {"labels": {"a": "b"}}}, SECONDS)
    assert error.value.reference == "http-422"
