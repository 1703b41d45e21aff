"""The errors of containers that do not start, wherever a kubelet prints them: in a line of its sync, an event, or a pod's status.

An event has the error alone, behind ``Error: ``: there only a whole form is known, or a begin that no other error has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rollout.features.diagnose.rules import container_config, container_creation
from rollout.features.diagnose.rules.container_config import ConfigCause
from rollout.features.diagnose.rules.facts import BareFact, Kind

LONGEST = 4096
"""Characters of an error that are read."""
REASONS = frozenset({container_config.REASON, *container_creation.REASONS})
SANDBOX = container_creation.SANDBOX
_SYNC = re.compile(r'failed to "\w{4,40}" for "(?P<container>[\w.-]{1,253})" with (?P<reason>\w{4,60}): ')
_NAMED = re.compile(
    r' \(pod: "(?P<name>[^"_]{1,253})_(?P<namespace>[^"_(]{1,63})\([^")]{0,64}\)", container: (?P<container>[\w.-]{1,253})\)$'
)
_ERROR = "Error: "
_BEHIND = "], \t\r\n"


def of_sync(plain: str, pod: str) -> Iterator[BareFact]:
    """Of ``Error syncing pod``: each container with such an error. ``plain``: without the backslashes of texts in texts."""
    syncs = list(_SYNC.finditer(plain[:LONGEST]))
    for at, match in enumerate(syncs):
        end = syncs[at + 1].start() if at + 1 < len(syncs) else len(plain)
        if match["reason"] in REASONS:
            error = plain[match.end() : end][:LONGEST].rstrip(_BEHIND).removesuffix('"').removeprefix('"')
            yield unconfigured(pod, match["container"], match["reason"], error, "sync")


def of_event(pod: str, container: str, message: str) -> BareFact | None:
    """Of an event ``Failed``: its message has the error only."""
    error = message[:LONGEST].removeprefix(_ERROR)
    if not message.startswith(_ERROR):
        return None
    if container_config.cause_of(error, pod) is not None:
        return unconfigured(pod, container, container_config.REASON, error, "event")
    is_creation = container_creation.is_creation(error)
    return unconfigured(pod, container, "CreateContainerError", error, "event") if is_creation else None


def unconfigured(pod: str, container: str, reason: str, error: str, by: str) -> BareFact:
    """Some forms name the pod and the container, which a table of events does not."""
    if named := _NAMED.search(error[:LONGEST]):
        pod, container = pod or f"{named['namespace']}/{named['name']}", container or named["container"]
    fields = {"pod": pod, "container": container, "reason": reason, "error": error[:LONGEST], "by": by}
    return BareFact(Kind.UNCONFIGURED, fields)


def cause_of(reason: str, error: str, pod: str) -> ConfigCause | None:
    """``None``: the error is of no known form."""
    if reason == container_config.REASON:
        return container_config.cause_of(error, pod)
    return container_creation.cause_of_creation(error)
