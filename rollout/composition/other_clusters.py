"""Whether other inventories of the project name machines of a cluster. Reads files, and what was last listed of live nodes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from rollout.app.reading import access_to
from rollout.app.shared_machines import SharedMachines, shared_machines
from rollout.composition.project import project_at
from rollout.composition.wiring import Session
from rollout.core.model.inventory import Inventory
from rollout.errors import RolloutError

if TYPE_CHECKING:
    from rollout.adapters.ssh import Resolver


def ways_to(resolver: Resolver, inventory: Inventory) -> Mapping[str, Hashable]:
    return resolver.ways(access_to(inventory, "", tuple(inventory.nodes)).targets.values())


def machines_in_others(session: Session, cluster: str) -> tuple[SharedMachines, ...]:
    """An inventory that cannot be read, or with nodes that were never listed, is passed over: `check` reports it.

    Workers of regions have ways of their own, which are not known.
    """
    others = [name for name in project_at(session.folder).clusters() if name != cluster]
    if session.engine is not None or not others:
        return ()
    inventories: list[Inventory] = []
    for name in (cluster, *others):
        with suppress(RolloutError):
            inventories.append(session.only_remembered(name))
    found = shared_machines(inventories, partial(ways_to, session.resolver))
    return tuple(each for each in found if cluster in (each.one.cluster, each.other.cluster))
