"""Where inventories find nodes that they do not list themselves."""

from __future__ import annotations

from rollout.adapters.inventory_scripts import InventoryScripts
from rollout.app.ports import Cluster
from rollout.errors import InputError, Problem


class RealSources:
    """Ansible inventories by running them, API servers by their kubeconfigs."""

    def ansible(self, path: str) -> str:
        return InventoryScripts().ansible(path)

    def cluster(self, kubeconfig: str, context: str) -> Cluster:
        raise InputError((Problem("not-there-yet", f"{kubeconfig} {context}: Node objects cannot be asked for yet"),))
