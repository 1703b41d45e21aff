"""The API's Pods as ``core.model.pods``: only the fields that a kubelet's admission uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rollout.adapters.http import listing, mapping, pairs, text
from rollout.adapters.kubernetes.objects import controller
from rollout.core.model.pods import (
    ContainerEnd,
    ContainerRequest,
    HostPort,
    LeavingPod,
    Pairs,
    PlacedPod,
    Requirement,
    Toleration,
)
from rollout.errors import RemoteError
from rollout.kubelet.restarts.termination import exec_sleep

# A pod for planning: its requests to the node, and its termination.


def planned_pod(document: object) -> PlacedPod:
    return replace(placed_pod(document), ends=leaving_pod(document))


# The API's Pods as ``core.model.pods``: their termination, and which of them a drain leaves.


DEFAULT_GRACE = 30


def leaving_pod(document: object) -> LeavingPod:
    pod = mapping(document, "a Pod")
    meta, spec = mapping(pod.get("metadata"), "metadata"), mapping(pod.get("spec"), "spec")
    deleted = text(meta.get("deletionTimestamp"), "deletionTimestamp")
    kind = controller(meta)
    return LeavingPod(
        uid=_given(meta, "uid"),
        name=f"{_given(meta, 'namespace')}/{_given(meta, 'name')}",
        grace=_number(spec, "terminationGracePeriodSeconds", DEFAULT_GRACE),
        deletion_grace=_number(meta, "deletionGracePeriodSeconds", 0) if deleted else None,
        deleted=deleted,
        stays="static" if static(meta) else "daemon-set" if kind == "DaemonSet" else "over" if over(pod) else "",
        local=any(
            mapping(entry, "a volume").get("emptyDir") is not None for entry in listing(spec.get("volumes"), "volumes")
        ),
        controlled=bool(kind),
        held_by=tuple(text(entry, "a finalizer") for entry in listing(meta.get("finalizers"), "finalizers")),
        containers=tuple(_endings(spec)),
    )


def _endings(spec: Json) -> Iterator[ContainerEnd]:
    """Containers that run until the pod ends: containers and sidecar init containers, in their order."""
    for entry in listing(spec.get("initContainers"), "initContainers"):
        container = mapping(entry, "a container")
        if container.get("restartPolicy") == "Always":
            yield _ending(container, sidecar=True)
    for entry in listing(spec.get("containers"), "containers"):
        yield _ending(mapping(entry, "a container"), sidecar=False)


def _ending(container: Json, *, sidecar: bool) -> ContainerEnd:
    hook = mapping(mapping(container.get("lifecycle"), "lifecycle").get("preStop"), "preStop")
    command = listing(mapping(hook.get("exec"), "exec").get("command"), "command")
    sleeps = _number(mapping(hook.get("sleep"), "sleep"), "seconds", 0) or exec_sleep(
        [text(word, "a word") for word in command]
    )
    acts = bool(hook.get("sleep")) and not command
    return ContainerEnd(_given(container, "name"), bool(hook), max(sleeps, 0), sidecar, acts)


def _given(document: Json, key: str) -> str:
    value = text(document.get(key), key)
    if not value:
        raise RemoteError("bad-answer", f"{key} is missing")
    return value


def _number(document: Json, key: str, default: int) -> int:
    value = document.get(key)
    if value is None:
        return default
    if type(value) is not int:
        raise RemoteError("bad-answer", f"{key} is not a number")
    return value


Json = Mapping[str, Any]
SYSTEM_CRITICAL = 2_000_000_000
"""The lowest priority of the system's own classes (kubernetes pkg/apis/scheduling/types.go)."""


def over(document: object) -> bool:
    """Whether the pod has ended."""
    status = mapping(mapping(document, "a Pod").get("status"), "status")
    return status.get("phase") in ("Succeeded", "Failed")


def static(meta: Json) -> bool:
    """Whether a pod with this metadata is static, and its object only a mirror."""
    notes = mapping(meta.get("annotations"), "annotations")
    return "kubernetes.io/config.mirror" in notes or notes.get("kubernetes.io/config.source", "api") != "api"


def placed_pod(document: object) -> PlacedPod:
    pod = mapping(document, "a Pod")
    meta, spec = mapping(pod.get("metadata"), "metadata"), mapping(pod.get("spec"), "spec")
    own = static(meta)
    priority = spec.get("priority")
    containers = [mapping(entry, "a container") for entry in listing(spec.get("containers"), "containers")]
    first = [mapping(entry, "a container") for entry in listing(spec.get("initContainers"), "initContainers")]
    return PlacedPod(
        node=_word(spec, "nodeName"),
        name=f"{_word(meta, 'namespace')}/{_word(meta, 'name')}",
        created=_word(meta, "creationTimestamp"),
        asks=(*(_ask(entry, init=False) for entry in containers), *(_ask(entry, init=True) for entry in first)),
        requests=_requests(spec),
        overhead=pairs(spec, "overhead"),
        selector=pairs(spec, "nodeSelector"),
        terms=_terms(spec),
        tolerations=tuple(_tolerations(spec)),
        static=own,
        critical=own or (isinstance(priority, int) and priority >= SYSTEM_CRITICAL),
        deleting=bool(meta.get("deletionTimestamp")),
        probed=any(entry.get("readinessProbe") for entry in (*containers, *first)),
        own_users=spec.get("hostUsers") is False,
    )


def _ask(entry: Json, *, init: bool) -> ContainerRequest:
    ports = (mapping(port, "a port") for port in listing(entry.get("ports"), "ports"))
    taken = tuple(_host_port(port) for port in ports if port.get("hostPort"))
    return ContainerRequest(_requests(entry), init, init and entry.get("restartPolicy") == "Always", taken)


def _host_port(port: Json) -> HostPort:
    number = port.get("hostPort")
    if type(number) is not int:
        raise RemoteError("bad-answer", "hostPort is not a number")
    return HostPort(_word(port, "hostIP"), _word(port, "protocol"), number)


def _requests(entry: Json) -> Pairs:
    return pairs(mapping(entry.get("resources"), "resources"), "requests")


def _terms(spec: Json) -> tuple[tuple[Requirement, ...], ...] | None:
    affinity = mapping(mapping(spec.get("affinity"), "affinity").get("nodeAffinity"), "nodeAffinity")
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return None
    terms = listing(mapping(required, "node affinity").get("nodeSelectorTerms"), "nodeSelectorTerms")
    return tuple(tuple(_requirements(mapping(term, "a term"))) for term in terms)


def _requirements(term: Json) -> Iterator[Requirement]:
    for key, of_field in (("matchExpressions", False), ("matchFields", True)):
        for entry in listing(term.get(key), key):
            wanted = mapping(entry, "an expression")
            values = tuple(text(value, "a value") for value in listing(wanted.get("values"), "values"))
            yield Requirement(_word(wanted, "key"), _word(wanted, "operator"), values, of_field)


def _tolerations(spec: Json) -> Iterator[Toleration]:
    for entry in listing(spec.get("tolerations"), "tolerations"):
        toleration = mapping(entry, "a toleration")
        operator = _word(toleration, "operator") or "Equal"
        yield Toleration(_word(toleration, "key"), operator, _word(toleration, "value"), _word(toleration, "effect"))


def _word(document: Json, key: str) -> str:
    return text(document.get(key), key)
