"""What can be asked of the lab's API, by path: status codes, lists in pieces and refusals are those of a kube-apiserver."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rollout.lab import changes, objects, pod_objects
from rollout.lab.objects import Object
from rollout.lab.rest import Lookup, Query, Reply, not_found, status


def answer(lookup: Lookup, method: str, path: str, body: bytes) -> Reply:
    """One request."""
    lookup.replicas.settle(lookup.see)
    parts = urlsplit(path)
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    for verb, pattern, handler in _ROUTES:
        found = pattern.fullmatch(parts.path)
        if found and verb == method:
            return handler(Query(lookup, found.groupdict(), options, body))
    return status(404, "NotFound", "the server could not find the requested resource")


def _version(query: Query) -> Reply:
    major, minor, *_ = query.lookup.version.lstrip("v").split(".")
    known = {"major": major, "minor": minor, "gitVersion": query.lookup.version, "platform": "linux/amd64"}
    return Reply(200, known)


def _kinds(query: Query) -> Reply:
    """Discovery, of what clients look for in it."""
    version = "v1" if query.lookup.minor >= changes.STABLE else "v1beta1"
    eviction = {
        "name": "pods/eviction", "singularName": "", "namespaced": True, "group": "policy", "version": version,
        "kind": "Eviction", "verbs": ["create"],
    }  # fmt: skip
    return Reply(200, {"kind": "APIResourceList", "groupVersion": "v1", "resources": [eviction]})


def _nodes(query: Query) -> Reply:
    return _listed(query, "NodeList", "v1", query.lookup.names, lambda name: [objects.node(query.lookup.see(name))])


def _node(query: Query) -> Reply:
    if query.name not in query.lookup.names:
        return not_found("nodes", query.name)
    return _one("Node", "v1", objects.node(query.lookup.see(query.name)))


def _leases(query: Query) -> Reply:
    def find(name: str) -> list[Object]:
        found = objects.lease(query.lookup.see(name))
        return [found] if found else []

    return _listed(query, "LeaseList", "coordination.k8s.io/v1", query.lookup.names, find)


def _lease(query: Query) -> Reply:
    found = objects.lease(query.lookup.see(query.name)) if query.name in query.lookup.names else None
    if found is None:
        return not_found("leases.coordination.k8s.io", query.name)
    return _one("Lease", "coordination.k8s.io/v1", found)


def _pods(query: Query) -> Reply:
    names: Sequence[str] = query.lookup.names
    said = [part for part in query.options.get("fieldSelector", "").split(",") if part]
    ended = {part.removeprefix("status.phase!=") for part in said if part.startswith("status.phase!=")}
    wanted = dict(part.split("=", 1) for part in said if not part.startswith("status.phase!=") and "=" in part)
    if wanted.keys() - {"spec.nodeName"}:
        return status(400, "BadRequest", f"field label not supported: {min(wanted.keys() - {'spec.nodeName'})}")
    placed = bool(wanted)
    if wanted:
        name = wanted["spec.nodeName"].lstrip("=")
        names = [name] if name in names else []
    namespace = query.words.get("namespace")

    def find(name: str) -> list[Object]:
        seen, replicas = query.lookup.see(name), query.lookup.replicas
        found = pod_objects.all_pods(seen, replicas.on(name))
        if not placed:
            found += [pod_objects.unplaced(seen, each) for each in replicas.waiting(name)]
        there = [pod for pod in found if namespace in {None, pod["metadata"]["namespace"]}]
        return [pod for pod in there if pod["status"]["phase"] not in ended]

    return _listed(query, "PodList", "v1", names, find)


def _configz(query: Query) -> Reply:
    if query.name not in query.lookup.names:
        return not_found("nodes", query.name)
    found = objects.configz(query.lookup.see(query.name))
    if found is None:
        address = query.lookup.see(query.name).spec.known_as
        why = f"error trying to reach service: dial tcp {address}:10250: connect: connection refused"
        return status(503, "ServiceUnavailable", why)
    return Reply(200, found)


def _may(query: Query) -> Reply:
    asked: Any = json.loads(query.body or b"{}")
    kind = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}}
    return Reply(
        201, {**kind, "spec": asked.get("spec", {}), "status": {"allowed": True, "reason": "the lab allows all"}}
    )


def _listed(query: Query, kind: str, version: str, names: Sequence[str], find: Callable[[str], list[Object]]) -> Reply:
    """A list in pieces of ``limit``; ``continue`` says behind which node, and how many of its objects, the next one begins."""
    limit, token = query.options.get("limit", "0"), query.options.get("continue", "")
    try:
        first, skipped = map(int, base64.urlsafe_b64decode(token).split(b",")) if token else (0, 0)
        size = int(limit) or sys.maxsize
    except ValueError:
        return status(400, "BadRequest", "continue key is not valid")
    found = _from(names, find, first, skipped)
    items = [item for _, item in islice(found, size)]
    rest = next(found, None)
    newest = max((item["metadata"]["resourceVersion"] for item in items), key=int, default="1")
    metadata: Object = {"resourceVersion": newest}
    if rest is not None:
        metadata["continue"] = base64.urlsafe_b64encode(b"%d,%d" % rest[0]).decode()
    return Reply(200, {"kind": kind, "apiVersion": version, "metadata": metadata, "items": items})


def _from(
    names: Sequence[str], find: Callable[[str], list[Object]], first: int, skipped: int
) -> Iterator[tuple[tuple[int, int], Object]]:
    """Objects from a place on, each with its own place."""
    for number in range(first, len(names)):
        found = find(names[number])
        for index in range(skipped if number == first else 0, len(found)):
            yield (number, index), found[index]


def _one(kind: str, version: str, found: Object) -> Reply:
    return Reply(200, {"kind": kind, "apiVersion": version, **found})


_NAME = r"(?P<name>[a-z0-9.-]+)"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_ROUTES: tuple[tuple[str, re.Pattern[str], Callable[[Query], Reply]], ...] = tuple(
    (verb, re.compile(pattern), handler)
    for verb, pattern, handler in (
        ("GET", "/version", _version),
        ("GET", "/api/v1", _kinds),
        ("GET", "/api/v1/nodes", _nodes),
        ("GET", f"/api/v1/nodes/{_NAME}", _node),
        ("PATCH", f"/api/v1/nodes/{_NAME}", changes.patch_node),
        ("GET", f"/api/v1/nodes/{_NAME}/proxy/configz", _configz),
        ("GET", "/api/v1/pods", _pods),
        ("GET", "/api/v1/namespaces/(?P<namespace>[a-z0-9-]+)/pods", _pods),
        ("POST", f"/api/v1/namespaces/(?P<namespace>[a-z0-9-]+)/pods/{_NAME}/eviction", changes.evict),
        ("GET", _LEASES, _leases),
        ("GET", f"{_LEASES}/{_NAME}", _lease),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", _may),
    )
)
