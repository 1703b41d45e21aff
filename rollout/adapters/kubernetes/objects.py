"""The API's JSON, and a kubelet's metrics, as values of ``core.model.live``: only the used fields, each validated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rollout.adapters.http import listing, mapping, pairs, text
from rollout.core.model.live import Container, Lease, LiveNode, Pod, PullCounter
from rollout.core.text.terminal import printable
from rollout.errors import RemoteError
from rollout.kubelet.node_baseline import is_extended

Json = Mapping[str, Any]
MARK = "rollout/cordoned-by"
"""The Node annotation that names the run of the cordon."""
COUNTER = "rollout/token"
"""The Node annotation with the token counter of the controller that set the cordon."""
MOST_DIGITS = 15
"""Maximum digits of a counter: the agent accepts none from 10**15 on."""
_OPERATIONS = re.compile(
    r'^kubelet_runtime_operations(_errors)?_total\{operation_type="([a-z_]+)"\} (\S+)$', re.MULTILINE
)
"""Requests to the runtime that have ended, and those that failed: names and only label of pkg/kubelet/metrics/metrics.go,
counted in pkg/kubelet/kuberuntime/instrumented_services.go. Their level is ALPHA, so a newer kubelet may rename them.
"""
_PULL = "pull_image"
_MOST_PULLS = 10**9
_STATES = ("running", "waiting", "terminated")
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


def live_node(document: object) -> LiveNode:
    node = mapping(document, "a Node")
    meta, spec, status = (mapping(node.get(key), key) for key in ("metadata", "spec", "status"))
    info = mapping(status.get("nodeInfo"), "nodeInfo")
    conditions = [mapping(entry, "a condition") for entry in listing(status.get("conditions"), "conditions")]
    ready: Json = next((entry for entry in conditions if entry.get("type") == "Ready"), {})
    addresses = (mapping(entry, "an address") for entry in listing(status.get("addresses"), "addresses"))
    labels = mapping(meta.get("labels"), "labels")
    return LiveNode(
        name=_word(meta, "name"),
        uid=_word(meta, "uid"),
        created=_word(meta, "creationTimestamp"),
        addresses=tuple((_word(entry, "type"), _word(entry, "address")) for entry in addresses),
        labels={name: text(value, "a label") for name, value in labels.items()},
        unschedulable=spec.get("unschedulable") is True,
        taints=tuple(_taint(mapping(entry, "a taint")) for entry in listing(spec.get("taints"), "taints")),
        kubelet_version=_word(info, "kubeletVersion"),
        runtime=_word(info, "containerRuntimeVersion"),
        os_image=_word(info, "osImage"),
        ready=_word(ready, "status"),
        ready_message=": ".join(filter(None, (_word(ready, "reason"), _word(ready, "message")))),
        capacity=pairs(status, "capacity"),
        allocatable=pairs(status, "allocatable"),
        cordoned_by=printable(mark(node), 100) if spec.get("unschedulable") is True else "",
        machine_id=_word(info, "machineID"),
        ready_since=_word(ready, "lastTransitionTime"),
        pressures=tuple(
            kind
            for entry in conditions
            if (kind := _word(entry, "type")) in _PRESSURES and entry.get("status") == "True"
        ),
    )


def mark(node: Json) -> str:
    """The run in a Node's annotation, verbatim; ``""``: none."""
    return _note(node, MARK)


def token(node: Json) -> int:
    """The counter next to the mark; ``0``: none or unreadable."""
    written = _note(node, COUNTER)
    readable = written.isascii() and written.isdigit() and len(written) <= MOST_DIGITS
    return int(written) if readable else 0


def _note(node: Json, name: str) -> str:
    meta = mapping(node.get("metadata"), "metadata")
    return _word(mapping(meta.get("annotations"), "annotations"), name)


def lease(document: object) -> Lease:
    lease = mapping(document, "a Lease")
    meta, spec = mapping(lease.get("metadata"), "metadata"), mapping(lease.get("spec"), "spec")
    lasts = spec.get("leaseDurationSeconds")
    return Lease(_word(meta, "resourceVersion"), _word(spec, "renewTime"), lasts if type(lasts) is int else 0)


def pod(document: object) -> Pod:
    pod = mapping(document, "a Pod")
    meta, spec, status = (mapping(pod.get(key), key) for key in ("metadata", "spec", "status"))
    return Pod(
        uid=_word(meta, "uid"),
        name=f"{_word(meta, 'namespace')}/{_word(meta, 'name')}",
        phase=_word(status, "phase"),
        reason=_word(status, "reason"),
        message=_word(status, "message"),
        deleting=bool(meta.get("deletionTimestamp")),
        forever=spec.get("restartPolicy", "Always") == "Always",
        containers=tuple(_containers(spec, status)),
        devices=tuple(dict.fromkeys(_devices(spec))),
        controller=controller(meta),
    )


def controller(meta: Json) -> str:
    """The kind of the controller that makes such pods anew; ``""``: none."""
    owners = [mapping(entry, "an owner") for entry in listing(meta.get("ownerReferences"), "ownerReferences")]
    return next((text(owner.get("kind"), "kind") for owner in owners if owner.get("controller") is True), "")


def _devices(spec: Json) -> Iterator[str]:
    """Extended resources are in the limits: for them requests and limits are the same."""
    for key in ("initContainers", "containers"):
        for entry in listing(spec.get(key), key):
            asked = mapping(mapping(entry, "a container").get("resources"), "resources")
            yield from filter(is_extended, mapping(asked.get("limits"), "limits"))
    if listing(spec.get("resourceClaims"), "resourceClaims"):
        yield "resource claims"


def pull_counter(metrics: str) -> PullCounter:
    """From the text of ``/metrics``. A counter appears with its first request, so a kubelet that has pulled nothing has none.

    ``RemoteError`` if the kubelet counts no request at all: then it counts under another name.
    """
    counts = {(failed, kind): number for failed, kind, number in _OPERATIONS.findall(metrics)}
    if not any(not failed for failed, _ in counts):
        raise RemoteError("bad-answer", "the kubelet's metrics have no kubelet_runtime_operations_total")
    return PullCounter(*(_count(counts.get((failed, _PULL), "0")) for failed in ("", "_errors")))


def _count(written: str) -> int:
    """Go writes large counts as 1.5e+06."""
    try:
        number = float(written)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= _MOST_PULLS:
        raise RemoteError("bad-answer", f"a counter of the kubelet is {printable(written, 40)}")
    return int(number)


def _containers(spec: Json, status: Json) -> Iterator[Container]:
    """A container without a restart policy of its own has the pod's; an init container then is not started again once it has succeeded."""
    pods = _word(spec, "restartPolicy") or "Always"
    for kind, usual in (("initContainer", "OnFailure" if pods == "Always" else pods), ("container", pods)):
        those = (mapping(entry, "a container") for entry in listing(spec.get(f"{kind}s"), f"{kind}s"))
        policies = {_word(entry, "name"): _word(entry, "restartPolicy") or usual for entry in those}
        for entry in listing(status.get(f"{kind}Statuses"), f"{kind}Statuses"):
            found = mapping(entry, "a container")
            yield _container(found, policies.get(_word(found, "name"), usual))


def _container(entry: Json, policy: str) -> Container:
    states = mapping(entry.get("state"), "a state")
    name = next((name for name in _STATES if states.get(name) is not None), "waiting")
    state = mapping(states.get(name), name)
    last = mapping(mapping(entry.get("lastState"), "lastState").get("terminated"), "terminated")
    restarts = entry.get("restartCount", 0)
    if type(restarts) is not int:
        raise RemoteError("bad-answer", "restartCount is not a number")
    return Container(
        name=_word(entry, "name"),
        id=_word(entry, "containerID") or _word(state, "containerID") or _word(last, "containerID"),
        restarts=restarts,
        state=name,
        reason=_word(state, "reason"),
        message=_word(state, "message"),
        since=_word(state, "startedAt")
        if name == "running"
        else _word(state, "finishedAt") or _word(last, "finishedAt"),
        done=name == "terminated" and (policy == "Never" or (policy == "OnFailure" and state.get("exitCode") == 0)),
    )


def _taint(entry: Json) -> str:
    key, value, effect = (_word(entry, name) for name in ("key", "value", "effect"))
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _word(document: Json, key: str) -> str:
    return text(document.get(key), key)
