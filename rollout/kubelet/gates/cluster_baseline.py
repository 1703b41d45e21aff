"""What the API said of a node right before its change, as one short line: it is journaled once for every node.

    {"v": 1, "at": 81034, "lease": "2026-11-20T19:00:00.000000Z", "ended": ["77b0…"], "pods": {"1f3a…": ["app 9c1e… 0", "side - 3!"]}}

Pods that had ended by then, and the others by the beginning of their uid, containers with the beginning of their id and their restart count. ``!`` marks a
container that was not steady then (waiting, ended, or restarted within ten minutes): what it does next is not our doing.
``~`` marks one whose image could not be pulled then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rollout.core.model.live import Container, Pod, Sight
from rollout.core.text import json_text

VERSION = 1
SHORT = 12
STEADY = 600.0
"""Seconds without a restart after which a container that was restarted before counts as steady."""

PULL_FAILURES = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed"})
"""Reasons of waiting that mean that a pull failed. ``InvalidImageName`` and ``ErrImageNeverPull`` are the pod's own fault."""


ENDED = frozenset({"Failed", "Succeeded"})
"""Phases of pods that run no more."""


class BaselineError(ValueError):
    """A baseline that this version of ours did not write."""


@dataclass(frozen=True, slots=True)
class Then:
    """A container before the change."""

    id: str
    restarts: int
    steady: bool
    pulling_failed: bool


@dataclass(frozen=True, slots=True)
class Baseline:
    """``lease`` is when it was renewed, by the node's own clock. Pods by the beginning of their uid; ``ended``: over by then.

    ``at`` is the resourceVersion of that list of pods (0: not known).
    """

    lease: str
    pods: Mapping[str, Mapping[str, Then]]
    ended: frozenset[str]
    at: int = 0

    def knew(self, pod: Pod) -> Mapping[str, Then] | None:
        """The pod's containers before the change; ``None``: it was not there, or had ended."""
        return self.pods.get(short(pod.uid))

    def over(self, pod: Pod) -> bool:
        """Whether the pod had ended before the change."""
        return short(pod.uid) in self.ended


def baseline_of(sight: Sight) -> str:
    """The baseline to write down."""
    lease = sight.lease.renewed if sight.lease else ""
    going = [pod for pod in sight.pods if pod.phase not in ENDED]
    found = {
        "v": VERSION,
        "lease": lease,
        "at": sight.pods_at,
        "ended": sorted(short(pod.uid) for pod in sight.pods if pod.phase in ENDED),
        "pods": {short(pod.uid): [_said(container, lease) for container in pod.containers] for pod in going},
    }
    return json.dumps(found, separators=(",", ":"), sort_keys=True)


def read_baseline(text: str) -> Baseline:
    """The baseline that was written down, or ``BaselineError``."""
    try:
        found = json_text.parse(text)
        if found["v"] != VERSION:
            raise BaselineError(f"version {found['v']}")
        pods = {uid: dict(_read(entry) for entry in entries) for uid, entries in found["pods"].items()}
        return Baseline(str(found["lease"]), pods, frozenset(map(str, found["ended"])), int(found.get("at", 0)))
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise BaselineError(str(exc)) from None


def short(identity: str) -> str:
    """The telling part of a uid or a container's id: ``containerd://9c1e…`` without the runtime."""
    return identity.rpartition("://")[2].replace("-", "")[:SHORT]


def seconds_between(earlier: str, later: str) -> float | None:
    """``later - earlier`` of two times by the same clock; ``None`` when one of them cannot be read."""
    try:
        return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
    except (ValueError, TypeError):
        return None


def _said(container: Container, now: str) -> str:
    marks = "" if _steady(container, now) else "!"
    marks += "~" if container.reason in PULL_FAILURES else ""
    return f"{container.name} {short(container.id) or '-'} {container.restarts}{marks}"


def _steady(container: Container, now: str) -> bool:
    if container.state != "running":
        return False
    since = seconds_between(container.since, now)
    return container.restarts == 0 or (since is not None and since >= STEADY)


def _read(entry: str) -> tuple[str, Then]:
    name, identity, count = entry.split(" ")
    return name, Then("" if identity == "-" else identity, int(count.rstrip("!~")), "!" not in count, "~" in count)
