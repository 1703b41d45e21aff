"""A cluster's API server for the bed's nodes: their Nodes, leases and pods. After a restart it refuses everything for a moment."""

from __future__ import annotations

import itertools
import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rollout.core.run.state import NodeRecord
from tests.adapters.web import Reply, Seen, web
from tests.chaos.fault import Fault

PODS = 2
"""The pods of each node. With ``maxPods: 1`` one of them would be rejected, so every node is drained first."""
NO_TOKENS = 0.3
"""The share of the time in which refusals are 401, in one variant: the server loads its tokens, then fills its RBAC cache."""
Object = dict[str, Any]


@dataclass
class NodeObject:
    """A Node and its pods."""

    pods: list[str]
    cordoned: bool = False
    notes: dict[str, str] = field(default_factory=dict)
    version: int = 1


class ApiServer:
    """Thread-safe enough: each request changes one Node, and a Node has one writer."""

    def __init__(self, names: list[str]) -> None:
        self.nodes = {name: NodeObject([f"web-{n}-{name}" for n in range(PODS)]) for name in names}
        self._clock = itertools.count(100)
        self._known = self._warm = 0.0

    def restart(self, unknown: float, cold: float) -> None:
        """Refuse every request: with 401 for ``unknown`` seconds, then with 403 for ``cold`` seconds."""
        self._known = time.monotonic() + unknown
        self._warm = self._known + cold

    def answer(self, seen: Seen) -> Reply:
        now = time.monotonic()
        if now < self._warm:
            return _refusal(401 if now < self._known else 403)
        parts = urlsplit(seen.path)
        words = parts.path.strip("/").split("/")
        if seen.method == "GET":
            return self._read(words, parse_qs(parts.query).get("fieldSelector", [""])[0])
        return self._write(words, json.loads(seen.body))

    def _read(self, words: list[str], selector: str) -> Reply:
        match words:
            case ["version"]:
                return _found({"major": "1", "minor": "36", "gitVersion": "v1.36.1"})
            case ["api", "v1"]:
                return _found({"resources": [{"name": "pods/eviction", "group": "policy", "version": "v1"}]})
            case ["api", "v1", "nodes"]:
                return self._listed([self._node(name) for name in self.nodes])
            case ["api", "v1", "nodes", name]:
                return _found(self._node(name))
            case [*_, "leases", name]:
                return _found(self._lease(name))
            case ["api", "v1", "pods"]:
                names = [name for name in self.nodes if selector == f"spec.nodeName={name}"] or list(self.nodes)
                return self._listed([self._pod(name, pod) for name in names for pod in self.nodes[name].pods])
        return _refusal(404)

    def _write(self, words: list[str], body: Object) -> Reply:
        match words:
            case [*_, "selfsubjectaccessreviews"]:
                allowed = body["spec"]["resourceAttributes"].get("subresource") != "proxy"
                return _found({"status": {"allowed": allowed}}, 201)
            case [*_, "pods", pod, "eviction"]:
                return self._evict(pod)
            case ["api", "v1", "nodes", name]:
                return self._patch(name, body)
        return _refusal(404)

    def _patch(self, name: str, wanted: Object) -> Reply:
        node = self.nodes[name]
        if wanted["metadata"]["resourceVersion"] != str(node.version):
            return _refusal(409)
        if "unschedulable" in wanted.get("spec", {}):
            node.cordoned = bool(wanted["spec"]["unschedulable"])
        notes = {**node.notes, **wanted["metadata"].get("annotations", {})}
        node.notes = {key: value for key, value in notes.items() if value is not None}
        node.version += 1
        return _found(self._node(name))

    def _evict(self, pod: str) -> Reply:
        """Its replacement stays elsewhere."""
        for node in self.nodes.values():
            if pod in node.pods:
                node.pods.remove(pod)
                return _found({"kind": "Status", "status": "Success"}, 201)
        return _refusal(404, {"kind": "pods", "name": pod})

    def _listed(self, items: list[Object]) -> Reply:
        return _found({"metadata": {"resourceVersion": str(next(self._clock))}, "items": items})

    def _node(self, name: str) -> Object:
        node = self.nodes[name]
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "ok",
            "lastHeartbeatTime": _now(),
        }
        info = {"kubeletVersion": "v1.36.1", "containerRuntimeVersion": "containerd://2.0.0"}
        return {
            "metadata": {"name": name, "uid": name, "resourceVersion": str(node.version), "annotations": node.notes},
            "spec": {"unschedulable": True} if node.cordoned else {},
            "status": {
                "conditions": [ready], "nodeInfo": info,
                "capacity": {"pods": "110", "cpu": "8", "memory": "32Gi"},
                "allocatable": {"pods": "110", "cpu": "8", "memory": "32Gi"},
            },
        }  # fmt: skip

    def _lease(self, name: str) -> Object:
        version = str(next(self._clock))
        return {
            "metadata": {"name": name, "resourceVersion": version},
            "spec": {"holderIdentity": name, "renewTime": _now()},
        }

    def _pod(self, node: str, pod: str) -> Object:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
        begun = "2026-11-20T08:00:00Z"
        container = {
            "name": "app", "containerID": f"containerd://{pod}", "restartCount": 0, "image": "app:1", "imageID": "",
            "ready": True, "state": {"running": {"startedAt": begun}},
        }  # fmt: skip
        return {
            "metadata": {
                "name": pod, "namespace": "shop", "uid": pod, "ownerReferences": [owner], "creationTimestamp": begun,
            },
            "spec": {"nodeName": node, "restartPolicy": "Always", "containers": [{"name": "app", "image": "app:1"}]},
            "status": {"phase": "Running", "startTime": begun, "containerStatuses": [container]},
        }  # fmt: skip


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _found(document: Object, code: int = 200) -> Reply:
    return Reply(code, json.dumps(document).encode(), (("Content-Type", "application/json"),))


def _refusal(code: int, absent: Object | None = None) -> Reply:
    about = {"reason": "NotFound", "details": absent or {}} if code == 404 else {}
    return _found(
        {"kind": "Status", "status": "Failure", "message": f"refused with {code}", **about, "code": code}, code
    )


class ColdApiServer(Fault):
    """The nodes' API server restarts: it answers 401 and 403 to everybody for some seconds. The nodes are drained,
    and their gates ask it.
    """

    explains = frozenset({"not-confirmed-in-time", "too-late"})
    """A gate that cannot be asked is UNKNOWN, and the guard may fire before the server answers."""
    _server: ApiServer

    def prepare(self) -> None:
        self._stack = ExitStack()
        web_server = self._stack.enter_context(web())
        self._server = ApiServer([node.name for node in self.site.nodes])
        web_server.answer = self._server.answer
        self.site.plan_with(_kubeconfig(self.site.folder / "kubeconfig", web_server.url))

    def strike(self) -> None:
        unknown = self.draw.seconds * NO_TOKENS if "401" in self.draw.variant else 0.0
        self._server.restart(unknown, self.draw.seconds - unknown)

    def unexplained(self, record: NodeRecord) -> str:
        """A refusal that lasts for seconds is not final: no drain ends by it, though a resume would repeat the drain."""
        if "[not-drained]" in self.site.said():
            return "a drain ended by a refusal that did not last"
        drained = any(len(node.pods) < PODS for node in self._server.nodes.values())
        return super().unexplained(record) or ("" if drained else "no pod was evicted")

    def left(self) -> list[str]:
        """Cordons, and marks of cordons."""
        found = self._server.nodes.items()
        return [f"{name}: cordoned, {node.notes}" for name, node in found if node.cordoned or node.notes]

    def end(self) -> None:
        self.site.plan_with(None)
        self._stack.close()


def _kubeconfig(path: Path, url: str) -> Path:
    document = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }  # fmt: skip
    path.write_text(json.dumps(document), encoding="utf-8")
    path.chmod(0o600)
    return path
