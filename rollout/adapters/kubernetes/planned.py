"""A pod as planning needs it: what it asks of its node, and how it ends."""

from __future__ import annotations

from dataclasses import replace

from rollout.adapters.kubernetes.leaving import leaving_pod
from rollout.adapters.kubernetes.placed import placed_pod
from rollout.core.model.placed import PlacedPod


def planned_pod(document: object) -> PlacedPod:
    return replace(placed_pod(document), ends=leaving_pod(document))
