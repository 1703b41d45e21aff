"""What clients may change in the lab's API: a Node's cordon and annotations, and that pods are evicted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rollout.lab import objects, pod_objects, pods
from rollout.lab.objects import Object, Seen
from rollout.lab.rest import Query, Reply, not_found, status

STABLE = 22
"""The minor from which on evictions are ``policy/v1``; before, only ``policy/v1beta1`` is known."""
_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


def patch_node(query: Query) -> Reply:
    """A merge patch, if the Node is still of the resourceVersion that it names."""
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
        why = "the object has been modified; please apply your changes to the latest version and try again"
        return _conflict("nodes", query.name, why)
    state = seen.machine.pods
    state.cordoned = bool(spec["unschedulable"]) if "unschedulable" in spec else state.cordoned
    state.notes = {key: value for key, value in {**state.notes, **notes}.items() if value is not None}
    state.changes += 1
    return Reply(200, {"kind": "Node", "apiVersion": "v1", **objects.node(query.lookup.see(query.name))})


def evict(query: Query) -> Reply:
    """As far as budgets let it; accepted is not gone."""
    wanted = _body(query)
    version = wanted.get("apiVersion")
    if version not in ("policy/v1beta1", *(("policy/v1",) if query.lookup.minor >= STABLE else ())):
        why = f'no kind "Eviction" is registered for version "{version}" in scheme "the lab\'s"'
        return status(400, "BadRequest", why)
    found = _there(query)
    if found is None:
        return not_found("pods", query.name)
    seen, pod = found
    uid = _part(_part(wanted, "deleteOptions"), "preconditions").get("uid", pod["metadata"]["uid"])
    if uid != pod["metadata"]["uid"]:
        known = pod["metadata"]["uid"]
        why = f"the UID in the precondition ({uid}) does not match the UID in record ({known})."
        return _conflict("Pod", query.name, f"{why} The object might have been deleted and then recreated")
    return _refused(seen, pod) or _delete(query, seen, pod)


def _there(query: Query) -> tuple[Seen, Object] | None:
    """The pod of that name, and the node where it is or was."""
    lookup, name, namespace = query.lookup, query.name, query.words["namespace"]
    replica = lookup.replicas.named(name)
    places = [replica.node or replica.home] if replica else [node for node in lookup.names if name.endswith(f"-{node}")]
    for place in places:
        seen = lookup.see(place)
        found = [*pod_objects.all_pods(seen, lookup.replicas.on(place))]
        found += [pod_objects.unplaced(seen, each) for each in lookup.replicas.waiting(place)]
        for pod in found:
            if (pod["metadata"]["namespace"], pod["metadata"]["name"]) == (namespace, name):
                return seen, pod
    return None


def _refused(seen: Seen, pod: Object) -> Reply | None:
    """What budgets have against it; they look after replicas that run, and one that blocks lets those go that are not ready."""
    name, kind = pods.NAMES[1][1], seen.machine.pods.ending
    if pod["status"]["phase"] != "Running" or pod["spec"]["containers"][0]["name"] != name:
        return None
    ready = seen.ready == "True"
    if kind == pods.BLOCKED_TWICE:
        return status(500, "InternalError", _TWO_BUDGETS)
    if kind == pods.BLOCKED and ready:
        said = f"The disruption budget {name} needs 1 healthy pods and has 1 currently"
        reply = status(429, "TooManyRequests", _BUDGET)
        return Reply(429, {**reply.document, "details": {"causes": [{"reason": "DisruptionBudget", "message": said}]}})
    return None


def _delete(query: Query, seen: Seen, pod: Object) -> Reply:
    replicas, state = query.lookup.replicas, seen.machine.pods
    replica = replicas.named(query.name)
    if replica is not None:
        replicas.delete(replica, seen)
    elif pod["spec"]["containers"][0]["name"] == pods.NAMES[0][1]:
        state.daemons += 1  # its DaemonSet makes it anew at once, where it was
    else:
        state.pulling = False
    return Reply(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


def _conflict(kind: str, name: str, why: str) -> Reply:
    return status(409, "Conflict", f'Operation cannot be fulfilled on {kind} "{name}": {why}')


def _body(query: Query) -> Mapping[str, Any]:
    try:
        found = json.loads(query.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _part(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


_KNOWN = frozenset({"kind", "apiVersion", "metadata", "spec"})
