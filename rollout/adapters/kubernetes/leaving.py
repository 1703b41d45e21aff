"""The API's Pods as ``core.model.draining``: how they end, and which of them a drain leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollout.adapters.json_answers import listing, mapping, text
from rollout.adapters.kubernetes.placed import over, static
from rollout.core.model.draining import Ending, LeavingPod
from rollout.errors import RemoteError

Json = Mapping[str, Any]
DEFAULT_GRACE = 30


def leaving_pod(document: object) -> LeavingPod:
    found = mapping(document, "a Pod")
    meta, spec = mapping(found.get("metadata"), "metadata"), mapping(found.get("spec"), "spec")
    deleted = text(meta.get("deletionTimestamp"), "deletionTimestamp")
    controller = _controller(meta)
    return LeavingPod(
        uid=_given(meta, "uid"),
        name=f"{_given(meta, 'namespace')}/{_given(meta, 'name')}",
        grace=_number(spec, "terminationGracePeriodSeconds", DEFAULT_GRACE),
        deletion_grace=_number(meta, "deletionGracePeriodSeconds", 0) if deleted else None,
        deleted=deleted,
        stays="static"
        if static(meta)
        else "daemon-set"
        if controller == "DaemonSet"
        else "over"
        if over(found)
        else "",
        local=any(
            mapping(entry, "a volume").get("emptyDir") is not None for entry in listing(spec.get("volumes"), "volumes")
        ),
        controlled=bool(controller),
        held_by=tuple(text(entry, "a finalizer") for entry in listing(meta.get("finalizers"), "finalizers")),
        containers=tuple(_endings(spec)),
    )


def _controller(meta: Json) -> str:
    """The kind of what makes the pod anew, ``""``: nothing does."""
    owners = [mapping(entry, "an owner") for entry in listing(meta.get("ownerReferences"), "ownerReferences")]
    return next((text(owner.get("kind"), "kind") for owner in owners if owner.get("controller") is True), "")


def _endings(spec: Json) -> Iterator[Ending]:
    """Those that are still there when the pod ends: containers, and init containers that are sidecars, in their order."""
    for entry in listing(spec.get("initContainers"), "initContainers"):
        container = mapping(entry, "a container")
        if container.get("restartPolicy") == "Always":
            yield _ending(container, sidecar=True)
    for entry in listing(spec.get("containers"), "containers"):
        yield _ending(mapping(entry, "a container"), sidecar=False)


def _ending(container: Json, *, sidecar: bool) -> Ending:
    hook = mapping(mapping(container.get("lifecycle"), "lifecycle").get("preStop"), "preStop")
    sleeps = _number(mapping(hook.get("sleep"), "sleep"), "seconds", 0)
    return Ending(_given(container, "name"), bool(hook), max(sleeps, 0), sidecar)


def _given(document: Json, key: str) -> str:
    found = text(document.get(key), key)
    if not found:
        raise RemoteError("bad-answer", f"{key} is not given")
    return found


def _number(document: Json, key: str, default: int) -> int:
    found = document.get(key)
    if found is None:
        return default
    if type(found) is not int:
        raise RemoteError("bad-answer", f"{key} is no number")
    return found
