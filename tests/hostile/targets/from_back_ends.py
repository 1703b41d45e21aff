"""Answers of back ends: the API server, Prometheus, Alertmanager, exec plugins; and arbitrary pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from rollout.adapters.endpoints import HttpEndpoint
from rollout.adapters.http import HttpAnswer, decoded, listing, mapping, refusal
from rollout.adapters.kubernetes import credentials
from rollout.adapters.kubernetes.kubeconfig import Plugin
from rollout.adapters.kubernetes.objects import lease, live_node, pod, pull_counter
from rollout.adapters.kubernetes.pods import over, placed_pod
from rollout.app.ports import Target as Target_
from rollout.core.model.live import LiveNode
from rollout.core.model.report import RemoteAnswer
from rollout.core.reading.found_nodes import nodes_from_api
from rollout.core.reading.node_sources import FromKubernetes
from rollout.features.regions.client import messages
from rollout.gates.alertmanager.asking import Silence
from rollout.gates.alertmanager.client import Alertmanager
from rollout.gates.alertmanager.query import judge_alerts
from rollout.gates.page.query import HttpQuery, Page, judge_page
from rollout.gates.prometheus.client import Prometheus
from rollout.gates.prometheus.judging import judge_samples
from rollout.gates.prometheus.query import PrometheusQuery
from rollout.kubelet.node.served import shown_as_planned
from tests.app.test_node_worker import CHANGE
from tests.hostile.property import CANARY, Target

NODE = {
    "metadata": {"name": "n1", "uid": "u", "creationTimestamp": "2026-11-20T19:52:15Z", "labels": {"topology.kubernetes.io/zone": "z", "rack": "r1"}},
    "spec": {"unschedulable": True, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
    "status": {
        "nodeInfo": {"kubeletVersion": "v1.29.3", "containerRuntimeVersion": "containerd://1.7", "osImage": "Debian"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ok"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "capacity": {"cpu": "4"}, "allocatable": {"cpu": "3900m", "memory": "16Gi"},
    },
}  # fmt: skip
POD = {
    "metadata": {"uid": "p", "namespace": "d", "name": "web", "annotations": {"kubernetes.io/config.source": "api"}},
    "spec": {
        "nodeName": "n1", "restartPolicy": "Always", "priority": 5, "nodeSelector": {"a": "b"}, "overhead": {"cpu": "1m"},
        "containers": [{"resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80, "protocol": "TCP"}], "readinessProbe": {}}],
        "initContainers": [{"restartPolicy": "Always"}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}]}}},
    },
    "status": {
        "phase": "Running", "containerStatuses": [
            {"name": "c", "restartCount": 1, "state": {"running": {"startedAt": "2026"}}, "lastState": {"terminated": {"containerID": "x"}}}
        ],
    },
}  # fmt: skip
LEASE = {"metadata": {"resourceVersion": "5"}, "spec": {"renewTime": "2026-11-20T19:52:15.1Z"}}
METRICS = b"""# TYPE kubelet_runtime_operations_total counter
kubelet_runtime_operations_total{operation_type="pull_image"} 1.2e+06
kubelet_runtime_operations_errors_total{operation_type="pull_image"} 3
"""
VECTOR = {
    "status": "success", "warnings": ["w"],
    "data": {"resultType": "vector", "result": [{"metric": {"node": "n1"}, "value": [1, "0.5"]}, {"metric": {}, "value": [1, "NaN"]}]},
}  # fmt: skip
SCALAR = {"status": "success", "data": {"resultType": "scalar", "result": [1, "+Inf"]}}
SILENCES = [{"id": "a-1", "comment": "rollout r1: waves", "status": {"state": "active"}}]
_CALL = messages.VerbCall("n", 1.0, Target_("n1", "10.0.0.1"), "status", b"x", sudo=True, deadline=5.0)
_EXCHANGE = messages.encode_exchange(messages.Exchange("p", "c", 1, ("n0",), 1.0, (_CALL,)))
_ANSWER = messages.CallAnswer("n", RemoteAnswer(0, b"x", b"", started=True), 0.5)
_REPLY = messages.encode_reply("p", 1.0, [messages.encode_answer(_ANSWER)])
_IDENTITY = messages.encode_identity(messages.WorkerIdentity("p", "1", "d", 1.0))
ALERTS = [{"fingerprint": "f", "labels": {"alertname": "Down", "node": "n1"}, "status": {"state": "active"}}]
CREDENTIAL = {
    "kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
    "status": {"token": CANARY, "expirationTimestamp": "2026-11-20T19:52:15Z"},
}  # fmt: skip
PLUGIN = Plugin("/bin/plugin", (), {}, "client.authentication.k8s.io/v1", cluster=None, hint="", place="k:1:1")


class _Says(HttpEndpoint):
    """Answers every request with the same bytes."""

    def __init__(self, body: bytes, status: int) -> None:  # no connection is made: there is nothing to set up
        self._body, self._status = body, status

    def ask(
        self, method: str, url: str, path: str, *, timeout: float, headers: Mapping[str, str] | None = None,
        body: bytes = b"", most: int = 0,
    ) -> HttpAnswer:  # fmt: skip
        return HttpAnswer(self._status, {}, self._body)


def _decoded(read: Callable[[object], object]) -> Callable[[bytes], tuple[str, ...]]:
    def reading(data: bytes) -> tuple[str, ...]:
        read(decoded(HttpAnswer(200, {}, data)))
        return (str(refusal(HttpAnswer(500, {}, data))),)

    return reading


def _decoded_by(decode: Callable[[bytes], object]) -> Callable[[bytes], tuple[str, ...]]:
    def reading(data: bytes) -> tuple[str, ...]:
        decode(data)
        return ()

    return reading


def _nodes(document: object) -> tuple[str, ...]:
    items: list[LiveNode] = [live_node(entry) for entry in listing(mapping(document, "list").get("items"), "items")]
    found = nodes_from_api(
        items, FromKubernetes.model_validate({"kubeconfig": "k", "rackLabel": "rack", "zoneLabel": "zone"})
    )
    return tuple(node.name for node in found.nodes)


def _pods(document: object) -> None:
    for entry in listing(mapping(document, "list").get("items"), "items"):
        over(entry), pod(entry), placed_pod(entry)


def _prometheus(data: bytes) -> tuple[str, ...]:
    wanted = PrometheusQuery("q", "", at_most=1.0)
    texts = [judge_samples(wanted, Prometheus(_Says(data, 200)).query("", "up", 1.0))[1]]
    return tuple(texts)


def _refused_query(data: bytes) -> tuple[str, ...]:
    Prometheus(_Says(data, 400)).query("", "up", 1.0)
    return ()


def _alertmanager(data: bytes) -> tuple[str, ...]:
    return (judge_alerts(Alertmanager(_Says(data, 200)).firing("", (), 1.0), ())[1],)


def _silence(data: bytes) -> tuple[str, ...]:
    return (Alertmanager(_Says(data, 200)).silence("", Silence("node", "a|b", 5.0, "me", "why"), 1.0),)


def _standing(data: bytes) -> tuple[str, ...]:
    return Alertmanager(_Says(data, 200)).standing("", "rollout", 1.0)


def _configz(document: object) -> None:
    shown_as_planned(CHANGE, mapping(document, "configz"))


def _page(data: bytes) -> tuple[str, ...]:
    page = Page(200 + len(data) % 2, data.decode("utf-8", "replace"))
    return (judge_page(HttpQuery("http://x", 200, "ok"), page)[1],)


def _plugin(data: bytes) -> tuple[str, ...]:
    credentials._credential(PLUGIN, data)  # noqa: SLF001 - a program for each example would take minutes
    return ()


def _metrics(data: bytes) -> tuple[str, ...]:
    pull_counter(data.decode("utf-8", "replace"))
    return ()


def _list(*items: object) -> Callable[[], tuple[bytes, ...]]:
    return lambda: (json.dumps({"items": items}).encode(), json.dumps({"items": None}).encode())


TARGETS = (
    Target("api-nodes", _decoded(_nodes), _list(NODE, NODE)),
    Target("api-pods", _decoded(_pods), _list(POD)),
    Target("api-lease", _decoded(lease), lambda: (json.dumps(LEASE).encode(),)),
    Target("kubelet-metrics", _metrics, lambda: (METRICS,)),
    Target("prometheus", _prometheus, lambda: (json.dumps(VECTOR).encode(), json.dumps(SCALAR).encode())),
    Target("prometheus-refusal", _refused_query, lambda: (b'{"status":"error","error":"parse error: x"}', b"<html>")),
    Target("alertmanager", _alertmanager, lambda: (json.dumps(ALERTS).encode(),)),
    Target("alertmanager-silence", _silence, lambda: (b'{"silenceID": "a-1"}',)),
    Target("alertmanager-silences", _standing, lambda: (json.dumps(SILENCES).encode(),)),
    Target(
        "configz", _decoded(_configz), lambda: (b'{"maxPods": 110, "evictionHard": {"a": "5%"}}', b'{"maxPods": null}')
    ),
    Target("worker-exchange", _decoded_by(messages.decode_exchange), lambda: (_EXCHANGE,), (ValueError,)),
    Target("worker-reply", _decoded_by(messages.decode_reply), lambda: (_REPLY,), (ValueError,)),
    Target("worker-identity", _decoded_by(messages.decode_identity), lambda: (_IDENTITY,), (ValueError,)),
    Target("worker-names", _decoded_by(messages.decode_names), lambda: (messages.encode_names(["n1"]),), (ValueError,)),
    Target("http-page", _page, lambda: (b"all ok", b"<html>no</html>")),
    Target("exec-plugin", _plugin, lambda: (json.dumps(CREDENTIAL).encode(), b"{}")),
)
