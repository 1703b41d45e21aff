"""Where inventories find nodes that they do not list themselves."""

from __future__ import annotations

from rollout.adapters.inventory_scripts import InventoryScripts
from rollout.core.model.live import LiveNode

# ruff: noqa: PLC0415 - what asks over HTTP takes 0.1 s to import, and most calls ask nothing


class RealSources:
    """Ansible inventories by running them, API servers by their kubeconfigs; ``kubeconfig`` in the place of any other."""

    def __init__(self, kubeconfig: str = "") -> None:
        self._kubeconfig = kubeconfig

    def ansible(self, path: str) -> str:
        return InventoryScripts().ansible(path)

    def live(self, kubeconfig: str, context: str) -> tuple[LiveNode, ...]:
        from rollout.adapters.kubernetes.client import ApiClient
        from rollout.adapters.kubernetes.cluster import KubernetesCluster
        from rollout.adapters.kubernetes.kubeconfig import load_kubeconfig

        chosen = (self._kubeconfig, "") if self._kubeconfig else (kubeconfig, context)
        cluster = KubernetesCluster(ApiClient(load_kubeconfig(*chosen)))
        try:
            return cluster.nodes()
        finally:
            cluster.close()
