"""The API's Pods as ``core.model.placed``: what a kubelet looks at when it admits one, and nothing else of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollout.adapters.json_answers import listing, mapping, pairs, text
from rollout.core.model.placed import Ask, HostPort, Pairs, PlacedPod, Requirement, Toleration
from rollout.errors import RemoteError

Json = Mapping[str, Any]
SYSTEM_CRITICAL = 2_000_000_000
"""The lowest priority of the system's own classes (kubernetes pkg/apis/scheduling/types.go)."""


def over(document: object) -> bool:
    """Whether the pod has ended."""
    status = mapping(mapping(document, "a Pod").get("status"), "status")
    return status.get("phase") in ("Succeeded", "Failed")


def static(meta: Json) -> bool:
    """Whether a pod with this metadata is the kubelet's own, and its object only a mirror."""
    notes = mapping(meta.get("annotations"), "annotations")
    return "kubernetes.io/config.mirror" in notes or notes.get("kubernetes.io/config.source", "api") != "api"


def placed_pod(document: object) -> PlacedPod:
    found = mapping(document, "a Pod")
    meta, spec = mapping(found.get("metadata"), "metadata"), mapping(found.get("spec"), "spec")
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
    )


def _ask(entry: Json, *, init: bool) -> Ask:
    ports = (mapping(port, "a port") for port in listing(entry.get("ports"), "ports"))
    taken = tuple(_host_port(port) for port in ports if port.get("hostPort"))
    return Ask(_requests(entry), init, init and entry.get("restartPolicy") == "Always", taken)


def _host_port(port: Json) -> HostPort:
    number = port.get("hostPort")
    if type(number) is not int:
        raise RemoteError("bad-answer", "hostPort is no number")
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
        said = mapping(entry, "a toleration")
        operator = _word(said, "operator") or "Equal"
        yield Toleration(_word(said, "key"), operator, _word(said, "value"), _word(said, "effect"))


def _word(document: Json, key: str) -> str:
    return text(document.get(key), key)
