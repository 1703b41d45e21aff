"""A lab of the nodes of a cluster, in the place where a project keeps it."""

from __future__ import annotations

from pathlib import Path

from rollout.core.model.inventory import Inventory, Node
from rollout.core.text.terminal import counted
from rollout.kubelet import versions
from rollout.lab import spec
from rollout.lab.spec import LabSpec, addresses

LAB_FOLDER = Path(".rollout/lab")
"""In the project's folder."""
SSH_CONFIG = "ssh_config"


def serves(lab: LabSpec) -> str:
    """What people are told when it is up: also which kubelets it plays, because nobody may have chosen them."""
    played = {f"kubelet {node.version} with {node.runtime}" for node in lab.nodes}
    what = next(iter(played)) if len(played) == 1 else f"{len(played)} kinds of kubelets"
    verb = "serves" if len(lab.nodes) == 1 else "serve"
    return f"{counted(len(lab.nodes), 'node')} of {lab.cluster} {verb} on loopback: {what}."


def specification(inventory: Inventory, names: list[str], restart_sec: float) -> LabSpec:
    """The specification of a lab that serves these nodes of an inventory."""
    nodes = [inventory.nodes[name] for name in names]
    served = tuple(
        spec.node(node.name, node.address, address, _labels(node, inventory.api_server))
        for node, address in zip(nodes, addresses(len(nodes)), strict=True)
    )
    members = frozenset(names)
    sets = {word: tuple(sorted(known & members)) for word, known in inventory.nodesets.items() if known & members}
    return LabSpec(inventory.cluster, served, restart_sec, sets, inventory.api_server)


def _labels(node: Node, api_server: str) -> dict[str, str]:
    """A node without a version plays the API server's, unless that is newer than the current one."""
    served, current = versions.known(api_server), versions.known(versions.CURRENT)
    version = api_server if (served.minor, served.patch) < (current.minor, current.patch) else versions.CURRENT
    return {"kubeletVersion": version, **node.labels}
