"""A lab node's objects in the API: Node, Lease, Pods and configz, built on request. Field names are the API's.

Times in them are from the node's own clock, as its kubelet would write them.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rollout.lab import layouts, pods, runtimes
from rollout.lab.machine import LabMachine
from rollout.lab.service import UnitPhase
from rollout.lab.spec import NodeSpec

Object = dict[str, Any]

_SPACE = uuid.UUID("6d2c51a4-6d7e-4e53-9a6b-0b7d1b0f5a10")
_CALM = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_READY = {
    "True": ("KubeletReady", "kubelet is posting ready status"),
    "False": (
        "KubeletNotReady",
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady",
    ),
    "Unknown": ("NodeStatusUnknown", "Kubelet stopped posting node status."),
}


@dataclass(frozen=True, slots=True)
class NodeMoment:
    """One node at one instant: ``now`` by the lab's clock; the node's own is ``ahead`` of it."""

    spec: NodeSpec
    machine: LabMachine
    now: float
    ahead: float

    @property
    def ready(self) -> str:
        """The status of its condition Ready."""
        if not self.machine.pods.lease.is_fresh(self.now):
            return "Unknown"
        return "True" if self.machine.pods.ready else "False"

    @property
    def cordoned(self) -> bool:
        return self.machine.pods.cordoned or self.machine.pods.kind == pods.CORDONED

    @property
    def room(self) -> int:
        """The pod capacity that its kubelet reports."""
        return int(_capacity(self)["pods"])

    def when(self, moment: float | None) -> str:
        """A moment of the lab's clock as the API writes a time."""
        return self._at(moment).strftime("%Y-%m-%dT%H:%M:%SZ")

    def when_exactly(self, moment: float | None) -> str:
        """… and as it writes a MicroTime."""
        return self._at(moment).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _at(self, moment: float | None) -> datetime:
        return datetime.fromtimestamp(self.ahead + (self.now if moment is None else moment), UTC)


def node(seen: NodeMoment) -> Object:
    """``v1.Node``."""
    spec, tree = seen.spec, seen.machine.tree
    taints = _taints(seen)
    return {
        "metadata": {
            **metadata(seen, spec.name, f"node/{spec.name}"),
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": spec.name,
                "kubernetes.io/os": "linux",
                **{key: value for key, value in spec.labels.items() if "/" in key},
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0", **seen.machine.pods.notes},
        },
        "spec": {
            "podCIDR": "10.244.0.0/24",
            **({"unschedulable": True} if seen.cordoned else {}),
            **({"taints": taints} if taints else {}),
        },
        "status": {
            "capacity": {**_capacity(seen), **_devices(seen)},
            "allocatable": {**_capacity(seen), **_devices(seen)},
            "conditions": [*_calm(seen), _readiness(seen)],
            "addresses": [
                {"type": "InternalIP", "address": spec.known_as},
                {"type": "Hostname", "address": spec.name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": _line(tree.read("/etc/machine-id")),
                "systemUUID": uid(f"system/{spec.name}"),
                "bootID": _line(tree.read("/proc/sys/kernel/random/boot_id")),
                "kernelVersion": "6.1.0-18-amd64",
                "osImage": "Debian GNU/Linux 12 (bookworm)",
                "containerRuntimeVersion": _runtime_version(spec),
                "kubeletVersion": f"v{spec.version}",
                "kubeProxyVersion": f"v{spec.version}",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
            "images": [],
        },
    }


def lease(seen: NodeMoment) -> Object | None:
    """``coordination.k8s.io/v1.Lease`` in ``kube-node-lease``; a kubelet that never ran has none."""
    renewed = seen.machine.pods.lease.renewed(seen.now)
    if renewed is None:
        return None
    name = seen.spec.name
    return {
        "metadata": {**metadata(seen, name, f"lease/{name}"), "namespace": "kube-node-lease"},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": seen.machine.pods.lease.lasts,
            "renewTime": seen.when_exactly(renewed),
        },
    }


def configz(seen: NodeMoment) -> Object | None:
    """``{"kubeletconfig": …}`` of the running kubelet; ``None`` when none runs."""
    for service in seen.machine.kubelets():
        if service.phase is UnitPhase.RUNNING and service.pid:
            return {"kubeletconfig": dict(service.start.values)}
    return None


def metrics(seen: NodeMoment) -> str:
    """The running kubelet's counters of requests to its runtime; ``""`` when none runs. One appears with its first request."""
    if not any(service.phase is UnitPhase.RUNNING and service.pid for service in seen.machine.kubelets()):
        return ""
    counts = {"pull_image": seen.machine.pulled, "version": 1}
    name = "kubelet_runtime_operations_total"
    lines = [f'{name}{{operation_type="{kind}"}} {count}\n' for kind, count in counts.items() if count]
    return "".join((f"# TYPE {name} counter\n", *lines))


def metadata(seen: NodeMoment, name: str, thing: str) -> Object:
    """``resourceVersion`` grows with every renewal of the lease, and with changes in between."""
    renewed = seen.machine.pods.lease.renewed(seen.now) or 0.0
    version = str(round(renewed * 1000) + seen.machine.pods.changes)
    return {
        "name": name,
        "uid": uid(thing),
        "resourceVersion": version,
        "creationTimestamp": "2021-03-01T09:00:00Z",
    }


def _readiness(seen: NodeMoment) -> Object:
    state = seen.machine.pods
    reason, message = _READY[seen.ready]
    _, since = state.lease.seen_alive(seen.now)
    lost = since or (state.lease.last or state.started) + state.lease.grace
    changed = {"True": since or state.turned or state.started, "False": state.turned, "Unknown": lost}[seen.ready]
    beat = seen.when(state.lease.renewed(seen.now) or state.started)
    return {
        "type": "Ready",
        "status": seen.ready,
        "lastHeartbeatTime": beat,
        "lastTransitionTime": seen.when(changed),
        "reason": reason,
        "message": message,
    }


def _calm(seen: NodeMoment) -> list[Object]:
    state = seen.machine.pods
    beat, lost = seen.when(state.lease.renewed(seen.now) or state.started), seen.ready == "Unknown"
    reason, message = _READY["Unknown"]
    return [
        {
            "type": kind,
            "status": "Unknown" if lost else str(kind in state.pressures),
            "lastHeartbeatTime": beat,
            "lastTransitionTime": seen.when(state.lease.since if kind in state.pressures else state.started),
            "reason": reason
            if lost
            else calm.replace("Sufficient", "Insufficient").replace("HasNo", "Has")
            if kind in state.pressures
            else calm,
            "message": message
            if lost
            else text.replace("sufficient", "insufficient").replace("has no", "has")
            if kind in state.pressures
            else text,
        }
        for kind, calm, text in _CALM
    ]


def _taints(seen: NodeMoment) -> list[Object]:
    found = []
    if seen.cordoned:
        found.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    if seen.ready != "True":
        key = "not-ready" if seen.ready == "False" else "unreachable"
        found += [{"key": f"node.kubernetes.io/{key}", "effect": effect} for effect in ("NoSchedule", "NoExecute")]
    return found


def _capacity(seen: NodeMoment) -> Mapping[str, str]:
    values: Mapping[str, object] = {}
    for service in seen.machine.kubelets():
        values = service.start.values
    return {"cpu": "32", "memory": "131072000Ki", "ephemeral-storage": "468Gi", "pods": str(values.get("maxPods", 110))}


def _devices(seen: NodeMoment) -> Mapping[str, str]:
    """The GPUs of a node with the labels of NVIDIA's feature discovery. Until their plugin registers with a new kubelet, it has none."""
    labels = seen.spec.labels
    if labels.get("nvidia.com/gpu.present") != "true":
        return {}
    return {"nvidia.com/gpu": "0" if seen.machine.pods.gone else labels.get("nvidia.com/gpu.count", "8")}


def scheme(spec: NodeSpec) -> str:
    """The runtime's name in container ids and versions."""
    return runtimes.described(spec.runtime).stand_in.scheme


def _runtime_version(spec: NodeSpec) -> str:
    program = runtimes.described(spec.runtime).stand_in.reports
    found = re.search(r"\d+\.\d+\.\d+\S*", layouts.programs(spec).get(program, ""))
    return f"{scheme(spec)}://{found[0].rstrip(',') if found else '0.0.0'}"


def uid(thing: str) -> str:
    """Deterministic for the same input."""
    return str(uuid.uuid5(_SPACE, thing))


def digest(text: str) -> str:
    """A made-up id."""
    return hashlib.sha256(text.encode()).hexdigest()


def _line(data: bytes | None) -> str:
    return (data or b"").decode("ascii", "replace").strip()
