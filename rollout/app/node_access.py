"""How nodes are reached, according to the inventory. What reads or changes them is elsewhere, and takes long to import."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rollout.app.ports import Target
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory, Node
from rollout.core.model.regions import region_of_zone


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """How nodes are reached: the agent program, whether it runs through sudo, and the address of each node."""

    program: str
    targets: Mapping[str, Target]
    sudo: Mapping[str, bool]


def access_to(inventory: Inventory, program: str, names: tuple[str, ...]) -> NodeAccess:
    """How these nodes are reached, according to the inventory."""
    chosen = [inventory.nodes[name] for name in names]
    return NodeAccess(
        program=program,
        targets={node.name: _target(node, inventory.controller_ssh) for node in chosen},
        sudo={node.name: node.through_sudo for node in chosen},
    )


def _target(node: Node, regions: Collection[str]) -> Target:
    itself = bool(region_of_zone(node.zone, regions))
    return Target(node.name, node.address, node.user, node.port, node.zone, controller_ssh=itself, become=node.become)


def only(access: NodeAccess, names: Iterable[str]) -> NodeAccess:
    """The same access, to these nodes only."""
    chosen = tuple(names)
    return NodeAccess(
        access.program, {name: access.targets[name] for name in chosen}, {name: access.sudo[name] for name in chosen}
    )
