"""The gates of a node that ask the API server: is the node back, and did the restart harm anything on it?

Some effects of a restart are normal: running containers keep running, a pod with a readiness probe is not ready for
a while (up to 1.34), the Node may be NotReady for one status update (up to 1.30). These gates judge harm:

* every pod is admitted again; a pod that no longer fits is set to Failed and its containers are killed;
* a container is killed and started again when its hash differs from the kubelet's hash of its spec;
* the pull queue starts empty, and an image that could be pulled before cannot be pulled now.

Only *new* harm since the baseline counts. The four stand together because they share one look at the API server and one baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, assert_never

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Endpoints
from rollout.core.model.live import Container, Pod, Sight
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.text.terminal import counted, printable
from rollout.kubelet.node_baseline import (
    ENDED,
    PULL_FAILURES,
    STATUS_EVERY,
    Baseline,
    SeenQuery,
    Since,
    Then,
    seconds_between,
    short,
)

ApiKind = Literal["nodeReady", "podsKept", "containersKept", "imagePulls"]
"""The Node is Ready and its lease was renewed after the restart; no pod was rejected at re-admission; no container was restarted by us;
no new image-pull failure."""

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
class ApiCheck(SeenQuery):
    """What the API server reports about each node."""

    kind: ApiKind

    back_end = "kubeconfig"

    @property
    def wants_ready(self) -> bool:
        return self.kind == "nodeReady"

    def lacks_back_end(self, endpoints: Endpoints) -> bool:
        return not endpoints.kubeconfig

    def judge(self, sight: Sight, baseline: Baseline, since: Since) -> Judged:
        match self.kind:
            case "nodeReady":
                return _node_ready(sight, since)
            case "podsKept":
                return _pods_kept(sight, baseline)
            case "containersKept":
                return _containers_kept(sight, baseline)
            case "imagePulls":
                return _image_pulls(sight, baseline)
            case _ as never:
                assert_never(never)


def _node_ready(sight: Sight, since: Since) -> Judged:
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
