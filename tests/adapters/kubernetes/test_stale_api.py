"""An API server that is behind, restarted, hung or has another time: outdated answers pass no gate."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.cluster import KubernetesCluster
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.app.node_gates import UntouchableError
from rollout.gates.api_checks.query import ApiKind
from tests.adapters.kubernetes.node_gates import FAILED, PASSED, UNKNOWN, Asked
from tests.adapters.web import Reply, Seen, web
from tests.controllers import PATIENCE, until

pytestmark = pytest.mark.process

EARLIER, LATER = "2026-11-20T12:00:00.000000Z", "2026-11-20T12:00:10.000000Z"
POD = {
    "metadata": {"name": "web", "namespace": "shop", "uid": "6f0a1f2e-1111-2222-3333-444455556666"},
    "spec": {"nodeName": "n1", "restartPolicy": "Always", "containers": [{"name": "app", "image": "app:1"}]},
    "status": {
        "phase": "Running",
        "containerStatuses": [
            {
                "name": "app", "containerID": "containerd://aa11", "restartCount": 0, "image": "app:1", "imageID": "",
                "ready": True, "state": {"running": {"startedAt": "2026-11-20T08:00:00Z"}},
            }
        ],
    },
}  # fmt: skip


@dataclass
class Api:
    """The server's answers. ``hung`` nodes get a refusal at ``over``; ``status`` is the answer to every request."""

    ready: str = "True"
    beat: str = LATER
    renewed: str = EARLIER
    lease_at: int = 100
    pods_at: str = "90"
    pods: list[Any] = field(default_factory=lambda: [POD])
    stored: list[Any] | None = None  # the store's, where its cache hangs (``None``: the same)
    asked_store: int = 0
    more: str = ""  # the list of pods continues on another page
    no_list: bool = False  # 200 with something else in the place of the list of pods
    hung: frozenset[str] = frozenset()
    status: int = 200
    body: bytes | None = None
    over: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def answer(self, seen: Seen) -> Reply:
        path = urlsplit(seen.path)
        name = path.path.rpartition("/")[2]
        if name in self.hung:
            self.waiting.release()
            self.over.wait()
            return Reply(403)
        if self.body is not None or self.status != 200:
            return Reply(self.status, self.body or b"")
        if path.path == "/api/v1/pods" and "resourceVersion=0" not in path.query:
            self.asked_store += 1
            if self.stored is not None:
                listed = {"metadata": {"resourceVersion": "9000"}, "items": self.stored}
                return Reply(body=json.dumps(listed).encode())
        return Reply(body=json.dumps(self._document(path.path, name)).encode())

    def _document(self, path: str, name: str) -> dict[str, Any]:
        if path == "/api/v1/pods" and self.no_list:
            return {"kind": "Status", "metadata": {}, "status": "Failure", "message": "no store"}
        if path == "/api/v1/pods":
            return {"metadata": {"resourceVersion": self.pods_at, "continue": self.more}, "items": self.pods}
        if "/leases/" in path:
            spec = {"holderIdentity": name, "renewTime": self.renewed}
            return {"metadata": {"name": name, "resourceVersion": str(self.lease_at)}, "spec": spec}
        ready = {
            "type": "Ready", "status": self.ready, "reason": "KubeletReady", "message": "ok", "lastHeartbeatTime": self.beat,
        }  # fmt: skip
        status = {
            "conditions": [ready],
            "nodeInfo": {"kubeletVersion": "v1.20.15", "containerRuntimeVersion": "docker://1"},
        }
        return {"metadata": {"name": name, "uid": "u", "labels": {}}, "spec": {}, "status": status}


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def cluster(api: Api, tmp_path: Path) -> Iterator[KubernetesCluster]:
    with web() as server, ExitStack() as stack:
        server.answer = api.answer
        path = tmp_path / "kubeconfig"
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1", "kind": "Config", "current-context": "c",
                    "clusters": [{"name": "k", "cluster": {"server": server.url}}],
                    "users": [{"name": "u", "user": {"token": "t"}}],
                    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                }
            )
        )  # fmt: skip
        made = KubernetesCluster(ApiClient(load_kubeconfig(str(path))))
        stack.callback(made.close)
        yield made


def test_a_lease_from_before_the_restart_passes_no_gate_however_new_it_looks(
    api: Api, cluster: KubernetesCluster
) -> None:
    """The clocks of controller and node are not compared: a renewTime in the year 2100 proves no more than any other."""
    gate = Asked("nodeReady", "n1", cluster).before()
    api.renewed, api.lease_at = "2100-01-01T00:00:00.000000Z", 150
    assert gate.now()[0] is UNKNOWN
    gate.clock.at += 30
    assert gate.now() == (UNKNOWN, "Ready, but its lease was not renewed in 30 s of watching")
    api.renewed, api.lease_at = "2100-01-01T00:00:10.000000Z", 160
    assert gate.now()[0] is PASSED


@pytest.mark.parametrize("renewed", ["1970-01-01T00:00:00.000000Z", "2100-01-01T00:00:00.000000Z"])
def test_a_node_with_a_wrong_clock_still_passes_by_its_renewals(
    api: Api, cluster: KubernetesCluster, renewed: str
) -> None:
    gate = Asked("nodeReady", "n1", cluster).before()
    assert gate.now()[0] is UNKNOWN
    api.renewed, api.lease_at = renewed, 101
    assert gate.now()[0] is PASSED


@pytest.mark.parametrize("kind", ["podsKept", "containersKept", "imagePulls"])
def test_an_answer_that_is_not_a_list_of_pods_does_not_count_as_an_empty_list(
    api: Api, cluster: KubernetesCluster, kind: ApiKind
) -> None:
    gate = Asked(kind, "n1", cluster).before()
    assert gate.now()[0] is PASSED
    api.no_list = True
    verdict, said = gate.now()
    assert (verdict, "has no items" in said) == (UNKNOWN, True), said
    with pytest.raises(UntouchableError, match="has no items"):
        Asked(kind, "n1", cluster).before()


@pytest.mark.parametrize("kind", ["podsKept", "containersKept", "imagePulls"])
def test_a_partial_list_does_not_count_as_the_whole_list(api: Api, cluster: KubernetesCluster, kind: ApiKind) -> None:
    gate = Asked(kind, "n1", cluster).before()
    api.more = "page 2"
    verdict, said = gate.now()
    assert (verdict, "is incomplete" in said) == (UNKNOWN, True), said


def test_a_lease_that_others_wrote_is_not_renewed(api: Api, cluster: KubernetesCluster) -> None:
    """An annotation, or a migration of the store: the kubelet that renews it may be dead."""
    gate = Asked("nodeReady", "n1", cluster).before()
    assert gate.now()[0] is UNKNOWN
    api.lease_at = 150
    gate.clock.at += 30
    assert gate.now() == (UNKNOWN, "Ready, but its lease was not renewed in 30 s of watching")
    api.renewed, api.lease_at = LATER, 151
    assert gate.now()[0] is PASSED


def test_an_older_lease_from_a_server_that_is_behind_is_no_renewal(api: Api, cluster: KubernetesCluster) -> None:
    """There are two API servers behind one address, or one was restored from a backup.

    A renewal never lowers a version.
    """
    gate = Asked("nodeReady", "n1", cluster).before()
    api.renewed, api.lease_at = LATER, 150
    assert gate.now()[0] is UNKNOWN
    api.renewed, api.lease_at = EARLIER, 100
    assert gate.now()[0] is UNKNOWN
    api.renewed, api.lease_at = LATER, 150
    assert gate.now()[0] is UNKNOWN, "a change back and forth is no renewal either"


def test_ready_by_an_old_heartbeat_is_not_enough(api: Api, cluster: KubernetesCluster) -> None:
    """The node controller leaves Ready at True for 40 s after the kubelet's last status."""
    gate = Asked("nodeReady", "n1", cluster).before()
    for _ in range(5):
        assert gate.now()[0] is UNKNOWN
        gate.clock.at += 10


@pytest.mark.parametrize("kind", ["podsKept", "containersKept", "imagePulls"])
def test_pods_of_a_cache_that_is_behind_the_baseline_pass_no_gate(
    api: Api, cluster: KubernetesCluster, kind: ApiKind
) -> None:
    """A restarted API server refills its cache. For a while it may return old pods."""
    gate = Asked(kind, "n1", cluster).before()
    assert gate.now() == (PASSED, "")
    api.pods_at = "80"
    assert gate.now() == (UNKNOWN, "the API server returned older pods than before: its cache is behind")
    api.pods_at = "95"
    assert gate.now()[0] is PASSED
    api.pods_at = "91"
    assert gate.now()[0] is UNKNOWN, "newer than the baseline, older than the last reading"


@pytest.mark.parametrize("version", ["90", "80", "opaque", ""])
def test_a_cache_without_a_newer_list_than_the_baselines_is_not_believed(
    api: Api, cluster: KubernetesCluster, version: str
) -> None:
    """It hangs, and goes on to show the pods as they were before the change."""
    gate = Asked("podsKept", "n1", cluster).before()
    rejected = {**POD, "status": {"phase": "Failed", "reason": "OutOfpods", "message": "Node didn't have enough"}}
    api.pods_at, api.stored = version, [rejected]
    verdict, said = gate.now()
    assert (verdict, "shop/web Failed (OutOfpods" in said) == (FAILED, True), said


def test_a_cache_that_goes_on_is_believed_and_one_that_stops_is_not(api: Api, cluster: KubernetesCluster) -> None:
    gate = Asked("podsKept", "n1", cluster).before()
    api.pods_at = "95"
    assert gate.now()[0] is PASSED
    assert api.asked_store == 0, "for one node's pods from the store, the server reads every pod"
    assert gate.now()[0] is PASSED
    assert api.asked_store == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [(500, b"boom"), (503, b""), (200, b"<html>"), (200, b'{"metadata":'), (200, b"[]"), (200, b'{"items": 7}'), (410, b"{}")],
    ids=["error", "unavailable", "a page", "truncated", "a list", "another kind", "gone"],
)  # fmt: skip
def test_errors_of_the_api_server_in_the_soak_pass_no_gate_and_fail_none(
    api: Api, cluster: KubernetesCluster, status: int, body: bytes
) -> None:
    gate = Asked("podsKept", "n1", cluster, timeout=1.2).before()
    good = api.body
    api.status, api.body = status, body
    assert gate.now()[0] is UNKNOWN
    api.status, api.body = 200, good
    until(lambda: gate.now()[0] is PASSED, PATIENCE, "its answers count again when it is back")


@pytest.mark.parametrize("ready", ["False", "Unknown", ""])
def test_a_kubelet_that_runs_and_is_not_ready_fails_after_its_versions_window(
    api: Api, cluster: KubernetesCluster, ready: str
) -> None:
    """systemd reports the kubelet as running, and its healthz is ok. Only its Node shows the problem."""
    gate = Asked("nodeReady", "n1", cluster).before()
    api.ready = ready
    assert gate.now()[0] is UNKNOWN
    gate.clock.at += 21.0  # the change's own window is 20 s
    assert gate.now()[0] is FAILED


def test_a_node_that_was_not_ready_before_is_left_alone(api: Api, cluster: KubernetesCluster) -> None:
    api.ready = "False"
    with pytest.raises(UntouchableError) as left:
        Asked("nodeReady", "n1", cluster).before()
    assert left.value.reference == "not-ready-before"


def test_a_hanging_request_for_one_node_delays_no_other_node(api: Api, cluster: KubernetesCluster) -> None:
    others = [Asked("podsKept", f"n{at}", cluster).before() for at in range(1, 9)]
    hung = [Asked("podsKept", f"hung{at}", cluster, timeout=3600.0) for at in range(64)]
    api.hung = frozenset(gate.node for gate in hung)
    with ThreadPoolExecutor(64) as pool:
        waiting = [pool.submit(_baseline, gate) for gate in hung]
        for _ in hung:
            assert api.waiting.acquire(timeout=300)
        try:
            assert {gate.now()[0] for gate in others} == {PASSED}
            assert not any(future.done() for future in waiting), "they still hang"
        finally:
            api.over.set()
        for future in waiting:
            future.result()


def _baseline(gate: Asked) -> None:
    with pytest.raises(UntouchableError):
        gate.before()
