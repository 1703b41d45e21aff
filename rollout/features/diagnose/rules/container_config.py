"""A container for which the kubelet cannot put its configuration together (``CreateContainerConfigError``), by the form of the error.

Sources: the kubelet's pkg/kubelet/kubelet_pods.go (``makeEnvironmentVariables``, ``makeMounts``) and
pkg/kubelet/kuberuntime/security_context.go (``verifyRunAsNonRoot``), 1.10 to 1.36; pkg/kubelet/util/manager. An event has the error
alone, behind ``Error: ``: there only a whole form is known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 4096
"""Characters of an error that are read."""
_NAME = r"[a-z0-9][a-z0-9.-]{0,252}"
_OF_POD = r'(?: \(pod: "[^"]{1,600}", container: [\w.-]{1,253}\))?'


@dataclass(frozen=True, slots=True)
class ConfigCause:
    """``told``: what the error means, ``fetch``: where to look."""

    told: str
    fetch: str


@dataclass(frozen=True, slots=True)
class _Form:
    """The texts of a cause have the names of the error in it, and ``namespace``."""

    form: re.Pattern[str]
    told: str
    fetch: str


_API = "the kubelet's lines about the API server at that time, such as `failed to list` or `is forbidden`: it reads the object from there"
_FORMS = (
    _Form(
        re.compile(rf'(?P<what>secret|configmap)s? "(?P<of>{_NAME})" not found'),
        "there is no {what} {of} in {namespace}",
        "its name in the pod, and in {namespace}: kubectl {option}get {what} {of}",
    ),
    _Form(
        re.compile(rf"couldn't find key (?P<key>[\w.-]{{1,253}}) in (?P<what>Secret|ConfigMap) {_NAME}/(?P<of>{_NAME})"),
        "{what} {of} in {namespace} has no key {key}",
        "the keys that it has: kubectl {option}describe {what} {of}",
    ),
    _Form(
        re.compile(rf"container has runAsNonRoot and image will run as root{_OF_POD}"),
        "runAsNonRoot is true, and the image runs as root",
        "the user of the image; runAsUser with a number other than 0 in the container's securityContext changes it",
    ),
    _Form(
        re.compile(rf"container has runAsNonRoot and image has non-numeric user \((?P<of>[^()\s]{{1,64}})\), cannot verify user is non-root{_OF_POD}"),
        "runAsNonRoot is true, and the image names its user {of} without a number, so the kubelet cannot tell that it is not root",
        "the number of that user in the image; runAsUser with that number in the container's securityContext is enough",
    ),
    _Form(
        re.compile(rf"container's runAsUser breaks non-root policy{_OF_POD}"),
        "runAsNonRoot is true, and runAsUser is 0",
        "the securityContext of the pod and of the container: one of both has to change",
    ),
    _Form(
        re.compile(r"failed to sync (?P<what>secret|configmap) cache: timed out waiting for the condition"),
        "the kubelet has no copy of a {what} of the pod yet: the API server did not answer it in time",
        _API,
    ),
    _Form(
        re.compile(rf'object "(?P<in>{_NAME})"/"(?P<of>{_NAME})" not registered'),
        "the kubelet does not keep {of} of namespace {in} for this pod: it does so as long as it works on the pod",
        "whether the pod was being deleted, or the kubelet had just started",
    ),
    _Form(
        re.compile(
            rf'(?P<what>secret|configmap)s "(?P<of>{_NAME})" is forbidden: User "(?P<user>[\w:.-]{{1,300}})" cannot get resource "(?:secrets|configmaps)" in API group "" '
            rf'in the namespace "{_NAME}".{{0,300}}'
        ),
        "the API server does not let {user} read {what} {of} of {namespace}",
        "the node's user and the authorizer: a node may read what pods bound to it name, by its own name",
    ),
    _Form(
        re.compile(r"services have not yet been read at least once, cannot construct envvars"),
        "the kubelet has not read the Services since its start: the API server did not answer it",
        _API,
    ),
    _Form(
        re.compile(r'failed to (?:prepare subPath|create subPath directory) for volumeMount "(?P<volume>[\w.-]{1,253})" of container "[\w.-]{1,253}"'),
        "the subPath of volume {volume} cannot be made or opened",
        "the kubelet's line of the same moment, `failed to prepare subPath` or `failed to create subPath directory`: it has the reason",
    ),
    _Form(
        re.compile(r'cannot find volume "(?P<volume>[\w.-]{1,253})" to mount into container "[\w.-]{1,253}"'),
        "volume {volume} is not mounted on the node",
        "the kubelet's lines about this volume: `MountVolume.SetUp`",
    ),
)  # fmt: skip


REASON = "CreateContainerConfigError"


def cause_of(error: str, pod: str) -> ConfigCause | None:
    """``None``: the error is of no known form."""
    for form in _FORMS:
        if match := form.form.fullmatch(error):
            of = pod.partition("/")[0]
            own = (
                {"namespace": f"namespace {of}", "option": f"-n {of} "}
                if of
                else {"namespace": "the pod's namespace", "option": ""}
            )
            names = {**own, **match.groupdict()}
            return ConfigCause(form.told.format(**names), form.fetch.format(**names))
    return None
