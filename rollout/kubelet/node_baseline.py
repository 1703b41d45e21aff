"""What the API server reports about a node right before its change, kept to compare with later; and queries that do so.

Only *new* harm since the baseline counts. Times are compared only where one clock wrote both: the node's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateQuery
from rollout.core.model.live import Container, Lease, Pod, Sight
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
# image then.


VERSION = 1
SHORT = 12
STEADY = 600.0
"""Seconds without a restart after which a container that was restarted before counts as steady."""

PULL_FAILURES = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed"})
"""Waiting reasons that mean a failed pull. ``InvalidImageName`` and ``ErrImageNeverPull`` are the pod's own errors."""


ENDED = frozenset({"Failed", "Succeeded"})
"""Phases of pods that have ended."""

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

    ``at`` is the resourceVersion of that list of pods (0: not known).
    """

    lease: str
    pods: Mapping[str, Mapping[str, Then]]
    ended: frozenset[str]
    at: int = 0

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
    baseline = {
        "v": VERSION,
        "lease": lease,
        "at": sight.pods_at,
        "ended": sorted(short(pod.uid) for pod in sight.pods if pod.phase in ENDED),
        "pods": {short(pod.uid): [_entry(container, lease) for container in pod.containers] for pod in going},
    }
    return json.dumps(baseline, separators=(",", ":"), sort_keys=True)


def read_baseline(text: str) -> Baseline:
    """Reads a stored baseline, or raises ``BaselineError``."""
    try:
        baseline = json_text.parse(text)
        if baseline["v"] != VERSION:
            raise BaselineError(f"version {baseline['v']}")
        pods = {uid: dict(_read(entry) for entry in entries) for uid, entries in baseline["pods"].items()}
        return Baseline(
            str(baseline["lease"]), pods, frozenset(map(str, baseline["ended"])), int(baseline.get("at", 0))
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as exc:
        raise BaselineError(str(exc)) from None


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
    """Kept since the restart: the first lease seen, whether a newer one was seen, and the seconds of watching."""

    lease: Lease | None
    renewed: bool
    seconds: float
    settle: float


def is_renewal(known: Lease, now: Lease) -> bool:
    """Whether the lease was written after ``known``: versions only grow, so an older one is from a server that lags.

    A version that is no number can only be different; then the node's own clock must also be later.
    """
    if known.version.isdecimal() and now.version.isdecimal():
        return int(now.version) > int(known.version)
    return now.version != known.version and (seconds_between(known.renewed, now.renewed) or 0.0) > 0.0


def pods_started(sight: Sight, baseline: Baseline) -> int:
    """The pods that are new since the baseline and had all their containers created. Pods that are gone again do not count."""
    return sum(pod.phase in STARTED and baseline.knew(pod) is None and not baseline.over(pod) for pod in sight.pods)


class SeenQuery(GateQuery):
    """A query that is answered by what the API server reports about a node."""

    __slots__ = ()

    asks_api = True

    def judge(self, sight: Sight, baseline: Baseline, since: Since) -> Judged:
        """The verdict on what the API server reports now."""
        raise NotImplementedError
