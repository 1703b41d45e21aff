"""The gates of a node that ask the API server: is the node back, and did the restart harm anything on it?

Some effects of a restart are normal: running containers keep running, a pod with a readiness probe is not ready for
a while (up to 1.34), the Node may be NotReady for one status update (up to 1.30). These gates judge harm:

* every pod is admitted again; a pod that no longer fits is set to Failed and its containers are killed;
* a container is killed and started again when its hash differs from the kubelet's hash of its spec;
* the pull queue starts empty, and an image that could be pulled before cannot be pulled now.

Only *new* harm since the baseline counts. Times are compared only where one clock wrote both: the node's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import assert_never

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import ApiKind, GateKind
from rollout.core.model.live import Container, Lease, Pod, Sight
from rollout.core.model.verdict import Verdict
from rollout.core.text import json_text
from rollout.core.text.terminal import counted, printable

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
    found = {
        "v": VERSION,
        "lease": lease,
        "at": sight.pods_at,
        "ended": sorted(short(pod.uid) for pod in sight.pods if pod.phase in ENDED),
        "pods": {short(pod.uid): [_said(container, lease) for container in pod.containers] for pod in going},
    }
    return json.dumps(found, separators=(",", ":"), sort_keys=True)


def read_baseline(text: str) -> Baseline:
    """Reads a stored baseline, or raises ``BaselineError``."""
    try:
        found = json_text.parse(text)
        if found["v"] != VERSION:
            raise BaselineError(f"version {found['v']}")
        pods = {uid: dict(_read(entry) for entry in entries) for uid, entries in found["pods"].items()}
        return Baseline(str(found["lease"]), pods, frozenset(map(str, found["ended"])), int(found.get("at", 0)))
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


Judged = tuple[Verdict, str]

STATUS_EVERY = 10.0
"""Seconds between two status updates of a kubelet: a Node may report False that long whatever its version."""

OURS = 300.0
"""Seconds after the baseline in which a container's restart counts as ours: apply, its guard, a pod's grace period.
Later restarts are the workload's own, or for wave gates to judge: a soak can take a night."""

REJECTIONS = frozenset(
    {
        "OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfephemeral-storage", "NodeAffinity", "NodeSelectorMismatching",
        "NodeName", "NodePorts", "UnexpectedAdmissionError", "TopologyAffinityError", "Taint", "UnexpectedPredicateFailureType",
        "PodLevelResourcesNotAdmittedReason", "SysctlForbidden", "SupplementalGroupsPolicyNotSupported", "AppArmor",
        "InvalidNodeInfo", "PodOSNotSupported", "PodOSSelectorNodeLabelDoesNotMatch", "InitContainerRestartPolicyForbidden",
        "HostNamespaceNotSupported", "Preempting", "OutOfhugepages", "NodeShutdown",
    }
)  # fmt: skip
"""Reasons by which a kubelet rejects a pod at admission; ``OutOf…`` also stands for extended resources."""

SHOWN = 3


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


def judge_sight(kind: ApiKind, sight: Sight, baseline: Baseline, since: Since) -> Judged:
    """The verdict of an API gate on a node."""
    match kind:
        case GateKind.NODE_READY:
            return node_ready(sight, since)
        case GateKind.PODS_KEPT:
            return _pods_kept(sight, baseline)
        case GateKind.CONTAINERS_KEPT:
            return _containers_kept(sight, baseline)
        case GateKind.IMAGE_PULLS:
            return _image_pulls(sight, baseline)
        case _ as never:
            assert_never(never)


def node_ready(sight: Sight, since: Since) -> Judged:
    """Ready, and its lease renewed since it was first read after the restart (renewals come every 10 s)."""
    node = sight.node
    if node.ready != "True":
        window = max(since.settle, STATUS_EVERY)
        said = f"Ready is {node.ready or 'not reported'}: {printable(node.ready_message, 200) or 'no reason given'}"
        if since.seconds <= window:
            return Verdict.UNKNOWN, f"{said}; allowed for {window:g} s after a restart"
        return Verdict.FAIL, said
    if since.renewed:
        return Verdict.PASS, "Ready, its lease was renewed after the restart"
    if sight.lease is None:
        return Verdict.UNKNOWN, "Ready, but it has no lease in kube-node-lease"
    return Verdict.UNKNOWN, f"Ready, but its lease was not renewed in {since.seconds:.0f} s of watching"


def pods_started(sight: Sight, baseline: Baseline) -> int:
    """The pods that are new since the baseline and had all their containers created. Pods that are gone again do not count."""
    return sum(pod.phase in STARTED and baseline.knew(pod) is None and not baseline.over(pod) for pod in sight.pods)


def _pods_kept(sight: Sight, baseline: Baseline) -> Judged:
    lost = [said for pod in sight.pods if (said := _ended(pod, baseline))]
    if lost:
        return Verdict.FAIL, _listed(lost, "pod", "rejected or ended")
    kept = sum(baseline.knew(pod) is not None for pod in sight.pods)
    return Verdict.PASS, f"{counted(kept, 'pod')} of {len(baseline.pods)} still there, none rejected"


def _ended(pod: Pod, baseline: Baseline) -> str:
    """Why a pod counts as harmed, or ``""``. A pod that is being deleted, or that had ended before, does not count.

    New pods count when they were rejected: controllers replace a rejected pod within seconds, often on the same node. A
    pod that must run without an end counts however it ended: some kubelets leave a rejected one as Succeeded.
    """
    if pod.phase not in ENDED or pod.deleting or baseline.over(pod):
        return ""
    rejected = pod.reason in REJECTIONS or pod.reason.startswith("OutOf")
    if not rejected and (baseline.knew(pod) is None or not pod.forever):
        return ""
    return f"{pod.name} {pod.phase} ({pod.reason or 'no reason'}: {printable(pod.message, 120) or 'no message'})"


def _containers_kept(sight: Sight, baseline: Baseline) -> Judged:
    watched = [
        (pod, container, then)
        for pod in sight.pods
        if not pod.deleting
        for container in pod.containers
        if (then := (baseline.knew(pod) or {}).get(container.name))
    ]
    steady = [(pod, container, then) for pod, container, then in watched if then.steady]
    restarted = [
        f"{pod.name} {container.name} ({container.state}, restarts {then.restarts} → {container.restarts})"
        for pod, container, then in steady
        if _another(pod, container, then) and _by_us(container, baseline)
    ]
    if restarted:
        return Verdict.FAIL, _listed(restarted, "container", "restarted")
    unsteady = len(watched) - len(steady)
    noise = f"; {unsteady} were unstable before and are not counted" if unsteady else ""
    return Verdict.PASS, f"{counted(len(steady), 'container')} kept{noise}"


def _another(pod: Pod, container: Container, then: Then) -> bool:
    """Whether it is another instance than before, or has ended and must be started again."""
    ended = container.state != "running" and pod.forever
    return ended or (then.id, then.restarts) != (short(container.id), container.restarts)


def _by_us(container: Container, baseline: Baseline) -> bool:
    """Whether our restart can be the cause; without a readable time, it can."""
    apart = seconds_between(baseline.lease, container.since)
    return apart is None or apart <= OURS


def _image_pulls(sight: Sight, baseline: Baseline) -> Judged:
    failing = [said for pod in sight.pods for said in _not_pulled(pod, baseline.knew(pod) or {})]
    if failing:
        return Verdict.FAIL, _listed(failing, "container", "cannot pull an image that it could pull before")
    old = sum(then.pulling_failed for pod in baseline.pods.values() for then in pod.values())
    return Verdict.PASS, "no new pull failure" + (f"; {old} already failed before" if old else "")


def _not_pulled(pod: Pod, before: Mapping[str, Then]) -> Iterator[str]:
    if pod.deleting or pod.phase in ENDED:
        return
    for container in pod.containers:
        then = before.get(container.name)
        if container.reason in PULL_FAILURES and not (then and then.pulling_failed):
            yield f"{pod.name} {container.name} ({container.reason}: {printable(container.message, 160)})"


def _listed(found: list[str], what: str, happened: str) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{counted(len(found), what)} {happened}: {', '.join(map(printable, found[:SHOWN]))}{more}"
