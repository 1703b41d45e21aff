"""Owned settings of a cluster that has another name now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rollout.app.call import CallPorts
from rollout.app.following import other_clusters
from rollout.app.load import INVENTORY_FOLDER, names_in
from rollout.app.owned import owned_in
from rollout.features.own.words import OwnedUnderOldName


def owned_under_old_names(
    call: CallPorts, cluster: str, told: Mapping[str, frozenset[str]]
) -> Iterator[OwnedUnderOldName]:
    """Settings that are owned under a cluster without an inventory, of which nodes of ``cluster`` have receipts: it had that name.

    ``told``: node → the runs that it has a receipt of. Nothing compares nodes with such settings any more.
    """
    journal = call.past_runs()
    others = other_clusters(journal, cluster)
    nodes: dict[str, list[str]] = {}
    for name, runs in told.items():
        for old in {others[run] for run in runs if run in others}:
            nodes.setdefault(old, []).append(name)
    listed = names_in(call.files(), INVENTORY_FOLDER) if nodes else ()
    for old, names in nodes.items():
        owned = owned_in(journal, old) if old not in listed else None
        if owned is not None:
            yield OwnedUnderOldName(old, owned.runs, tuple(names))
