"""The paths of the lab's API: status codes, lists in pieces and refusals are those of a kube-apiserver."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rollout.lab import objects, pod_objects, pods
from rollout.lab.config_maps import LabConfigMap
from rollout.lab.objects import NodeMoment, Object
from rollout.lab.rest import Lookup, Query, Reply, not_found, status

# Changes that clients may make in the lab's API: a Node's cordon and annotations, and that pods are evicted.


STABLE = 22
"""From this minor on evictions are ``policy/v1``; before, only ``policy/v1beta1``."""
_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def patch_node(query: Query) -> Reply:
    """A merge patch, if the Node still has the resourceVersion in the patch."""
    if query.name not in query.lookup.names:
        return not_found("nodes", query.name)
    wanted, seen = _body(query), query.lookup.see(query.name)
    meta, spec = _part(wanted, "metadata"), _part(wanted, "spec")
    notes = _part(meta, "annotations")
    if wanted.keys() - _KNOWN or meta.keys() - {"resourceVersion", "annotations"} or spec.keys() - {"unschedulable"}:
        return status(
            422, "Invalid", f"the lab changes a Node's cordon and its annotations, and nothing else: {wanted}"
        )
    now = objects.node(seen)["metadata"]["resourceVersion"]
    if meta.get("resourceVersion", now) != now:
        return _conflict("nodes", query.name, _MODIFIED)
    state = seen.machine.pods
    state.cordoned = bool(spec["unschedulable"]) if "unschedulable" in spec else state.cordoned
    state.notes = {key: value for key, value in {**state.notes, **notes}.items() if value is not None}
    state.changes += 1
    return Reply(200, {"kind": "Node", "apiVersion": "v1", **objects.node(query.lookup.see(query.name))})


def config_map(query: Query) -> Reply:
    found = _config_map(query)
    return not_found("configmaps", query.name) if found is None else Reply(200, found.document)


def patch_config_map(query: Query) -> Reply:
    """A merge patch of its data and annotations, if it still has the resourceVersion in the patch."""
    found, wanted = _config_map(query), _body(query)
    if found is None:
        return not_found("configmaps", query.name)
    meta = _part(wanted, "metadata")
    if meta.get("resourceVersion", str(found.version)) != str(found.version):
        return _conflict("configmaps", query.name, _MODIFIED)
    found.merge(_part(wanted, "data"), _part(meta, "annotations"))
    return Reply(200, found.document)


def _config_map(query: Query) -> LabConfigMap | None:
    named = (query.words["namespace"], query.name)
    return next((each for each in query.lookup.config_maps if (each.namespace, each.name) == named), None)


def evict(query: Query) -> Reply:
    """Evict if budgets allow it; accepted does not mean ended."""
    wanted = _body(query)
    version = wanted.get("apiVersion")
    if version not in ("policy/v1beta1", *(("policy/v1",) if query.lookup.minor >= STABLE else ())):
        why = f'no kind "Eviction" is registered for version "{version}" in scheme "the lab\'s"'
        return status(400, "BadRequest", why)
    answer = _there(query)
    if answer is None:
        return not_found("pods", query.name)
    seen, pod = answer
    uid = _part(_part(wanted, "deleteOptions"), "preconditions").get("uid", pod["metadata"]["uid"])
    if uid != pod["metadata"]["uid"]:
        known = pod["metadata"]["uid"]
        why = f"the UID in the precondition ({uid}) does not match the UID in record ({known})."
        return _conflict("Pod", query.name, f"{why} The object might have been deleted and then recreated")
    return _refused(seen, pod) or _delete(query, seen, pod)


def _there(query: Query) -> tuple[NodeMoment, Object] | None:
    """The pod with this name, and its current or last node."""
    lookup, name, namespace = query.lookup, query.name, query.words["namespace"]
    replica = lookup.replicas.named(name)
    places = [replica.node or replica.home] if replica else [node for node in lookup.names if name.endswith(f"-{node}")]
    for place in places:
        seen = lookup.see(place)
        pods = [*pod_objects.all_pods(seen, lookup.replicas.on(place))]
        pods += [pod_objects.unplaced(seen, each) for each in lookup.replicas.waiting(place)]
        for pod in pods:
            if (pod["metadata"]["namespace"], pod["metadata"]["name"]) == (namespace, name):
                return seen, pod
    return None


def _refused(seen: NodeMoment, pod: Object) -> Reply | None:
    """The budgets' objection. Budgets protect running replicas; a blocking budget allows pods that are not ready."""
    name, kind = pods.NAMES[1][1], seen.machine.pods.ending
    if pod["status"]["phase"] != "Running" or pod["spec"]["containers"][0]["name"] != name:
        return None
    ready = seen.ready == "True"
    if kind == pods.BLOCKED_TWICE:
        return status(500, "InternalError", _TWO_BUDGETS)
    if kind == pods.BLOCKED and ready:
        message = f"The disruption budget {name} needs 1 healthy pods and has 1 currently"
        reply = status(429, "TooManyRequests", _BUDGET)
        return Reply(
            429, {**reply.document, "details": {"causes": [{"reason": "DisruptionBudget", "message": message}]}}
        )
    return None


def _delete(query: Query, seen: NodeMoment, pod: Object) -> Reply:
    replicas, state = query.lookup.replicas, seen.machine.pods
    replica = replicas.named(query.name)
    if replica is not None:
        replicas.delete(replica, seen)
    elif pod["spec"]["containers"][0]["name"] == pods.NAMES[0][1]:
        state.daemons += 1  # its DaemonSet recreates it at once, in the same place
    else:
        state.pulling = False
    return Reply(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


def _conflict(kind: str, name: str, why: str) -> Reply:
    return status(409, "Conflict", f'Operation cannot be fulfilled on {kind} "{name}": {why}')


def _body(query: Query) -> Mapping[str, Any]:
    try:
        document = json.loads(query.body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _part(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


_KNOWN = frozenset({"kind", "apiVersion", "metadata", "spec"})


def answer(lookup: Lookup, method: str, path: str, body: bytes) -> Reply:
    """One request."""
    lookup.replicas.settle(lookup.see)
    parts = urlsplit(path)
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    for verb, pattern, handler in _ROUTES:
        match = pattern.fullmatch(parts.path)
        if match and verb == method:
            return handler(Query(lookup, match.groupdict(), options, body))
    return status(404, "NotFound", "the server could not find the requested resource", {})


def _version(query: Query) -> Reply:
    major, minor, *_ = query.lookup.version.lstrip("v").split(".")
    known = {"major": major, "minor": minor, "gitVersion": query.lookup.version, "platform": "linux/amd64"}
    return Reply(200, known)


def _kinds(query: Query) -> Reply:
    """Discovery: only the parts that clients read."""
    version = "v1" if query.lookup.minor >= STABLE else "v1beta1"
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
        lease = objects.lease(query.lookup.see(name))
        return [lease] if lease else []

    return _listed(query, "LeaseList", "coordination.k8s.io/v1", query.lookup.names, find)


def _lease(query: Query) -> Reply:
    lease = objects.lease(query.lookup.see(query.name)) if query.name in query.lookup.names else None
    if lease is None:
        return not_found("leases.coordination.k8s.io", query.name)
    return _one("Lease", "coordination.k8s.io/v1", lease)


def _pods(query: Query) -> Reply:
    names: Sequence[str] = query.lookup.names
    parts = [part for part in query.options.get("fieldSelector", "").split(",") if part]
    ended = {part.removeprefix("status.phase!=") for part in parts if part.startswith("status.phase!=")}
    wanted = dict(part.split("=", 1) for part in parts if not part.startswith("status.phase!=") and "=" in part)
    if wanted.keys() - _SELECTED:
        return status(400, "BadRequest", f"field label not supported: {min(wanted.keys() - _SELECTED)}")
    placed = "spec.nodeName" in wanted
    if placed:
        name = wanted["spec.nodeName"].lstrip("=")
        names = [name] if name in names else []
    namespace = query.words.get("namespace")

    def find(name: str) -> list[Object]:
        seen, replicas = query.lookup.see(name), query.lookup.replicas
        pods = pod_objects.all_pods(seen, replicas.on(name))
        if not placed:
            pods += [pod_objects.unplaced(seen, each) for each in replicas.waiting(name)]
        there = [pod for pod in pods if namespace in {None, pod["metadata"]["namespace"]}]
        there = [
            pod for pod in there if wanted.get("metadata.name", pod["metadata"]["name"]) == pod["metadata"]["name"]
        ]
        return [pod for pod in there if pod["status"]["phase"] not in ended]

    return _listed(query, "PodList", "v1", names, find)


_SELECTED = frozenset({"spec.nodeName", "metadata.name"})


def _events(query: Query) -> Reply:
    field, _, name = query.options.get("fieldSelector", "").partition("=")
    if field not in ("", "involvedObject.name"):
        return status(400, "BadRequest", f"field label not supported: {field}")
    namespace = query.words.get("namespace")

    def find(node: str) -> list[Object]:
        about = ((event, event["involvedObject"]) for event in pod_objects.events(query.lookup.see(node)))
        return [each for each, pod in about if name in ("", pod["name"]) and namespace in {None, pod["namespace"]}]

    return _listed(query, "EventList", "v1", query.lookup.names, find)


def _configz(query: Query) -> Reply:
    if query.name not in query.lookup.names:
        return not_found("nodes", query.name)
    configz = objects.configz(query.lookup.see(query.name))
    return _no_kubelet(query) if configz is None else Reply(200, configz)


def _metrics(query: Query) -> Reply:
    if query.name not in query.lookup.names:
        return not_found("nodes", query.name)
    metrics = objects.metrics(query.lookup.see(query.name))
    return Reply(200, {}, metrics) if metrics else _no_kubelet(query)


def _no_kubelet(query: Query) -> Reply:
    address = query.lookup.see(query.name).spec.known_as
    why = f"error trying to reach service: dial tcp {address}:10250: connect: connection refused"
    return status(503, "ServiceUnavailable", why)


def _may(query: Query) -> Reply:
    asked: Any = json.loads(query.body or b"{}")
    kind = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}}
    return Reply(
        201, {**kind, "spec": asked.get("spec", {}), "status": {"allowed": True, "reason": "the lab allows all"}}
    )


def _listed(query: Query, kind: str, version: str, names: Sequence[str], find: Callable[[str], list[Object]]) -> Reply:
    """A list in pieces of ``limit``; ``continue`` has the end of the last page: node and number of its objects."""
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
    """Objects from a position on, each with its position."""
    for number in range(first, len(names)):
        item = find(names[number])
        for index in range(skipped if number == first else 0, len(item)):
            yield (number, index), item[index]


def _one(kind: str, version: str, found: Object) -> Reply:
    return Reply(200, {"kind": kind, "apiVersion": version, **found})


_NAME = r"(?P<name>[a-z0-9.-]+)"
_CONFIG_MAPS = "/api/v1/namespaces/(?P<namespace>[a-z0-9-]+)/configmaps"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_ROUTES: tuple[tuple[str, re.Pattern[str], Callable[[Query], Reply]], ...] = tuple(
    (verb, re.compile(pattern), handler)
    for verb, pattern, handler in (
        ("GET", "/version", _version),
        ("GET", "/api/v1", _kinds),
        ("GET", "/api/v1/nodes", _nodes),
        ("GET", f"/api/v1/nodes/{_NAME}", _node),
        ("PATCH", f"/api/v1/nodes/{_NAME}", patch_node),
        ("GET", f"/api/v1/nodes/{_NAME}/proxy/configz", _configz),
        ("GET", f"/api/v1/nodes/{_NAME}/proxy/metrics", _metrics),
        ("GET", "/api/v1/pods", _pods),
        ("GET", "/api/v1/namespaces/(?P<namespace>[a-z0-9-]+)/pods", _pods),
        ("GET", f"{_CONFIG_MAPS}/{_NAME}", config_map),
        ("PATCH", f"{_CONFIG_MAPS}/{_NAME}", patch_config_map),
        ("GET", "/api/v1/events", _events),
        ("GET", "/api/v1/namespaces/(?P<namespace>[a-z0-9-]+)/events", _events),
        ("POST", f"/api/v1/namespaces/(?P<namespace>[a-z0-9-]+)/pods/{_NAME}/eviction", evict),
        ("GET", _LEASES, _leases),
        ("GET", f"{_LEASES}/{_NAME}", _lease),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", _may),
    )
)
