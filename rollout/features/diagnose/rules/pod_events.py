"""What an event of a pod or a node shows, wherever it was printed. Source: pkg/kubelet/events/event.go and its uses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rollout.features.diagnose.rules.container_errors import SANDBOX, of_event, unconfigured
from rollout.features.diagnose.rules.facts import BareFact, Kind
from rollout.features.diagnose.rules.failed_hooks import failed_hook
from rollout.features.diagnose.rules.troubles import runtime_call, troubles_in

_PULLED = re.compile(
    r'Successfully pulled image "(?P<image>[^"]+)"(?: in (?P<took>[\d.hmnuµs]+))?(?: \((?P<waited>\S+) including waiting\))?'
    r"(?:\. Image size: (?P<size>\d+) bytes)?"
)
_PULLING = re.compile(r'[Pp]ulling image "(?P<image>[^"]+)"')
_FAILED = re.compile(r'Failed to pull image "(?P<image>[^"]+)": (?P<error>.*)', re.DOTALL)
_BACK_OFF = re.compile(r'Back-off pulling image "(?P<image>[^"]+)"')
_NO_NAME = re.compile(
    r'[Ff]ailed to apply default image tag "(?P<image>[^"]{1,512})": (?P<error>couldn\'t parse image (?:name|reference) "[^"]{1,512}": invalid reference format.*)',
    re.DOTALL,
)
_NEVER = re.compile(r'Container image "(?P<image>[^"]{1,512})" (?P<error>is not present with pull policy of Never)')
_INSPECTED = re.compile(r'Failed to inspect image "(?P<image>[^"]{0,512})": (?P<error>.{1,4096})', re.DOTALL)
_SCHEDULED = re.compile(r"Successfully assigned \S+ to (?P<node>\S+)")
_DEFINITION = re.compile(r"Container (?P<container>[\w.-]+) definition changed, will be restarted")
_SPEC_HASH = re.compile(r"id \w+://(?P<container>[\w.-]+):Container spec hash changed")
_CREATED = re.compile(r"Created container:? (?P<container>[\w.-]{1,253})")
_STARTED = re.compile(r"Started container:? (?P<container>[\w.-]{1,253})")
_REJECTIONS = re.compile(r"OutOf\w[\w-]*|NodeAffinity|UnexpectedAdmissionError")


def event_found(kind: str, pod: str, container: str, reason: str, message: str) -> Iterator[BareFact]:
    """``pod``: ``namespace/name``, or a node's name when ``kind`` is ``Node``. Other events show nothing."""
    if kind == "Node":
        if reason == "Starting" and message.startswith("Starting kubelet"):
            yield BareFact(Kind.START, {"version": "", "node": pod.rpartition("/")[2]})
        elif reason in _COLLECTIONS and (found := runtime_call(reason, message)):
            yield BareFact(Kind.TROUBLE, {**found.fields, "pod": "", "cid": "", "node": pod.rpartition("/")[2]})
        return
    about, message = {"pod": pod, "container": container}, message.removeprefix(_COMBINED)
    if _REJECTIONS.fullmatch(reason):
        yield BareFact(Kind.REJECTED, about | {"reason": reason, "message": message})
        return
    error = message.removeprefix("Error syncing pod, skipping: ") if reason == "FailedSync" else message
    troubles = list(troubles_in(error)) if reason in _OF_TROUBLE else []
    if (
        reason == "FailedSync"
        and error.startswith(_STATUS_UNKNOWN)
        and (away := runtime_call("Status", error.removeprefix(_STATUS_UNKNOWN)))
    ):
        troubles.append(away)
    yield from (BareFact(Kind.TROUBLE, {**trouble.fields, "pod": pod, "cid": ""}) for trouble in troubles)
    if troubles:
        return
    if reason == "Failed" and (unable := of_event(pod, container, message)) is not None:
        yield unable
        return
    if reason == "InspectFailed" and (lacking := inspected(message)):
        yield BareFact(lacking.kind, {**about, **lacking.fields})
        return
    if reason == "FailedPreStopHook":
        yield BareFact(Kind.HOOK_FAILED, about | failed_hook(message))
        return
    if reason == "FailedCreatePodSandBox":
        yield from no_sandbox(pod, message, "event")
    if reason == "Created" and (made := _CREATED.fullmatch(message)):
        about["container"] = container or made["container"]
    if reason == "Started" and (started := _STARTED.fullmatch(message)):
        about["container"] = container or started["container"]
    if (simple := _SIMPLE.get(reason)) is not None:
        yield BareFact(simple, about)
        return
    for wanted, known, pattern in _EVENTS:
        if reason == wanted and (match := pattern.search(message)):
            yield BareFact(known, about | {name: text for name, text in match.groupdict().items() if text})
            return


_SANDBOX_IMAGE = re.compile(
    r"(?:failed to (?:get|inspect) sandbox image |failed pulling image )(?P<image>\"(?:[^\"\\]|\\.){1,512}\"): (?P<error>.{1,4096})",
    re.DOTALL,
)


def not_pulled(message: str) -> dict[str, str] | None:
    """The image that a kubelet did not ask the runtime for, and why: its name is none, or its pod forbids the pull."""
    match = _NO_NAME.search(message) or _NEVER.search(message)
    return {**match.groupdict(), "error": match["error"].rstrip('"')} if match else None


_AMBIGUOUS = re.compile(r"but image name (\S{1,512}) returns ambiguous list")


def inspected(message: str) -> BareFact | None:
    """An image that the runtime could not tell of, so that none was pulled: by its error, or the runtime that did not answer."""
    match = _INSPECTED.search(message)
    if match is None:
        return None
    error = match["error"].rstrip('"')
    if away := runtime_call("ImageStatus", error):
        return BareFact(Kind.TROUBLE, {**away.fields, "cid": ""})
    named = _AMBIGUOUS.search(error)
    image = match["image"] or (named[1] if named else "")
    return BareFact(Kind.PULL_FAILED, {"image": image, "error": error, "inspected": "yes"})


def sandbox_image(error: str) -> dict[str, str] | None:
    """The image of a pod's sandbox that the runtime could not pull, and why: containerd internal/cri/server/sandbox_run.go, dockershim."""
    begun = _NO_SANDBOX.match(error)
    match = _SANDBOX_IMAGE.match(error, begun.end()) if begun else None
    return (
        {"image": match["image"][1:-1].rstrip('\\"'), "error": match["error"].rstrip('"'), "sandbox": "yes"}
        if match
        else None
    )


def no_sandbox(pod: str, error: str, by: str) -> Iterator[BareFact]:
    """Why a pod has no sandbox: its image, a runtime that does not answer, or what the runtime reports."""
    told = error.partition(_CREATING)[2].rstrip('"') if error.startswith(_FAILED_TO) else error
    if pause := sandbox_image(error):
        yield BareFact(Kind.PULL_FAILED, {"pod": pod, "container": "", **pause})
    elif (away := runtime_call("RunPodSandbox", told)) and away.away:
        yield BareFact(Kind.TROUBLE, {**away.fields, "pod": "", "cid": ""})
    else:
        yield unconfigured(pod, "", SANDBOX, told, by)


_FAILED_TO, _CREATING = 'failed to "CreatePodSandbox" for "', f'with {SANDBOX}: "'
_COMBINED = "(combined from similar events): "
"""What the kubelet's client puts ahead of an event that is like many others."""
_NO_SANDBOX = re.compile(
    r"(?:failed to \"CreatePodSandbox\" for \"[^\"]{1,400}\" with CreatePodSandboxError: \"?)?(?:Failed (?:to )?create (?:pod sandbox|sandbox for pod \"[^\"]{1,400}\"): )"
    r"(?:rpc error: code = \w{1,20} desc = )?"
)


def shows_something(reason: str) -> bool:
    """Whether an event with this reason may be a fact."""
    return reason in _REASONS or _REJECTIONS.fullmatch(reason) is not None


_EVENTS = (
    ("Pulling", Kind.QUEUED, _PULLING),
    ("Pulled", Kind.PULLED, _PULLED),
    ("Failed", Kind.PULL_FAILED, _FAILED),
    ("BackOff", Kind.BACK_OFF, _BACK_OFF),
    ("InspectFailed", Kind.PULL_FAILED, _NO_NAME),
    ("ErrImageNeverPull", Kind.PULL_FAILED, _NEVER),
    ("Killing", Kind.CHANGED, _DEFINITION),
    ("Killing", Kind.CHANGED, _SPEC_HASH),
    ("Scheduled", Kind.PLACED, _SCHEDULED),
)
_SIMPLE = {
    "FailedCreatePodSandBox": Kind.HELD,
    "FailedMount": Kind.HELD,
    "FailedAttachVolume": Kind.HELD,
    "Created": Kind.RAN,
    "Started": Kind.STARTED,
    "Evicted": Kind.EVICTS,
}
_STATUS_UNKNOWN = "error determining status: "
_COLLECTIONS = frozenset({"ContainerGCFailed", "ImageGCFailed"})
"""Events of a node in which a call of the runtime failed."""
_OF_TROUBLE = frozenset({"Failed", "FailedKillPod", "FailedSync", "FailedCreatePodSandBox"})
_REASONS = frozenset(
    {"Starting", "FailedPreStopHook", *_OF_TROUBLE, *_COLLECTIONS, *_SIMPLE, *(reason for reason, _, _ in _EVENTS)}
)


def is_rejection(reason: str) -> bool:
    """Whether a kubelet that did not admit a pod writes this reason."""
    return _REJECTIONS.fullmatch(reason) is not None
