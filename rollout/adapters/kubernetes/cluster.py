"""The ``Cluster`` port on a real API server."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from rollout.adapters.http import listing, mapping, text
from rollout.adapters.kubernetes.client import ApiClient
from rollout.adapters.kubernetes.credentials import PLUGIN_SECONDS
from rollout.adapters.kubernetes.objects import lease, live_node, pod, pull_counter
from rollout.adapters.kubernetes.pods import over, placed_pod, planned_pod
from rollout.core.model.live import Lease, LiveNode, PullCounter, Sight
from rollout.core.model.pods import PlacedPod
from rollout.core.text.terminal import printable
from rollout.errors import RemoteError

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
PAGE = 500
MOST_PAGES = 200
LIST_SECONDS = 60.0
FEW_NODES = 20
"""Up to this many nodes, pods are listed one node at a time."""

T = TypeVar("T")
NOT_OVER = "status.phase!=Succeeded,status.phase!=Failed"
REVIEW_SECONDS = PLUGIN_SECONDS + 15.0
"""A plugin that hangs is ended before: otherwise it would go on after the command."""
Right = tuple[str, str, str, str]
"""Verb, group, resource, namespace (``""``: all)."""
NEEDED: tuple[Right, ...] = (
    ("get", "", "nodes", ""),
    ("list", "", "nodes", ""),
    ("list", "", "pods", ""),
    ("get", "coordination.k8s.io", "leases", "kube-node-lease"),
)
NEEDED_TO_COUNT_PULLS: tuple[Right, ...] = (("get", "", "nodes/proxy", ""),)
MOST_METRICS = 16 << 20
"""Bytes of a kubelet's metrics. One with 110 pods has some 300 kB."""


class KubernetesCluster:
    """Reads Nodes, leases and pods. Thread-safe."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def nodes(self) -> tuple[LiveNode, ...]:
        """In pages."""
        return tuple(self._every("/api/v1/nodes", {}, live_node))

    def pods(self, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        """The pods of these nodes that have not ended. For a few nodes, one list per node from the server's cache, as a
        kubelet does. For more, all pods of the cluster in pages, of which only the needed fields are kept.
        """
        if len(nodes) <= FEW_NODES:
            until = time.monotonic() + LIST_SECONDS
            lists = [self._pods_of(node, until) for node in nodes]
            return tuple(planned_pod(entry) for entries in lists for entry in entries if not over(entry))
        pods = self._every("/api/v1/pods", {"fieldSelector": NOT_OVER}, planned_pod)
        return tuple(each for each in pods if each.node in nodes)

    def _pods_of(self, node: str, until: float) -> list[Any]:
        return items(self._pod_list(node, until))

    def _pod_list(self, node: str, until: float, *, stored: bool = False) -> Mapping[str, Any]:
        cached = {} if stored else {"resourceVersion": "0"}
        query = urlencode({"fieldSelector": f"spec.nodeName={node}", **cached})
        return whole_list(self._client.get(f"/api/v1/pods?{query}", _left(until)), f"the pods of {node}")

    def events(self, pod: str) -> Iterator[Any]:
        """Events of the cluster (``pod`` ``""``), or of one pod, ``namespace/name``; as the API has them, page by page."""
        query = {"fieldSelector": f"involvedObject.name={pod.partition('/')[2]}"} if pod else {}
        return self._pages(f"/api/v1{_in_namespace(pod)}/events", query, time.monotonic() + LIST_SECONDS)

    def pod_documents(self, node: str, pod: str) -> Iterator[Any]:
        """Pods of a node (``""``: all), or one pod, ``namespace/name``; as the API has them, page by page."""
        field = f"metadata.name={pod.partition('/')[2]}" if pod else f"spec.nodeName={node}" if node else ""
        query = {"fieldSelector": field} if field else {}
        return self._pages(f"/api/v1{_in_namespace(pod)}/pods", query, time.monotonic() + LIST_SECONDS)

    def node_documents(self, nodes: Collection[str]) -> Iterator[Any]:
        """Nodes as the API has them; of a few each by its name, else all, page by page. One that the API does not have is left out."""
        until = time.monotonic() + LIST_SECONDS
        if len(nodes) > FEW_NODES:
            yield from self._pages("/api/v1/nodes", {}, until)
            return
        for node in nodes:
            try:
                yield self._client.get(f"/api/v1/nodes/{quote(node, safe='')}", _left(until))
            except RemoteError as error:
                if error.reference != "not-found":
                    raise

    def _every(self, path: str, query: Mapping[str, str], made: Callable[[Any], T]) -> list[T]:
        """A list in pages; when its pages expire midway it is restarted once."""
        until = time.monotonic() + LIST_SECONDS
        try:
            return [made(entry) for entry in self._pages(path, query, until)]
        except RemoteError as error:
            if error.reference != "http-410":
                raise
        return [made(entry) for entry in self._pages(path, query, until)]

    def _pages(self, path: str, query: Mapping[str, str], until: float) -> Iterator[Any]:
        """The entries of a list, read page by page; ``RemoteError`` ``too-large`` behind the last page that is read."""
        going_on = ""
        for _ in range(MOST_PAGES):
            asked = urlencode({**query, "limit": PAGE, **({"continue": going_on} if going_on else {})})
            page = self._client.get(f"{path}?{asked}", _left(until))
            yield from items(page)
            going_on = text(mapping(page.get("metadata"), "metadata").get("continue"), "continue")
            if not going_on:
                return
        raise RemoteError("too-large", f"more than {PAGE * MOST_PAGES} entries of {path}")

    def configz(self, node: str, timeout: float) -> Mapping[str, Any]:
        """The configuration in force on the node's kubelet, through the API server."""
        answer = self._client.get(f"/api/v1/nodes/{quote(node, safe='')}/proxy/configz", timeout)
        shown = mapping(answer.get("kubeletconfig"), "kubeletconfig")
        if not shown:  # no kubelet runs without one
            raise RemoteError("bad-answer", "the answer has no kubeletconfig")
        return shown

    def pull_counter(self, node: str, timeout: float) -> PullCounter:
        """From the kubelet's own metrics, through the API server."""
        path = f"/api/v1/nodes/{quote(node, safe='')}/proxy/metrics"
        return pull_counter(self._client.page(path, timeout, MOST_METRICS))

    def look(self, node: str, timeout: float, newer_than: int | None = None) -> Sight:
        """Pods come from the server's cache (resourceVersion 0, as a kubelet asks): for one node's pods from the store,
        the server reads every pod. A cache that no pod of the cluster has changed since may also be one that hangs: then the store is read.
        """
        until = time.monotonic() + timeout
        name = quote(node, safe="")
        document = self._node(node, until)
        listed = self._pod_list(node, until)
        if newer_than is not None and _version(listed) <= newer_than:
            listed = self._pod_list(node, until, stored=True)
        return Sight(document, self._lease(name, until), tuple(map(pod, items(listed))), _version(listed))

    def placed(self, node: str, timeout: float) -> tuple[LiveNode, tuple[PlacedPod, ...]]:
        """The Node, then its pods, from the server's cache as above."""
        until = time.monotonic() + timeout
        document = self._node(node, until)
        return document, tuple(placed_pod(entry) for entry in self._pods_of(node, until) if not over(entry))

    def _node(self, node: str, until: float) -> LiveNode:
        try:
            found = live_node(self._client.get(f"/api/v1/nodes/{quote(node, safe='')}", _left(until)))
        except RemoteError as error:
            if error.reference == "not-found":
                raise RemoteError("no-such-node", f"the API server knows no Node {node}") from None
            raise
        if found.name != node:
            raise RemoteError("bad-answer", f"the answer is not the Node {node}")
        return found

    def _lease(self, name: str, until: float) -> Lease | None:
        try:
            return lease(self._client.get(f"{LEASES}/{name}", _left(until)))
        except RemoteError as error:
            if error.reference == "not-found":
                return None
            raise

    def missing_rights(self) -> tuple[str, ...]:
        """Checked by the server (SelfSubjectAccessReview), which every authenticated user may request."""
        return self.missing(NEEDED)

    def missing_to_count_pulls(self) -> tuple[str, ...]:
        return self.missing(NEEDED_TO_COUNT_PULLS)

    def missing(self, needed: tuple[Right, ...], name: str = "") -> tuple[str, ...]:
        """Those of these rights that the kubeconfig lacks. ``name``: for one object of that name."""
        missing = tuple(
            f"{verb} {resource}" + (f" in {namespace}" if namespace else "") + why
            for verb, group, resource, namespace in needed
            if (why := self._why_not(verb, group, resource, namespace, name)) is not None
        )
        if not missing:
            self._client.rights_were_checked()
        return missing

    def _why_not(self, verb: str, group: str, resource: str, namespace: str, name: str) -> str | None:
        """``None``: it may. Else what the server could not check, if anything: it may be that its authorizer is away."""
        kind, _, below = resource.partition("/")
        attributes = {
            "verb": verb, "group": group, "resource": kind, "subresource": below, "namespace": namespace, "name": name,
        }  # fmt: skip
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {key: value for key, value in attributes.items() if value}},
        }
        answer: Any = self._client.post(REVIEWS, review, REVIEW_SECONDS)
        status = mapping(answer.get("status"), "status")
        if not isinstance(status.get("allowed"), bool):
            raise RemoteError("bad-answer", "the answer does not have what this user may do")
        if status["allowed"]:
            return None
        unchecked = printable(text(status.get("evaluationError"), "evaluationError"), 200)
        return f" (the server could not check all of it: {unchecked})" if unchecked else ""

    def close(self) -> None:
        self._client.close()


def _in_namespace(pod: str) -> str:
    return f"/namespaces/{quote(pod.partition('/')[0], safe='')}" if pod else ""


def items(document: Mapping[str, Any]) -> list[Any]:
    """A list's entries. An answer without a list is an error, not an empty list: a gate without data must not pass."""
    if "items" not in document:
        raise RemoteError("bad-answer", "the answer is not a list: it has no items")
    return listing(document["items"], "items")


def whole_list(answer: object, what: str) -> Mapping[str, Any]:
    """The list in an answer to a request without pages. One that continues lacks entries."""
    listed = mapping(answer, f"the list of {what}")
    if mapping(listed.get("metadata"), "metadata").get("continue"):
        raise RemoteError("bad-answer", f"the list of {what} is incomplete")
    return listed


def _version(listed: Mapping[str, Any]) -> int:
    """The list's resourceVersion; 0 if it is not a number."""
    version = text(mapping(listed.get("metadata"), "metadata").get("resourceVersion"), "resourceVersion")
    return int(version) if version.isdecimal() else 0


def _left(until: float, now: Callable[[], float] = time.monotonic) -> float:
    return max(until - now(), 0.001)
