"""Machines that two inventories of one project name. The runs of two clusters meet there, and neither knows the other's history.

The way to a machine identifies it: its address and port as the SSH configuration resolves them, behind its bastions. Two ports
of one address, and one private address behind two bastions, are different machines.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable
from rollout.errors import Place

Ways = Callable[[Inventory], Mapping[str, Hashable]]
"""Node → the way to it; without nodes of which it is not known."""


@dataclass(frozen=True, slots=True)
class NodesOfCluster:
    """A nodeset of a cluster, and where its inventory lists it."""

    cluster: str
    nodes: str
    place: Place | None

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place is not None else ""
        return f"{printable(self.nodes, 160)} of {self.cluster}{where}"


@dataclass(frozen=True, slots=True)
class SharedMachines:
    """``count`` machines that ``one`` and ``other`` lead to."""

    count: int
    one: NodesOfCluster
    other: NodesOfCluster

    @property
    def reference(self) -> str:
        return "machine-in-two-clusters"

    def __str__(self) -> str:
        what = "one machine" if self.count == 1 else counted(self.count, "machine")
        return (
            f"{what} in two clusters: {self.one} and {self.other}: "
            "a run of one cluster does not know what the other's did there; list each machine in one inventory "
            f"[{self.reference}]"
        )


def shared_machines(inventories: Iterable[Inventory], ways: Ways) -> tuple[SharedMachines, ...]:
    """Folded by where the inventories list them."""
    seen: dict[Hashable, tuple[Inventory, str]] = {}
    found: dict[tuple[str, Place | None, str, Place | None], list[tuple[str, str]]] = {}
    for inventory in inventories:
        mine = ways(inventory)
        for name, way in mine.items():
            if way not in seen:
                continue
            other, its = seen[way]
            key = (other.cluster, other.places.get(its), inventory.cluster, inventory.places.get(name))
            found.setdefault(key, []).append((its, name))
        for name, way in mine.items():
            seen.setdefault(way, (inventory, name))
    return tuple(
        SharedMachines(
            len(pairs),
            NodesOfCluster(one, fold(its for its, _ in pairs), place),
            NodesOfCluster(other, fold(name for _, name in pairs), there),
        )
        for (one, place, other, there), pairs in found.items()
    )
