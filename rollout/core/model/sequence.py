"""Clusters in sequence: stages of clusters, each with a plan of its own, and a budget over all of them."""

from __future__ import annotations

from dataclasses import dataclass

from rollout.core.model.playbook import Share
from rollout.errors import Place

DEFAULT_BUDGET = Share(percent=1.0)
DEFAULT_SOAK = 600.0


@dataclass(frozen=True, slots=True)
class StagedCluster:
    """``plan``: the path of its plan file, relative to the sequence file; ``place``: where that is written."""

    cluster: str
    plan: str
    place: Place


@dataclass(frozen=True, slots=True)
class ClusterStage:
    """Clusters that begin together. ``soak``: seconds between their last end and the next stage."""

    name: str
    clusters: tuple[StagedCluster, ...]
    soak: float


@dataclass(frozen=True, slots=True)
class ClusterSequence:
    """``budget``: of the nodes of all plans; at that many failed nodes no further cluster begins."""

    name: str
    stages: tuple[ClusterStage, ...]
    budget: Share

    @property
    def clusters(self) -> tuple[StagedCluster, ...]:
        return tuple(cluster for stage in self.stages for cluster in stage.clusters)
