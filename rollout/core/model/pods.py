"""What pods request of their nodes, as the API server reports it: everything that a kubelet checks when it admits a pod.

Quantities are the API's own text (``100m``, ``1Gi``); nothing is summed yet.
"""

from __future__ import annotations

from rollout.core.model.frozen import dataclass

# How pods on a node end, as the API server reports it.
#
# All times are seconds. A pod's ``uid`` distinguishes it from the next one of the same name.


BY_HAND = "kubectl uncordon NODE && kubectl annotate node NODE rollout/cordoned-by- rollout/token-"
"""Lifts a cordon of ours. Without the second half, the next cordon by others would count as ours."""


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """How one container ends. ``hook``: it has a preStop hook; ``hook_sleeps``: how long that surely takes (the seconds
    of a ``sleep`` handler or command), 0 if not known; ``sidecar``: an init container with ``restartPolicy: Always``;
    ``sleep_action``: the hook is the ``sleep`` handler, which kubelets have from some minor on.
    """

    name: str
    hook: bool = False
    hook_sleeps: int = 0
    sidecar: bool = False
    sleep_action: bool = False


@dataclass(frozen=True, slots=True)
class LeavingPod:
    """A pod on a node that will be drained.

    ``grace``: spec.terminationGracePeriodSeconds as written, which may be negative; ``deletion_grace``: what the API server
    granted when it was deleted (``None``: it is not being deleted), ``deleted``: its announced end (RFC 3339).
    ``stays``: why a drain leaves it: ``daemon-set``, ``static``, ``over``; ``""``: it must go. ``held_by``: finalizers.
    """

    uid: str
    name: str  # "namespace/name"
    grace: int = 30
    deletion_grace: int | None = None
    deleted: str = ""
    stays: str = ""
    local: bool = False  # it has an emptyDir, which is lost with it
    controlled: bool = True  # a controller will recreate it
    held_by: tuple[str, ...] = ()
    containers: tuple[ContainerEnd, ...] = ()


Pairs = tuple[tuple[str, str], ...]
"""Name and value, in the API's order."""


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node; ``address`` ``""`` is all of its addresses."""

    address: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """One container's requests. ``init``: an init container; ``stays``: it runs alongside the others (a sidecar)."""

    requests: Pairs
    init: bool = False
    stays: bool = False
    ports: tuple[HostPort, ...] = ()


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a node affinity term. ``of_field``: about ``metadata.name`` rather than a label."""

    key: str
    operator: str  # "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"
    values: tuple[str, ...] = ()
    of_field: bool = False


@dataclass(frozen=True, slots=True)
class Toleration:
    key: str = ""
    operator: str = "Equal"  # or "Exists"
    value: str = ""
    effect: str = ""  # "" = any


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod on a node. ``terms`` are its required node affinity (one of them must hold), ``None``: it has none.

    ``ends``: how it would end, if that was read. ``critical``: a static or mirror pod, or one with a system priority.
    ``requests`` are those of the pod as a whole, which override its containers'.
    """

    node: str
    name: str  # "namespace/name"
    created: str  # RFC 3339
    asks: tuple[ContainerRequest, ...] = ()
    requests: Pairs = ()
    overhead: Pairs = ()
    selector: Pairs = ()
    terms: tuple[tuple[Requirement, ...], ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    static: bool = False
    critical: bool = False
    deleting: bool = False
    probed: bool = False  # a container of it has a readiness probe
    own_users: bool = False  # it has a user namespace (``hostUsers: false``)
    ends: LeavingPod | None = None
