"""A Pod of the API as facts: containers that wait, and the beginning and the end of the pod.

While a pull hangs, a kubelet at ``-v=2`` logs nothing and its ``Pulling`` event expires after an hour. The pod's status is
then the only sign. Fields: ``PodStatus`` and ``ContainerStatus`` of v1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rollout.core.text.terminal import printable
from rollout.features.diagnose.rules.container_errors import REASONS, unconfigured
from rollout.features.diagnose.rules.facts import API_CLOCK, LONGEST_TEXT, BareFact, Fact, Kind, SourceLine
from rollout.features.diagnose.rules.moments import moment
from rollout.features.diagnose.rules.pod_events import inspected, is_rejection, not_pulled
from rollout.features.diagnose.rules.troubles import troubles_in

NOT_ASKED = ("InvalidImageName", "ErrImageNeverPull")
"""Reasons of a container of which the kubelet does not ask the runtime for the image."""
FAILED = ("ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed")
"""Reasons of a container that lacks its image, with the runtime's error."""
Document = Mapping[str, Any]
NOT_STARTED = ("ContainerCreating", "PodInitializing")
"""Reasons of a container that may still lack its image."""


def pod_facts(document: Document, file: str, number: int) -> Iterator[Fact]:
    """``number``: the pod's place in the list. What is not as the API writes it is passed over."""
    meta, spec, status = (_map(document.get(key)) for key in ("metadata", "spec", "status"))
    pod, node = f"{_word(meta, 'namespace')}/{_word(meta, 'name')}", _word(spec, "nodeName")
    for at, found in (*_life(pod, meta, status, placed=bool(node)), *_containers(pod, spec, status)):
        text = printable(f"Pod {pod}: {_TOLD[found.kind].format_map(found.fields)}", LONGEST_TEXT)
        yield Fact(found.kind, at, node, API_CLOCK, SourceLine(file, number, text), found.fields)


_Timed = tuple[float | None, BareFact]
_STATUSES = ("initContainerStatuses", "containerStatuses")
_ALL_STATUSES = (*_STATUSES, "ephemeralContainerStatuses")


def _life(pod: str, meta: Document, status: Document, *, placed: bool) -> Iterator[_Timed]:
    created, deleted = moment(_word(meta, "creationTimestamp")), moment(_word(meta, "deletionTimestamp"))
    if created is not None:
        yield created, BareFact(Kind.CREATED, {"pod": pod})
    grace = meta.get("deletionGracePeriodSeconds")
    if deleted is not None:  # the API writes when the grace period ends
        seconds = grace if isinstance(grace, int) else 0
        held = ", ".join(name for name in _list(meta.get("finalizers")) if isinstance(name, str))
        states = (
            {}
            if not placed
            else {
                "running": ", ".join(_in_state(status, "running")),
                "ended": ", ".join(_in_state(status, "terminated")),
            }
        )
        fields = {"pod": pod, "grace": str(seconds), "finalizers": held, **states}
        yield deleted - seconds, BareFact(Kind.ACCEPTED, fields)
    if is_rejection(_word(status, "reason")):
        yield (
            None,
            BareFact(
                Kind.REJECTED, {"pod": pod, "reason": _word(status, "reason"), "message": _word(status, "message")}
            ),
        )


def _in_state(status: Document, state: str) -> Iterator[str]:
    """The containers in this state."""
    for key in _ALL_STATUSES:
        for each in map(_map, _list(status.get(key))):
            if state in _map(each.get("state")):
                yield _word(each, "name")


def _newest(status: Document) -> float | None:
    """The newest time of the pod's status: the pod was printed after it."""
    times = [moment(_word(each, "lastTransitionTime")) for each in map(_map, _list(status.get("conditions")))]
    for key in _ALL_STATUSES:
        for each in map(_map, _list(status.get(key))):
            state = _map(each.get("state"))
            times += [
                moment(_word(_map(state.get(name)), at))
                for name, at in (("running", "startedAt"), ("terminated", "finishedAt"))
            ]
    return max((at for at in times if at is not None), default=None)


def _containers(pod: str, spec: Document, status: Document) -> Iterator[_Timed]:
    images = {
        _word(each, "name"): _word(each, "image")
        for key in ("initContainers", "containers")
        for each in map(_map, _list(spec.get(key)))
    }
    placed = next(
        (moment(_word(each, "lastTransitionTime")) for each in map(_map, _list(status.get("conditions")))
         if (each.get("type"), each.get("status")) == ("PodScheduled", "True")), None,
    )  # fmt: skip
    newest = _newest(status)
    if newest is not None:
        yield newest, BareFact(Kind.CHANGED_STATE, {"pod": pod})
    for key in _STATUSES:
        for each in map(_map, _list(status.get(key))):
            name, state = _word(each, "name"), _map(each.get("state"))
            about = {"pod": pod, "container": name}
            yield from _waits({**about, "image": images.get(name, "")}, placed, _map(state.get("waiting")))
            yield from _ended(about, _map(state.get("terminated")))


def _waits(about: Mapping[str, str], placed: float | None, waiting: Document) -> Iterator[_Timed]:
    reason, message = _word(waiting, "reason"), _word(waiting, "message")
    if reason in NOT_STARTED:
        yield placed, BareFact(Kind.WAITING, {**about, "reason": reason})
    elif reason in REASONS and message:
        troubles = list(troubles_in(message))
        for trouble in troubles:
            fields = {**trouble.fields, "by": "status", "pod": about["pod"], "cid": "", "reason": reason}
            yield None, BareFact(Kind.TROUBLE, {**fields, "container": about["container"], "error": message})
        if not troubles:
            yield None, unconfigured(about["pod"], about["container"], reason, message, "status")
    elif reason in NOT_ASKED and (why := not_pulled(message)):
        yield None, BareFact(Kind.PULL_FAILED, {**about, **why})
    elif reason == "ImageInspectError" and (lacking := inspected(message)):
        if lacking.kind is Kind.PULL_FAILED:
            yield None, BareFact(Kind.PULL_FAILED, {**lacking.fields, **about})
    elif reason in FAILED:
        yield None, BareFact(Kind.PULL_FAILED, {**about, "error": message})
    elif reason == "ImagePullBackOff":
        yield None, BareFact(Kind.BACK_OFF, about)
        _, cut, error = message.partition(": ErrImagePull: ")  # from 1.32 on
        if cut:
            yield None, BareFact(Kind.PULL_FAILED, {**about, "error": error})


def _ended(about: Mapping[str, str], ended: Document) -> Iterator[_Timed]:
    at = moment(_word(ended, "finishedAt"))
    if at is not None:
        id_, status = _word(ended, "containerID").rpartition("://")[2], ended.get("exitCode")
        yield at, BareFact(Kind.ENDED, {**about, "id": id_, "status": str(status) if isinstance(status, int) else ""})


_TOLD = {
    Kind.CREATED: "created",
    Kind.ACCEPTED: "deletion accepted, grace period {grace} s",
    Kind.REJECTED: "rejected: {reason}: {message}",
    Kind.WAITING: "container {container} waits: {reason}, image {image}",
    Kind.PULL_FAILED: "container {container} waits for image {image}: {error}",
    Kind.UNCONFIGURED: "container {container} waits: {reason}: {error}",
    Kind.TROUBLE: "container {container} waits: {reason}: {error}",
    Kind.BACK_OFF: "container {container} waits: ImagePullBackOff, image {image}",
    Kind.ENDED: "container {container} ended with status {status}",
    Kind.CHANGED_STATE: "its status last changed",
}


def _map(value: object) -> Document:
    return value if isinstance(value, dict) else {}


def _word(document: Document, name: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
