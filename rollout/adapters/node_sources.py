"""Where inventories find nodes that they do not list themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rollout.adapters.inventory_scripts import InventoryScripts
from rollout.core.model.live import LiveNode
from rollout.core.model.placed import PlacedPod

if TYPE_CHECKING:
    from rollout.adapters.kubernetes.cluster import KubernetesCluster

# ruff: noqa: PLC0415 - what asks over HTTP takes 0.1 s to import, and most calls ask nothing

CONFIGZ_SECONDS = 15.0


class RealSources:
    """Ansible inventories by running them, API servers by their kubeconfigs; ``kubeconfig`` in the place of any other."""

    def __init__(self, kubeconfig: str = "") -> None:
        self._kubeconfig = kubeconfig

    def ansible(self, path: str) -> str:
        return InventoryScripts().ansible(path)

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        with self._cluster(kubeconfig, context) as cluster:
            return cluster.nodes()

    def pods(self, kubeconfig: str, context: str, nodes: Collection[str]) -> tuple[PlacedPod, ...]:
        with self._cluster(kubeconfig, context) as cluster:
            return cluster.pods(nodes)

    def configz(self, kubeconfig: str, context: str, node: str) -> Mapping[str, Any]:
        with self._cluster(kubeconfig, context) as cluster:
            return cluster.configz(node, CONFIGZ_SECONDS)

    @contextmanager
    def _cluster(self, kubeconfig: str, context: str) -> Iterator[KubernetesCluster]:
        from rollout.adapters.kubernetes.client import ApiClient
        from rollout.adapters.kubernetes.cluster import KubernetesCluster
        from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig

        chosen = (self._kubeconfig, "") if self._kubeconfig else (kubeconfig, context)
        cluster = KubernetesCluster(ApiClient(load_kubeconfig(*chosen)))
        try:
            yield cluster
        finally:
            cluster.close()
