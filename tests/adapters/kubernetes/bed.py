"""Nodes, leases and pods on an API server for a test: on a real server, or replayed from its recorded answers.

With a real server everything is created in it and read from it over TLS. ``ROLLOUT_RECORD=1`` adds a proxy that records
every answer. Without a server the recorded answers are used, in the same order, and creating objects does nothing.
"""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.config_maps import ApiConfigMaps
from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig
from rollout.features.drain.client import DrainingCluster
from tests.adapters.kubernetes.apiserver import READER, WRITER, ApiServer
from tests.controllers import until

RECORDED = Path(__file__).parent / "recorded"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Bed:
    """See the module. ``name`` is the test's. Each test has its own namespace and nodes."""

    def __init__(self, name: str, folder: Path, server: ApiServer | None, stack: ExitStack) -> None:
        self.namespace = name
        self._name, self._folder, self._server, self._stack = name, folder, server, stack
        self._recording = server is not None and bool(os.environ.get("ROLLOUT_RECORD"))
        self._talk: list[Any] = []
        self._cached: dict[str, Any] = {}
        self.node = f"n-{name}"[:50].rstrip("-")
        if server is None:
            self._talk = json.loads((RECORDED / f"{name}.json").read_text())
        self.proxy = ""
        if server is None or self._recording:
            door = _Door(("127.0.0.1", 0), _Handler)
            door.bed = self
            threading.Thread(target=door.serve_forever, args=(0.01,), daemon=True).start()
            stack.callback(door.server_close)
            stack.callback(door.shutdown)
            self.proxy = f"http://127.0.0.1:{door.server_address[1]}"
        self._make("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    # Requests of the client.

    def kubeconfig(self, token: str = READER) -> Path:
        path = self._folder / f"{token}.kubeconfig"
        cluster: dict[str, str] = {"server": self.proxy}
        if self._server is not None and not self._recording:
            authority = base64.b64encode(self._server.authority).decode()
            cluster = {"server": self._server.url, "certificate-authority-data": authority}
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1", "kind": "Config", "current-context": "c",
                    "clusters": [{"name": "k", "cluster": cluster}], "users": [{"name": "u", "user": {"token": token}}],
                    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                }
            )
        )  # fmt: skip
        return path

    def cluster(self, token: str = READER) -> DrainingCluster:
        cluster = DrainingCluster(ApiClient(load_kubeconfig(str(self.kubeconfig(token)))))
        self._stack.callback(cluster.close)
        return cluster

    def config_maps(self, token: str = WRITER) -> ApiConfigMaps:
        client = ApiClient(load_kubeconfig(str(self.kubeconfig(token))))
        self._stack.callback(client.close)
        return ApiConfigMaps(client)

    def answer(self, method: str, path: str, body: bytes, token: str, kind: str) -> tuple[int, bytes]:
        """For the proxy: ask the server and record the answer, or read the recorded answer."""
        if self._server is None:
            asked = f"{method} {path}"
            at = next((at for at, entry in enumerate(self._talk) if entry["asked"] == asked), None)
            if at is not None:
                self._cached[asked] = entry = self._talk.pop(at)
            else:  # a list of the store that was not recorded: the cache had the same
                entry = self._cached[f"{asked}&resourceVersion=0"]
            return entry["status"], json.dumps(entry["answer"]).encode()
        status, said = self._server.ask(method, path, json.loads(body) if body else None, token, kind)
        self._talk.append({"asked": f"{method} {path}", "status": status, "answer": _trimmed(json.loads(said))})
        return status, said

    def close(self) -> None:
        if self._recording:
            text = ",\n".join(json.dumps(entry, sort_keys=True) for entry in self._talk)
            (RECORDED / f"{self._name}.json").write_text(f"[\n{text}\n]\n")

    # Objects on the server.

    def has_node(self, ready: str = "True", reason: str = "KubeletReady", message: str = "ok") -> None:
        self._make("POST", "/api/v1/nodes", {"metadata": {"name": self.node, "labels": {"rack": "r1"}}})
        self.is_ready(ready, reason, message)

    def is_ready(self, ready: str, reason: str = "KubeletReady", message: str = "ok") -> None:
        condition = {"type": "Ready", "status": ready, "reason": reason, "message": message}
        status = {
            "conditions": [condition], "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": _INFO,
        }  # fmt: skip
        self._make("PATCH", f"/api/v1/nodes/{self.node}/status", {"status": status})

    def has_lease(self) -> None:
        spec = {"holderIdentity": self.node, "leaseDurationSeconds": 40, "renewTime": "2026-11-20T12:00:00.000000Z"}
        self._make("POST", LEASES, {"metadata": {"name": self.node}, "spec": spec})

    def renews(self, at: str = "2026-11-20T12:00:10.000000Z") -> None:
        self._make("PATCH", f"{LEASES}/{self.node}", {"spec": {"renewTime": at}})

    def has_pod(self, name: str, policy: str = "Always", **words: Any) -> None:
        """``words``: parts of its metadata and its status; ``spec``: additions to its spec."""
        spec = {
            "nodeName": self.node, "restartPolicy": policy, "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "app", "image": "reg.example/app:1"}], **words.pop("spec", {}),
        }  # fmt: skip
        meta = {key: words.pop(key) for key in _META & words.keys()}
        self._make("POST", f"{self._pods}", {"metadata": {"name": name, **meta}, "spec": spec})
        self.pod_is(name, **(words or running()))

    def pod_is(self, name: str, **status: Any) -> None:
        self._make("PATCH", f"{self._pods}/{name}/status", {"status": status})
        self._settle(name)

    def deletes(self, name: str) -> None:
        """Delete the pod as a user would: it ends within its grace period."""
        self._make("DELETE", f"{self._pods}/{name}")
        self._settle(name)

    def removes(self, name: str, *, held: bool = False) -> None:
        """Delete the pod as its kubelet does when the containers have ended. ``held``: a finalizer keeps the object."""
        self._make("DELETE", f"{self._pods}/{name}?gracePeriodSeconds=0")
        if self._server is not None:
            assert (self._server.ask("GET", f"{self._pods}/{name}")[0] == 200) is held

    def has_config_map(self, name: str, **data: str) -> None:
        self._make("POST", f"/api/v1/namespaces/{self._name}/configmaps", {"metadata": {"name": name}, "data": data})

    def uid_of_config_map(self, name: str) -> str:
        """As another user reads it."""
        asked = f"/api/v1/namespaces/{self._name}/configmaps/{name}"
        if self._server is not None:
            return str(json.loads(self._server.ask("GET", asked)[1])["metadata"]["uid"])
        answers = (entry["answer"] for entry in self._talk if entry["asked"] == f"GET {asked}")
        return str(next(answers)["metadata"]["uid"])

    def edits_config_map(self, name: str, **data: str) -> None:
        """As another user does."""
        self._make("PATCH", f"/api/v1/namespaces/{self._name}/configmaps/{name}", {"data": data})

    def seals_config_map(self, name: str) -> None:
        self._make("PATCH", f"/api/v1/namespaces/{self._name}/configmaps/{name}", {"immutable": True})

    def is_cordoned(self) -> None:
        self._make("PATCH", f"/api/v1/nodes/{self.node}", {"spec": {"unschedulable": True}})

    def has_budget(self, name: str, needs: int, allows: int, *, looked_at: bool = True) -> None:
        """A budget for pods of the app ``web``, with the status that the disruption controller would write."""
        path = f"/apis/policy/v1beta1/namespaces/{self._name}/poddisruptionbudgets"
        spec = {"minAvailable": needs, "selector": {"matchLabels": {"app": "web"}}}
        self._make("POST", path, {"metadata": {"name": name}, "spec": spec})
        status = {
            "disruptionsAllowed": allows, "currentHealthy": needs + allows, "desiredHealthy": needs,
            "expectedPods": needs + allows, "observedGeneration": 1 if looked_at else 0,
        }  # fmt: skip
        self._make("PATCH", f"{path}/{name}/status", {"status": status})

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self._name}/pods"

    def _make(self, method: str, path: str, document: Any = None) -> None:
        if self._server is not None:
            status, body = self._server.ask(method, path, document)
            assert status in (200, 201), body

    def _settle(self, name: str) -> None:
        """Wait until the server's cache contains what was created: gates read the cache."""
        if self._server is None:
            return
        path = f"{self._pods}/{name}"
        ask = self._server.ask
        until(lambda: ask("GET", path)[1] == ask("GET", f"{path}?resourceVersion=0")[1], 60, "its cache follows")


_META = frozenset({"labels", "annotations", "ownerReferences", "finalizers"})
_INFO = {
    "kubeletVersion": "v1.20.2", "containerRuntimeVersion": "docker://19.3.15", "osImage": "Debian GNU/Linux 12",
    "architecture": "amd64", "bootID": "b", "kernelVersion": "6.1", "kubeProxyVersion": "v1.20.2", "machineID": "m",
    "operatingSystem": "linux", "systemUUID": "s",
}  # fmt: skip


def running(identity: str = "aaaa", restarts: int = 0, since: str = "2026-11-20T08:00:00Z") -> dict[str, Any]:
    """The status of a pod with one running container."""
    state = {"running": {"startedAt": since}}
    return {"phase": "Running", "containerStatuses": [_container(state, identity, restarts)]}


def waiting(reason: str, message: str = "", identity: str = "", restarts: int = 0) -> dict[str, Any]:
    """The status of a pod with one waiting container."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Running" if identity else "Pending", "containerStatuses": [_container(state, identity, restarts)]}


def _container(state: Any, identity: str, restarts: int) -> dict[str, Any]:
    found = {
        "name": "app", "image": "reg.example/app:1", "imageID": "", "ready": "running" in state, "restartCount": restarts,
        "state": {"running": None, "waiting": None, "terminated": None} | state,
    }  # fmt: skip
    return found | ({"containerID": f"docker://{identity}"} if identity else {})


def _trimmed(document: Any) -> Any:
    """The document without ``managedFields``, which are not used here."""
    if isinstance(document, dict):
        return {key: _trimmed(value) for key, value in document.items() if key != "managedFields"}
    return [_trimmed(value) for value in document] if isinstance(document, list) else document


class _Door(ThreadingHTTPServer):
    bed: Bed
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    server: _Door

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        status, body = self.server.bed.answer(
            self.command, self.path, self.rfile.read(length), token, self.headers.get("Content-Type") or ""
        )
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def do_PATCH(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


@contextmanager
def bed(name: str, folder: Path, server: ApiServer | None) -> Iterator[Bed]:
    with ExitStack() as stack:
        made = Bed(name, folder, server, stack)
        yield made
        made.close()
