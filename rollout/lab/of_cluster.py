"""A lab of the nodes of a cluster, in the place where a project keeps it."""

from __future__ import annotations

from pathlib import Path

from rollout.core.model.inventory import Inventory
from rollout.lab import spec
from rollout.lab.spec import LabSpec, addresses

LAB_FOLDER = Path(".rollout/lab")
"""In the project's folder."""
SSH_CONFIG = "ssh_config"


def serves(nodes: int, cluster: str) -> str:
    """What people are told when it is up."""
    return f"{nodes:,} nodes of {cluster} serve on loopback."


def specification(inventory: Inventory, names: list[str], restart_sec: float) -> LabSpec:
    """The specification of a lab that serves these nodes of an inventory."""
    nodes = [inventory.nodes[name] for name in names]
    served = tuple(
        spec.node(node.name, node.address, address, dict(node.labels))
        for node, address in zip(nodes, addresses(len(nodes)), strict=True)
    )
    members = frozenset(names)
    sets = {word: tuple(sorted(known & members)) for word, known in inventory.nodesets.items() if known & members}
    return LabSpec(inventory.cluster, served, restart_sec, sets, inventory.api_server)
