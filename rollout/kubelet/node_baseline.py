"""What the API server reports about a node right before its change, kept to compare with later; and queries that do so.

Only *new* harm since the baseline counts. Times are compared only where one clock wrote both: the node's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateQuery
from rollout.core.model.live import Container, Lease, LiveNode, Pod, Sight
from rollout.core.model.verdict import Judged
from rollout.core.text import json_text

# The API's answer on a node right before its change, as one short line: the journal stores one for every node.
#
#     {"v": 1, "at": 81034, "lease": "2026-11-20T19:00:00.000000Z", "ended": ["77b0…"],
#      "pods": {"1f3a…": ["app 9c1e… 0", "side - 3!"]}}
#
# ``ended``: the pods that had ended by then. ``pods``: the others, by the beginning of their uid; each container with
# the beginning of its id and its restart count. ``!`` marks a container that was unstable then (waiting, ended, or
# restarted within ten minutes): its later restarts do not count. ``~`` marks a container that could not pull its
# image then. ``pressures``: the conditions of pressure that were True, and ``devices``:
# the capacity and the allocatable of each extended resource, as in {"nvidia.com/gpu": ["8", "8"]}. ``replaced``: the names of
# the pods with a controller that deletes a rejected pod at once. Versions without them pass them over.


VERSION = 1
SHORT = 12
STEADY = 600.0
"""Seconds without a restart after which a container that was restarted before counts as steady."""

PULL_FAILURES = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed"})
"""Waiting reasons that mean a failed pull. ``InvalidImageName`` and ``ErrImageNeverPull`` are the pod's own errors."""


ENDED = frozenset({"Failed", "Succeeded"})
"""Phases of pods that have ended."""

DELETING = frozenset({"DaemonSet", "StatefulSet"})
"""Controllers that delete a failed pod of theirs at once, to make another one (pkg/controller/daemon/daemon_controller.go and
pkg/controller/statefulset/stateful_set_control.go). A ReplicaSet and a Job leave it: what they lack was deleted by others."""

STARTED = frozenset({"Running", "Succeeded"})
"""Phases of pods that certainly started. A pod can be Failed because the kubelet rejected it."""


class BaselineError(ValueError):
    """A baseline that this version of rollout did not write."""


@dataclass(frozen=True, slots=True)
class Then:
    """A container before the change."""

    id: str
    restarts: int
    steady: bool
    pulling_failed: bool


@dataclass(frozen=True, slots=True)
class Baseline:
    """``lease`` is its renewal time by the node's own clock. Pods by the start of their uid; ``ended``: over by then.

    ``at`` is the resourceVersion of that list of pods (0: not known). ``pressures`` and ``devices``, the capacity and the allocatable
    of each extended resource, are ``None`` in a baseline of an older version of rollout. ``replaced``: the names of pods
    that their controller deletes when a kubelet has rejected them, and that were not being deleted then.
    """

    lease: str
    pods: Mapping[str, Mapping[str, Then]]
    ended: frozenset[str]
    at: int = 0
    pressures: frozenset[str] | None = None
    devices: Mapping[str, tuple[str, str]] | None = None
    replaced: Mapping[str, str] = field(default_factory=dict)

    def knew(self, pod: Pod) -> Mapping[str, Then] | None:
        """The pod's containers before the change; ``None``: the pod did not exist, or had ended."""
        return self.pods.get(short(pod.uid))

    def over(self, pod: Pod) -> bool:
        """Whether the pod had ended before the change."""
        return short(pod.uid) in self.ended


def baseline_of(sight: Sight) -> str:
    """The baseline as it is stored."""
    lease = sight.lease.renewed if sight.lease else ""
    going = [pod for pod in sight.pods if pod.phase not in ENDED]
    replaced = {short(pod.uid): pod.name for pod in going if pod.controller in DELETING and not pod.deleting}
    baseline = {
        "v": VERSION,
        "lease": lease,
        "at": sight.pods_at,
        "ended": sorted(short(pod.uid) for pod in sight.pods if pod.phase in ENDED),
        "pods": {short(pod.uid): [_entry(container, lease) for container in pod.containers] for pod in going},
        "pressures": sorted(sight.node.pressures),
        "devices": extended(sight.node),
        **({"replaced": replaced} if replaced else {}),
    }
    return json.dumps(baseline, separators=(",", ":"), sort_keys=True)


def read_baseline(text: str) -> Baseline:
    """Reads a stored baseline, or raises ``BaselineError``."""
    try:
        baseline = json_text.parse(text)
        if baseline["v"] != VERSION:
            raise BaselineError(f"version {baseline['v']}")
        pods = {uid: dict(_read(entry) for entry in entries) for uid, entries in baseline["pods"].items()}
        ended, pressures = frozenset(map(str, baseline["ended"])), baseline.get("pressures")
        return Baseline(
            str(baseline["lease"]),
            pods,
            ended,
            int(baseline.get("at", 0)),
            None if pressures is None else frozenset(map(str, pressures)),
            _devices(baseline.get("devices")),
            {str(uid): str(name) for uid, name in baseline.get("replaced", {}).items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as exc:
        raise BaselineError(str(exc)) from None


def _devices(written: Any) -> Mapping[str, tuple[str, str]] | None:
    if written is None:
        return None
    return {str(name): (str(capacity), str(allocatable)) for name, (capacity, allocatable) in written.items()}


def is_extended(resource: str) -> bool:
    """Whether it is an extended resource: devices of a plugin, or what else others have added to the Node (IsExtendedResourceName)."""
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def extended(node: LiveNode) -> Mapping[str, tuple[str, str]]:
    """The capacity and the allocatable of each extended resource; ``""``: not reported."""
    capacity, allocatable = dict(node.capacity), dict(node.allocatable)
    names = sorted(filter(is_extended, capacity.keys() | allocatable.keys()))
    return {name: (capacity.get(name, ""), allocatable.get(name, "")) for name in names}


def short(identity: str) -> str:
    """The distinctive part of a uid or a container's id: ``containerd://9c1e…`` without the runtime."""
    return identity.rpartition("://")[2].replace("-", "")[:SHORT]


def seconds_between(earlier: str, later: str) -> float | None:
    """``later - earlier`` of two times by the same clock; ``None`` when one of them cannot be read."""
    try:
        return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
    except (ValueError, TypeError):
        return None


def _entry(container: Container, now: str) -> str:
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


STATUS_EVERY = 10.0
"""Seconds between two status updates of a kubelet: a Node may report False that long whatever its version."""


@dataclass(frozen=True, slots=True)
class Since:
    """Kept since the restart: the first lease seen, whether a newer one was seen, and the seconds of watching.

    ``flapped``: that the Node was not Ready between this reading and one before, after the time that a restart needs; ``""``: that was not seen.
    ``deleted``: the pods that a reading showed while they were deleted, by the start of their uid.
    """

    lease: Lease | None
    renewed: bool
    seconds: float
    settle: float
    flapped: str = ""
    deleted: frozenset[str] = frozenset()

    @property
    def window(self) -> float:
        """Seconds after a restart in which the Node may not be Ready."""
        return max(self.settle, STATUS_EVERY)


def is_renewal(known: Lease, now: Lease) -> bool:
    """Whether a kubelet renewed the lease after ``known``: versions only grow, so an older one is from a server that lags.

    Others write leases too (an annotation, a migration of the store): only a renewal changes the time in it. A version that
    is no number can only be different; then the node's own clock must also be later.
    """
    if now.renewed == known.renewed:
        return False
    if known.version.isdecimal() and now.version.isdecimal():
        return int(now.version) > int(known.version)
    return now.version != known.version and (seconds_between(known.renewed, now.renewed) or 0.0) > 0.0


def pods_started(sight: Sight, baseline: Baseline) -> int:
    """The pods that are new since the baseline and had all their containers created since. Pods that are gone again do not count.

    Nor does a pod that was there before and that a lagging baseline lacks: by the node's own clock its containers are older.
    """
    new = (pod for pod in sight.pods if baseline.knew(pod) is None and not baseline.over(pod))
    return sum(pod.phase in STARTED and _began_after(baseline, pod) for pod in new)


def _began_after(baseline: Baseline, pod: Pod) -> bool:
    apart = [seconds_between(baseline.lease, container.since) for container in pod.containers]
    return bool(apart) and all(seconds is not None and seconds > 0 for seconds in apart)


class SeenQuery(GateQuery):
    """A query that is answered by what the API server reports about a node."""

    __slots__ = ()

    asks_api = True

    def judge(self, sight: Sight, baseline: Baseline, since: Since) -> Judged:
        """The verdict on what the API server reports now."""
        raise NotImplementedError
