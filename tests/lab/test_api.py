"""The lab's Kubernetes API as a client with its kubeconfig sees it: shapes, effects of the kubelets, refusals."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.cluster import KubernetesCluster
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.errors import RemoteError
from rollout.lab import api, control, faults, pods, pulls
from tests.controllers import until
from tests.lab.labs import Lab

pytestmark = pytest.mark.process

NODE, OTHER = "lab-01", "lab-02"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@dataclass(frozen=True)
class Client:
    """The content of a kubeconfig: address, authority, our identity."""

    url: str
    tls: ssl.SSLContext
    token: str

    def ask(self, path: str, body: object = None, *, timeout: float = 120.0) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Authorization": f"Bearer {self.token}"})  # noqa: S310 (https, from the kubeconfig)
        try:
            with urllib.request.urlopen(request, timeout=timeout, context=self.tls) as answer:  # noqa: S310
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def get(self, path: str) -> Any:
        code, document = self.ask(path)
        assert code == 200, document
        return document

    def ready(self) -> tuple[str, str]:
        conditions = self.get(f"/api/v1/nodes/{NODE}")["status"]["conditions"]
        (found,) = [condition for condition in conditions if condition["type"] == "Ready"]
        return found["status"], found["reason"]

    def until_ready(self, status: str) -> None:
        until(lambda: self.ready()[0] == status, 60, f"Ready is {status}")

    def has_lease(self, node: str = NODE) -> bool:
        return self.ask(f"{LEASES}/{node}")[0] == 200

    def renewed(self, node: str = NODE) -> str:
        text = self.get(f"{LEASES}/{node}")["spec"]["renewTime"]
        assert isinstance(text, str)
        return text

    def until_renewed(self, node: str = NODE) -> None:
        """Wait for one more renewal."""
        before = self.renewed(node)
        until(lambda: self.renewed(node) > before, 60, f"{node} renews its lease")

    def pods(self) -> dict[str, Any]:
        found = self.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}")
        return {pod["metadata"]["name"]: pod for pod in found["items"]}

    def containers(self) -> dict[str, tuple[str, int]]:
        return {
            name: (container["containerID"], container["restartCount"])
            for name, pod in self.pods().items()
            for container in pod["status"].get("containerStatuses", ())
        }


def client(lab: Lab) -> Client:
    config = yaml.safe_load((lab.directory / api.KUBECONFIG).read_text())
    assert (lab.directory / api.KUBECONFIG).stat().st_mode & 0o777 == 0o600
    (cluster,), (user,) = config["clusters"], config["users"]
    authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    tls = ssl.create_default_context(cadata=authority)
    return Client(cluster["cluster"]["server"], tls, user["user"]["token"])


def restart(lab: Lab, extra: str) -> None:
    """Start the kubelet with another command line."""
    (lab.root(NODE) / "etc/default/kubelet").write_text(f"KUBELET_EXTRA_ARGS={extra}\n")
    assert lab.ssh(NODE, "systemctl restart kubelet").returncode == 0


@pytest.fixture
def extra(small: Lab) -> str:
    """The arguments of the current command line."""
    return (small.root(NODE) / "etc/default/kubelet").read_text().partition("=")[2].strip()


def test_nodes_in_pages_and_one_by_one(lab: Lab) -> None:
    asked = client(lab)
    assert asked.get("/version")["gitVersion"] == lab.spec.api_server
    names: list[str] = []
    path = "/api/v1/nodes?limit=3"
    while path:
        found = asked.get(path)
        assert (found["kind"], found["apiVersion"]) == ("NodeList", "v1")
        names += [node["metadata"]["name"] for node in found["items"]]
        token = found["metadata"].get("continue")
        path = f"/api/v1/nodes?limit=3&continue={token}" if token else ""
    assert names == [f"lab-0{number}" for number in range(1, 9)]
    node = asked.get("/api/v1/nodes/lab-05")
    machine = (lab.root("lab-05") / "etc/machine-id").read_text().strip()
    info = node["status"]["nodeInfo"]
    assert (info["kubeletVersion"], info["machineID"]) == ("v1.23.17", machine)
    assert info["containerRuntimeVersion"].startswith("containerd://1.")
    assert asked.get("/api/v1/nodes/lab-01")["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("docker://20.")
    assert node["status"]["addresses"][0] == {"type": "InternalIP", "address": "10.0.0.5"}
    assert asked.ask("/api/v1/nodes/nobody")[0] == 404
    assert asked.ask("/api/v1/nodes?limit=3&continue=rubbish")[0] == 400
    assert asked.ask("/apis/apps/v1/deployments")[0] == 404


def test_pods_in_pages(lab: Lab) -> None:
    asked = client(lab)
    every = asked.get("/api/v1/pods")["items"]
    assert len(every) == 16
    pieces: list[str] = []
    token = ""
    while True:
        found = asked.get(f"/api/v1/pods?limit=3&continue={token}")
        assert len(found["items"]) <= 3
        pieces += [pod["metadata"]["name"] for pod in found["items"]]
        token = found["metadata"].get("continue", "")
        if not token:
            break
    assert pieces == [pod["metadata"]["name"] for pod in every]
    assert {pod["metadata"]["namespace"] for pod in asked.get("/api/v1/namespaces/kube-system/pods")["items"]} == {
        "kube-system"
    }
    assert asked.ask("/api/v1/pods?fieldSelector=status.phase%3DRunning")[0] == 400


def test_the_lease_is_renewed_while_the_kubelet_runs_and_at_its_start(small: Lab) -> None:
    asked = client(small)
    until(lambda: asked.has_lease() and asked.has_lease(OTHER), 60, "both have a lease")
    assert len(asked.get(LEASES)["items"]) == 2
    asked.until_renewed()
    second = asked.renewed()
    version = asked.get(f"{LEASES}/{NODE}")["metadata"]["resourceVersion"]
    small.ssh(NODE, "systemctl restart kubelet")
    until(lambda: asked.renewed() > second, 60, "it is renewed at the start")
    assert asked.get(f"{LEASES}/{NODE}")["metadata"]["resourceVersion"] != version
    small.ssh(NODE, "systemctl stop kubelet")
    stopped = asked.renewed()
    for _ in range(2):
        asked.until_renewed(OTHER)
    assert asked.renewed() == stopped


def test_a_lease_is_valid_for_four_periods_after_the_last_renewal() -> None:
    held = pods.LabLease(period=10.0)
    held.begin(100.0)
    held.end(105.0)
    renewed = held.renewed(105.0)
    assert renewed is not None
    assert held.is_fresh(renewed + 39.9), "the node controller has not noticed it yet"
    assert not held.is_fresh(renewed + 40.1)


def test_a_node_without_a_kubelet_becomes_unknown_after_a_while(small: Lab) -> None:
    asked = client(small)
    asked.until_ready("True")
    small.ssh(NODE, "systemctl stop kubelet")
    asked.until_ready("Unknown")
    assert asked.ready() == ("Unknown", "NodeStatusUnknown")
    taints = [taint["key"] for taint in asked.get(f"/api/v1/nodes/{NODE}")["spec"]["taints"]]
    assert taints == ["node.kubernetes.io/unreachable"] * 2
    assert asked.ask(f"/api/v1/nodes/{NODE}/proxy/configz")[0] == 503
    small.ssh(NODE, "systemctl start kubelet")
    asked.until_ready("True")


def test_configz_is_what_the_running_kubelet_was_started_with(small: Lab) -> None:
    asked = client(small)
    path = small.root(NODE) / "var/lib/kubelet/config.yaml"

    def effective() -> Any:
        return asked.get(f"/api/v1/nodes/{NODE}/proxy/configz")["kubeletconfig"]

    assert (effective()["serializeImagePulls"], effective()["maxPods"]) == (True, 110)
    assert effective()["syncFrequency"] == "1m0s", "0s in the file is the default"
    path.write_text(path.read_text().replace("serializeImagePulls: true", "serializeImagePulls: false"))
    assert effective()["serializeImagePulls"] is True, "not before a restart"
    small.ssh(NODE, "systemctl restart kubelet")
    assert effective()["serializeImagePulls"] is False
    restart(small, "--max-pods=77 --serialize-image-pulls=true")
    assert (effective()["maxPods"], effective()["serializeImagePulls"]) == (77, True), "a flag overrides the file"


def test_a_kubelet_counts_its_pulls_from_its_start(small: Lab) -> None:
    access = ApiClient(load_kubeconfig(str(small.directory / api.KUBECONFIG), ""))
    cluster = KubernetesCluster(access)
    try:
        before = cluster.pull_counter(NODE, 10.0).ended
        small.fault(NODE, pulls.PULLING)
        assert cluster.pull_counter(NODE, 10.0).ended == before
        small.clear(NODE)
        assert cluster.pull_counter(NODE, 10.0).ended == before + 1
        small.ssh(NODE, "systemctl restart kubelet")
        assert cluster.pull_counter(NODE, 10.0).ended == 0
        small.ssh(NODE, "systemctl stop kubelet")
        with pytest.raises(RemoteError, match="connection refused"):
            cluster.pull_counter(NODE, 10.0)
        small.ssh(NODE, "systemctl start kubelet")
    finally:
        access.close()


def test_containers_survive_a_restart_of_the_kubelet_and_no_reboot(small: Lab, extra: str) -> None:
    asked = client(small)
    before = asked.containers()
    assert len(before) == 2
    assert all(identity.startswith("docker://") for identity, _ in before.values())
    restart(small, f"{extra} --v=4")
    assert asked.containers() == before
    small.fault(NODE, faults.REBOOT, 0.1)
    small.until_state(NODE, "running")
    after = asked.containers()
    assert {count for _, count in after.values()} == {1}
    assert not {identity for identity, _ in after.values()} & {identity for identity, _ in before.values()}


def test_a_container_that_another_configuration_restarts(small: Lab, extra: str) -> None:
    asked = client(small)
    before = asked.containers()
    small.fault(NODE, pods.RESTARTED)
    small.ssh(NODE, "systemctl restart kubelet")
    assert asked.containers() == before, "the same configuration does no harm"
    restart(small, f"{extra} --v=4")
    after = asked.containers()
    changed = [name for name in before if before[name] != after[name]]
    assert changed == [f"web-{NODE}"]
    assert after[changed[0]][1] == before[changed[0]][1] + 1
    status = asked.pods()[changed[0]]["status"]["containerStatuses"][0]
    assert status["lastState"]["terminated"]["containerID"] == before[changed[0]][0]
    restart(small, extra)
    assert asked.containers() == after, "past effects are not undone"


def test_a_pod_that_is_not_admitted_again(small: Lab, extra: str) -> None:
    asked = client(small)
    small.fault(NODE, pods.REJECTED)
    restart(small, f"{extra} --v=4")
    status = asked.pods()[f"web-{NODE}"]["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "OutOfpods")
    restart(small, extra)
    assert asked.pods()[f"web-{NODE}"]["status"]["phase"] == "Failed", "a rejected pod stays rejected"
    small.clear(NODE)
    assert asked.pods()[f"web-{NODE}"]["status"]["phase"] == "Running"


def test_a_pull_that_fails_under_another_configuration(small: Lab, extra: str) -> None:
    asked = client(small)
    small.fault(NODE, pods.PULLING)
    restart(small, f"{extra} --v=4")
    (container,) = asked.pods()[f"batch-{NODE}"]["status"]["containerStatuses"]
    assert container["state"]["waiting"]["reason"] == "ImagePullBackOff"
    restart(small, extra)
    assert f"batch-{NODE}" not in asked.pods()


def test_not_ready_and_cordoned_nodes(small: Lab) -> None:
    asked = client(small)
    asked.until_ready("True")
    small.fault(NODE, pods.NOT_READY)
    assert asked.ready() == ("False", "KubeletNotReady")
    small.fault(NODE, pods.CORDONED)
    assert asked.ready()[0] == "True"
    spec = asked.get(f"/api/v1/nodes/{NODE}")["spec"]
    assert (spec["unschedulable"], [taint["key"] for taint in spec["taints"]]) == (
        True,
        ["node.kubernetes.io/unschedulable"],
    )
    small.clear(NODE)
    assert "unschedulable" not in asked.get(f"/api/v1/nodes/{NODE}")["spec"]


def test_times_are_the_nodes_own_clocks(small: Lab) -> None:
    asked = client(small)
    until(asked.has_lease, 60, "it has a lease")
    today = asked.renewed()
    small.fault(NODE, faults.CLOCK, 86400.0)
    assert asked.renewed()[:10] > today[:10]
    assert asked.ready()[0] == "True", "the node controller uses its own clock"


def test_missing_rights_are_refused(small: Lab) -> None:
    asked = client(small)
    stranger = Client(asked.url, asked.tls, "nobody")
    code, refusal = stranger.ask("/api/v1/nodes")
    assert (code, refusal["kind"], refusal["reason"]) == (401, "Status", "Unauthorized")
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "nodes"}}}
    assert asked.ask("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)[1]["status"]["allowed"] is True

    control.ask(small.directory, {"op": "api", "kind": api.FORBIDDEN})
    code, refusal = asked.ask("/api/v1/nodes")
    assert (code, refusal["reason"]) == (403, "Forbidden")
    assert 'cannot list resource "nodes"' in refusal["message"]
    assert (
        'cannot get resource "leases" in API group "coordination.k8s.io"' in asked.ask(f"{LEASES}/{NODE}")[1]["message"]
    )
    assert asked.ask("/version")[0] == 200
    control.ask(small.directory, {"op": "api"})
    assert asked.ask("/api/v1/nodes")[0] == 200


def test_an_api_that_is_down_or_slow(small: Lab) -> None:
    asked = client(small)
    control.ask(small.directory, {"op": "api", "kind": api.DOWN})
    with pytest.raises(urllib.error.URLError, match="refused"):
        asked.ask("/version")
    control.ask(small.directory, {"op": "api", "kind": api.SLOW, "after": 0.5})
    began = time.monotonic()
    assert asked.ask("/version")[0] == 200
    assert time.monotonic() - began >= 0.5
    control.ask(small.directory, {"op": "api", "kind": api.SLOW, "after": 60.0})
    with pytest.raises(OSError, match="timed out"):
        asked.ask("/version", timeout=0.2)
    control.ask(small.directory, {"op": "api"})
    assert asked.ask("/version")[0] == 200


def test_pods_of_a_few_nodes_and_of_many_are_the_same(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [node.name for node in lab.spec.nodes[:3]]
    client = ApiClient(load_kubeconfig(str(lab.directory / api.KUBECONFIG), ""))
    try:
        few = KubernetesCluster(client).pods(names)
        monkeypatch.setattr("rollout.adapters.kubernetes.cluster.FEW_NODES", 0)
        monkeypatch.setattr("rollout.adapters.kubernetes.cluster.PAGE", 4)
        many = KubernetesCluster(client).pods(names)
    finally:
        client.close()
    assert {pod.node for pod in few} == set(names)
    assert sorted(few, key=lambda pod: (pod.node, pod.name)) == sorted(many, key=lambda pod: (pod.node, pod.name))
