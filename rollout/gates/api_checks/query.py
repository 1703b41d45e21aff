"""The gates of a node that ask the API server: is the node back, and did the restart harm anything on it?

Some effects of a restart are normal: running containers keep running, a pod with a readiness probe is not ready for
a while (up to 1.34), the Node may be NotReady for one status update (up to 1.30). These gates judge harm:

* every pod is admitted again; a pod that no longer fits is set to Failed and its containers are killed;
* a pod is evicted for a threshold that the change has raised above what is free;
* devices are gone until their plugin has registered again, and stay gone if it does not;
* a Node flaps if its kubelet renews the lease later than the node controller waits;
* a container is killed and started again when its hash differs from the kubelet's hash of its spec;
* the pull queue starts empty, and an image that could be pulled before cannot be pulled now.

Only *new* harm since the baseline counts. They stand together because they share one look at the API server and one baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, assert_never

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Endpoints
from rollout.core.model.live import Container, Lease, Pod, Sight
from rollout.core.model.verdict import Judged, Verdict
from rollout.core.text.terminal import counted, printable
from rollout.kubelet.configuration.quantities import whole
from rollout.kubelet.node_baseline import (
    ENDED,
    PULL_FAILURES,
    Baseline,
    SeenQuery,
    Since,
    Then,
    extended,
    seconds_between,
    short,
)

ApiKind = Literal["nodeReady", "podsKept", "devicesKept", "containersKept", "imagePulls"]
"""The Node is Ready and stays so, and its lease was renewed after the restart; no pod was rejected at re-admission or evicted; no device
was lost; no container was restarted by us; no new image-pull failure."""

USUAL_LEASE = 40
"""Seconds: nodeLeaseDurationSeconds unless it is set."""

USUAL_GRACE = 40
"""Seconds: --node-monitor-grace-period of a kube-controller-manager up to 1.31; 50 from 1.32 on."""

EVICTED = "Evicted"
"""The reason of a pod that its kubelet has evicted for a threshold, and of one that it does not admit under pressure."""

OURS = 300.0
"""Seconds after the baseline in which a container's restart counts as ours: apply, its guard, a pod's grace period.
Later restarts are the workload's own, or for wave gates to judge: a soak can take a night."""

REJECTIONS = frozenset(
    {
        "OutOfcpu", "OutOfmemory", "OutOfpods", "OutOfephemeral-storage", "NodeAffinity", "NodeSelectorMismatching",
        "NodeName", "NodePorts", "UnexpectedAdmissionError", "TopologyAffinityError", "Taint", "TaintToleration",
        "UnexpectedPredicateFailureType", "UnknownReason", "PodLevelResourcesNotAdmittedReason", "PodLevelResourcesNotSupported",
        "SysctlForbidden", "SupplementalGroupsPolicyNotSupported", "AppArmor", "InvalidNodeInfo", "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch", "InitContainerRestartPolicyForbidden", "PodFeatureUnsupported",
        "VolumeAttachmentLimitExceeded", "HostNamespaceNotSupported", "Preempting", "OutOfhugepages", "NodeShutdown",
    }
)  # fmt: skip
"""Reasons by which a kubelet rejects a pod at admission; ``OutOf…`` also stands for extended resources
(``admissionRejectionReasons`` in pkg/kubelet/kubelet.go, and the names of predicates)."""

REJECTED = "Pod was rejected: "
"""How newer kubelets begin the message of a pod that they reject, whatever the reason (``rejectPod`` in pkg/kubelet/kubelet.go)."""

OWN_LIMIT = (
    "exceeded its local ephemeral storage limit",
    "Pod ephemeral local storage usage exceeds",
    "Usage of EmptyDir volume",
)
"""In messages of evictions for a limit of the pod itself, which no threshold of the node decides (pkg/kubelet/eviction/helpers.go)."""

OWN_DEADLINE = "DeadlineExceeded"
"""The reason of a pod that has reached its activeDeadlineSeconds (pkg/kubelet/active_deadline.go)."""

REGISTERS = 60.0
"""Seconds after a restart in which a device plugin may still have to register: until then a kubelet reports none of its devices
(pkg/kubelet/cm/devicemanager/manager.go, readCheckpoint)."""

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
                return _pods_kept(sight, baseline, since)
            case "devicesKept":
                return _devices_kept(sight, baseline, since)
            case "containersKept":
                return _containers_kept(sight, baseline, since)
            case "imagePulls":
                return _image_pulls(sight, baseline)
            case _ as never:
                assert_never(never)


def _node_ready(sight: Sight, since: Since) -> Judged:
    """Ready, and its lease renewed since it was first read after the restart (renewals come every 10 s).

    A Node that flaps is Ready most of the time: it is found by the time since which it is Ready.
    """
    node = sight.node
    if node.ready != "True":
        window = since.window
        said = f"Ready is {node.ready or 'not reported'}: {printable(node.ready_message, 200) or 'no reason given'}"
        if since.seconds <= window:
            return Verdict.UNKNOWN, f"{said}; allowed for {window:g} s after a restart"
        return Verdict.FAIL, f"{said}{_renewals(sight.lease)}"
    if since.flapped:
        return Verdict.FAIL, f"{since.flapped}{_renewals(sight.lease)}"
    if since.seconds < (watched := _renewed_every(sight.lease)):
        why = f"Ready, but watched for {since.seconds:.0f} s only: it may flap before its lease is renewed after {watched:g} s"
        return Verdict.UNKNOWN, f"{why}{_renewals(sight.lease)}"
    if since.renewed:
        return Verdict.PASS, "Ready, its lease was renewed after the restart"
    if sight.lease is None:
        return Verdict.UNKNOWN, "Ready, but it has no lease in kube-node-lease"
    why = f"Ready, but its lease was not renewed in {since.seconds:.0f} s of watching"
    return Verdict.UNKNOWN, f"{why}{_renewals(sight.lease)}"


def _renewed_every(lease: Lease | None) -> float:
    """Seconds between two renewals of a lease that lasts longer than usual; 0 for all others."""
    return lease.lasts / 4 if lease is not None and lease.lasts > USUAL_LEASE else 0.0


def _renewals(lease: Lease | None) -> str:
    """How often the kubelet renews a lease of another length than the usual one."""
    every = _renewed_every(lease)
    if lease is None or not every:
        return ""
    said = f"; its lease lasts {lease.lasts} s (nodeLeaseDurationSeconds) and is renewed every {every:g} s"
    return (
        f"{said}, which is later than the node controller's 40 s (50 s from 1.32 on)" if every > USUAL_GRACE else said
    )


def _pods_kept(sight: Sight, baseline: Baseline, since: Since) -> Judged:
    """No pod rejected or evicted, and no pressure for which a kubelet evicts that was not there before.

    A threshold that the change raised above what is free evicts within seconds. Pressure that comes later is the workload's own.
    """
    is_late = _is_late(sight, baseline, since)
    ended = [(pod, said) for pod in sight.pods if (said := _ended(pod, baseline)) and not (is_late and _never_ran(pod))]
    evicted = [said for pod, said in ended if pod.reason == EVICTED]
    lost = [said for pod, said in ended if pod.reason != EVICTED]
    found = [_listed(evicted, "pod", "evicted")] if evicted else []
    found += [_listed(lost, "pod", "rejected or ended")] if lost else []
    before = baseline.pressures
    new = [kind for kind in sight.node.pressures if before is not None and kind not in before]
    pressure = f"{' and '.join(new)} since the change: an eviction threshold is reached" if new else ""
    if found:
        return Verdict.FAIL, "; ".join([*found, *([pressure] if pressure else [])])
    if pressure and not is_late:
        return Verdict.UNKNOWN, f"{pressure}, and no pod is evicted yet"
    if not is_late and (gone := _gone(sight, baseline, since)):
        return Verdict.UNKNOWN, gone
    kept = sum(baseline.knew(pod) is not None for pod in sight.pods)
    said = f"{counted(kept, 'pod')} of {len(baseline.pods)} still there, none of them rejected or evicted"
    return Verdict.PASS, f"{said}; {' and '.join(new)} later than {OURS:g} s after the change" if new else said


def _gone(sight: Sight, baseline: Baseline, since: Since) -> str:
    """The pods that are gone without a reading that showed their deletion, where rejected ones are deleted at once; ``""``: none."""
    there = {short(pod.uid) for pod in sight.pods} | since.deleted
    gone = [name for uid, name in sorted(baseline.replaced.items()) if uid not in there]
    if not gone:
        return ""
    named = f"{', '.join(printable(name, 120) for name in gone[:SHOWN])}{f' and {len(gone) - SHOWN} more' if len(gone) > SHOWN else ''}"
    return f"{counted(len(gone), 'pod')} gone, and not seen why: {named}; a DaemonSet or a StatefulSet deletes a rejected pod at once"


def _is_late(sight: Sight, baseline: Baseline, since: Since) -> bool:
    """Whether the change is too long ago to be the cause of what begins now: by the node's own clock, also in a new process."""
    apart = seconds_between(baseline.lease, sight.lease.renewed) if sight.lease is not None else None
    return (since.seconds if apart is None else apart) > OURS


def _never_ran(pod: Pod) -> bool:
    """An evicted pod without a container that ran: nothing tells when it was evicted."""
    return pod.reason == EVICTED and not any(container.since for container in pod.containers)


def _devices_kept(sight: Sight, baseline: Baseline, since: Since) -> Judged:
    """No extended resource shrank, and no pod with devices failed or was restarted by us."""
    if baseline.devices is None:
        return Verdict.UNKNOWN, "the devices before the change are not known"
    holders = tuple(pod for pod in sight.pods if pod.devices and baseline.knew(pod) is not None)
    failed = [_failed(pod) for pod in holders if _ended(pod, baseline)]
    restarted = _restarted(holders, baseline)
    found = [_listed(failed, "pod with devices", "failed", "pods with devices")] if failed else []
    found += [_listed(restarted, "container with devices", "restarted", "containers with devices")] if restarted else []
    now = extended(sight.node)
    try:
        lost = [said for name, then in baseline.devices.items() if (said := _fewer(name, then, now.get(name)))]
    except ValueError:
        return Verdict.UNKNOWN, "the Node reports its devices in a form that is not known"
    if not found and lost and since.seconds <= REGISTERS:
        return Verdict.UNKNOWN, f"{', '.join(lost)}; plugins may take {REGISTERS:g} s to register after a restart"
    if not found and lost and _is_late(sight, baseline, since):
        return (
            Verdict.UNKNOWN,
            f"{', '.join(lost)}, seen later than {OURS:g} s after the change: a plugin may be restarting",
        )
    found += [f"devices lost: {', '.join(lost)}"] if lost else []
    if found:
        return Verdict.FAIL, "; ".join(found)
    kept = [f"{name} {allocatable}" for name, (_, allocatable) in now.items() if name in baseline.devices]
    return Verdict.PASS, f"allocatable as before: {', '.join(kept)}" if kept else "the Node has no devices"


def _failed(pod: Pod) -> str:
    return f"{pod.name} with {', '.join(pod.devices)} ({pod.reason or 'no reason'}: {printable(pod.message, 120) or 'no message'})"


def _fewer(name: str, then: tuple[str, str], now: tuple[str, str] | None) -> str:
    """What is gone of an extended resource; ``""``: nothing. A resource that is not reported any more is gone."""
    for what, before, after in zip(("capacity", "allocatable"), then, now or ("", ""), strict=True):
        if whole(before or "0") > whole(after or "0"):
            return f"{name} {what} {printable(before, 20)} → {printable(after, 20) or 'not reported'}"
    return ""


def _ended(pod: Pod, baseline: Baseline) -> str:
    """Why a pod counts as harmed, or ``""``. A pod that is being deleted, or that had ended before, does not count; nor does one that
    was evicted for a limit of its own.

    New pods count when they were rejected: controllers replace a rejected pod within seconds, often on the same node. A
    pod that must run without an end counts however it ended: some kubelets leave a rejected one as Succeeded.
    """
    if pod.phase not in ENDED or pod.deleting or baseline.over(pod):
        return ""
    if pod.reason == OWN_DEADLINE or (pod.reason == EVICTED and any(form in pod.message for form in OWN_LIMIT)):
        return ""
    ran = [container for container in pod.containers if container.since]
    if pod.reason == EVICTED and ran and not any(_by_us(container, baseline) for container in ran):
        return ""
    known = pod.reason in REJECTIONS or pod.reason == EVICTED or pod.reason.startswith("OutOf")
    rejected = known or pod.message.startswith(REJECTED)
    if not rejected and (baseline.knew(pod) is None or not pod.forever):
        return ""
    return f"{pod.name} {pod.phase} ({pod.reason or 'no reason'}: {printable(pod.message, 120) or 'no message'})"


def _containers_kept(sight: Sight, baseline: Baseline, since: Since) -> Judged:
    restarted = _restarted(sight.pods, baseline)
    if restarted:
        return Verdict.FAIL, _listed(restarted, "container", "restarted")
    if not _is_late(sight, baseline, since) and (gone := _gone(sight, baseline, since)):
        return Verdict.UNKNOWN, gone
    watched = [then for _, _, then in _watched(sight.pods, baseline)]
    steady = sum(then.steady for then in watched)
    unsteady = len(watched) - steady
    noise = f"; {unsteady} were unstable before and are not counted" if unsteady else ""
    return Verdict.PASS, f"{counted(steady, 'container')} kept{noise}"


def _watched(pods: Iterable[Pod], baseline: Baseline) -> Iterator[tuple[Pod, Container, Then]]:
    """The containers that were there before the change."""
    for pod in pods:
        for container in () if pod.deleting else pod.containers:
            if then := (baseline.knew(pod) or {}).get(container.name):
                yield pod, container, then


def _restarted(pods: Iterable[Pod], baseline: Baseline) -> list[str]:
    """Those that were steady before and that our restart may have restarted."""
    return [
        f"{pod.name} {container.name} ({container.state}, restarts {then.restarts} → {container.restarts})"
        for pod, container, then in _watched(pods, baseline)
        if then.steady and _another(pod, container, then) and _by_us(container, baseline)
    ]


def _another(pod: Pod, container: Container, then: Then) -> bool:
    """Whether it is another instance than before, or has ended and must be started again. One that is done may have been
    removed from the runtime: then it has no id.
    """
    if container.done and not container.id:
        return container.restarts != then.restarts
    ended = container.state != "running" and pod.forever and not container.done
    return ended or (then.id, then.restarts) != (short(container.id), container.restarts)


def _by_us(container: Container, baseline: Baseline) -> bool:
    """Whether our restart can be the cause; without a readable time, it can."""
    apart = seconds_between(baseline.lease, container.since)
    return apart is None or apart <= OURS


def _image_pulls(sight: Sight, baseline: Baseline) -> Judged:
    known = [said for pod in sight.pods if (then := baseline.knew(pod)) is not None for said in _not_pulled(pod, then)]
    new = [said for pod in sight.pods if baseline.knew(pod) is None for said in _not_pulled(pod, {})]
    if known or new:
        found = [_listed(known, "container", "cannot pull an image that it could pull before")] if known else []
        found += [_listed(new, "container", "of new pods cannot pull an image")] if new else []
        return Verdict.FAIL, "; ".join(found)
    old = sum(then.pulling_failed for pod in baseline.pods.values() for then in pod.values())
    return Verdict.PASS, "no new pull failure" + (f"; {old} already failed before" if old else "")


def _not_pulled(pod: Pod, before: Mapping[str, Then]) -> Iterator[str]:
    if pod.deleting or pod.phase in ENDED:
        return
    for container in pod.containers:
        then = before.get(container.name)
        if container.reason in PULL_FAILURES and not (then and then.pulling_failed):
            yield f"{pod.name} {container.name} ({container.reason}: {printable(container.message, 160)})"


def _listed(found: list[str], what: str, happened: str, several: str = "") -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    many = f"{len(found)} {several}" if several and len(found) != 1 else counted(len(found), what)
    return f"{many} {happened}: {', '.join(map(printable, found[:SHOWN]))}{more}"
