"""Nodes, and what runs on them, as the API server reports them: frozen values in the API's own terms.

Times are the API's RFC 3339 text. A field that the API did not give is ``""``.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class LiveNode:
    """One Node object. ``ready`` is the Ready condition's status: ``True``, ``False``, ``Unknown`` or ``""`` (none)."""

    name: str
    uid: str
    created: str
    addresses: tuple[tuple[str, str], ...]  # ("InternalIP", "10.0.0.1"), in the API's order
    labels: Mapping[str, str]
    unschedulable: bool  # cordoned
    taints: tuple[str, ...]  # "key=value:Effect", "key:Effect" without a value
    kubelet_version: str  # "v1.33.4"
    runtime: str  # "containerd://2.1.4"
    os_image: str  # "Bottlerocket OS 1.20 (aws-k8s-1.33)"
    ready: str
    ready_message: str = ""  # the condition's reason and message
    capacity: tuple[tuple[str, str], ...] = ()  # ("cpu", "8"), ("memory", "32Gi"), ("pods", "110"), …
    allocatable: tuple[tuple[str, str], ...] = ()
    cordoned_by: str = ""  # the run named by the cordon's mark; "": no run of rollout
    machine_id: str = ""  # of its machine, as the kubelet read it at its start
    ready_since: str = ""  # the condition's lastTransitionTime
    pressures: tuple[str, ...] = ()  # the conditions MemoryPressure, DiskPressure and PIDPressure that are True


@dataclass(frozen=True, slots=True)
class Lease:
    """A node's lease; ``renewed`` is by the node's own clock, ``version`` changes with every write.

    ``lasts``: seconds for which it is valid, the kubelet's nodeLeaseDurationSeconds; a kubelet renews it every quarter of them (0: not given).
    """

    version: str
    renewed: str
    lasts: int = 0


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod, init containers too. ``id`` is that of the running or last instance.

    ``state`` is ``running``, ``waiting`` or ``terminated``; ``reason`` and ``message`` are that state's. ``since`` is when
    the instance started or, not running, when the last one ended. ``done``: it has ended, and by its restart policy it is not started again.
    """

    name: str
    id: str
    restarts: int
    state: str
    reason: str = ""
    message: str = ""
    since: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod on a node. ``deleting``: its deletion was requested; ``forever``: its restartPolicy is Always.

    ``devices``: the extended resources of its containers, such as ``nvidia.com/gpu``, and its resource claims.
    ``controller``: the kind of what makes such pods anew (``""``: nothing).
    """

    uid: str
    name: str  # "namespace/name"
    phase: str
    reason: str = ""
    message: str = ""
    deleting: bool = False
    forever: bool = True
    containers: tuple[Container, ...] = ()
    devices: tuple[str, ...] = ()
    controller: str = ""


@dataclass(frozen=True, slots=True)
class Sight:
    """One reading of a node through the API: the Node, its lease (``None``: it has none) and its pods.

    ``pods_at`` is the resourceVersion of the list of pods (0: not given, or not a number).
    """

    node: LiveNode
    lease: Lease | None
    pods: tuple[Pod, ...]
    pods_at: int = 0


@dataclass(frozen=True, slots=True)
class PullCounter:
    """The image pulls that a kubelet's process has ended since it started, and how many of them failed."""

    ended: int
    failed: int
