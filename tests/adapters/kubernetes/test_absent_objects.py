"""An object counts as absent when the API server says so of this object. Any other 404 says nothing about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.cluster import KubernetesCluster
from rollout.adapters.kubernetes.config_maps import ApiConfigMaps
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.app.config_maps import put
from rollout.core.model.config_map import ConfigMapChange, ConfigMapOutcome
from rollout.errors import AwayError, RemoteError
from tests.adapters.kubernetes.test_kubeconfig import config
from tests.adapters.web import Reply, Seen, Web, web

pytestmark = pytest.mark.process

SECONDS = 5.0


@dataclass
class MovedClock:
    """Only waiting moves it."""

    at: float = 1.0

    def now(self) -> float:
        return self.at

    def wall(self) -> str:
        return ""

    def wait(self, seconds: float) -> None:
        self.at += seconds


@pytest.fixture
def server() -> Iterator[Web]:
    with web(Reply()) as made:
        yield made


@pytest.fixture
def client(server: Web, tmp_path: Path) -> Iterator[ApiClient]:
    with closing(ApiClient(load_kubeconfig(config(tmp_path, {"token": "t"}, server.url)))) as made:
        yield made


def absent(kind: str, name: str, group: str = "") -> Reply:
    """As an API server writes it."""
    details = {"name": name, **({"group": group} if group else {}), "kind": kind}
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "details": details}
    return Reply(404, json.dumps({**status, "message": f'{kind} "{name}" not found', "code": 404}).encode())


INGRESS = Reply(404, b"<html>default backend - 404</html>")


def found_node() -> Reply:
    ready = {"type": "Ready", "status": "True"}
    return Reply(body=json.dumps({"metadata": {"name": "n1", "uid": "u"}, "status": {"conditions": [ready]}}).encode())


def lease_of(client: ApiClient) -> Any:
    return KubernetesCluster(client).look("n1", SECONDS).lease


def documents_of(client: ApiClient) -> Any:
    return list(KubernetesCluster(client).node_documents({"n1"})) or None


def config_map_of(client: ApiClient) -> Any:
    return ApiConfigMaps(client).read("kube-system", "kubelet-config", SECONDS)


def answers(missing: str, reply: Reply) -> Callable[[Seen], Reply]:
    """``reply`` to requests with ``missing`` in their path; a Node, and no pods, to others."""

    def answer(seen: Seen) -> Reply:
        if missing in seen.path:
            return reply
        return Reply(body=b'{"metadata": {}, "items": []}') if "/pods" in seen.path else found_node()

    return answer


READERS = (
    ("/leases/", lease_of, absent("leases", "n1", "coordination.k8s.io")),
    ("/nodes/", documents_of, absent("nodes", "n1")),
    ("/configmaps/", config_map_of, absent("configmaps", "kubelet-config")),
)


@pytest.mark.parametrize(("missing", "read", "says"), READERS)
def test_an_object_that_the_server_does_not_have_is_absent(
    server: Web, client: ApiClient, missing: str, read: Callable[[ApiClient], Any], says: Reply
) -> None:
    server.answer = answers(missing, says)
    assert read(client) is None


@pytest.mark.parametrize(("missing", "read", "says"), READERS)
@pytest.mark.parametrize("reply", [INGRESS, absent("namespaces", "another")], ids=["an ingress", "another object"])
def test_a_404_about_something_else_does_not_say_that_the_object_is_absent(
    server: Web, client: ApiClient, missing: str, read: Callable[[ApiClient], Any], says: Reply, reply: Reply
) -> None:
    server.answer = answers(missing, reply)
    with pytest.raises(AwayError) as error:
        read(client)
    assert error.value.reference == "http-404"


def test_a_node_behind_an_ingress_is_not_unknown_to_the_api_server(server: Web, client: ApiClient) -> None:
    server.answer = answers("/nodes/", INGRESS)
    with pytest.raises(AwayError):
        KubernetesCluster(client).look("n1", SECONDS)
    server.answer = answers("/nodes/", absent("nodes", "n1"))
    with pytest.raises(RemoteError) as error:
        KubernetesCluster(client).look("n1", SECONDS)
    assert error.value.reference == "no-such-node"


def test_a_config_map_behind_an_ingress_stays_to_be_restored(server: Web, client: ApiClient) -> None:
    server.answer = answers("/", INGRESS)
    clock = MovedClock()
    change = ConfigMapChange("kube-system", "kubelet-config", "kubelet", "old", "new", "uid-1")
    done = put(change.undone, ApiConfigMaps(client), clock, clock.wait, lambda: True, void=True)
    assert (done.outcome, done.reference) == (ConfigMapOutcome.UNANSWERED, "http-404")
    assert "default backend" in done.message
