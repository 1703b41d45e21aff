"""What pods on nodes ask of them, as the API server tells it: all that a kubelet looks at when it admits a pod.

Quantities are the API's own text (``100m``, ``1Gi``); nothing is added up yet.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollout.core.model.draining import LeavingPod

Pairs = tuple[tuple[str, str], ...]
"""Name and value, in the API's order."""


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node; ``address`` ``""`` is all of its addresses."""

    address: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class Ask:
    """One container's requests. ``init``: an init container; ``stays``: one that runs beside the others (a sidecar)."""

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

    ``ends``: how it would end, where that was asked. ``critical``: a static or mirror pod, or of a priority that only the system's own have; ``requests`` are those said for
    the pod as a whole, which beat its containers'.
    """

    node: str
    name: str  # "namespace/name"
    created: str  # RFC 3339
    asks: tuple[Ask, ...] = ()
    requests: Pairs = ()
    overhead: Pairs = ()
    selector: Pairs = ()
    terms: tuple[tuple[Requirement, ...], ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    static: bool = False
    critical: bool = False
    deleting: bool = False
    probed: bool = False  # a container of it has a readiness probe
    ends: LeavingPod | None = None
