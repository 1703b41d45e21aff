"""Finds the cordons that a run left on nodes, by their mark, and lifts them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rollout.app.ports import Cluster, Journal
from rollout.core.model.pods import Cordon
from rollout.core.run.events import CordonsLifted
from rollout.core.run.journal_codec import encode_event
from rollout.core.run.machine import as_journaled
from rollout.core.run.state import RunState
from rollout.errors import RemoteError

ASK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Lifted:
    """The nodes that were uncordoned, and the nodes where that failed, each with the reason."""

    nodes: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()

    def without(self, names: Collection[str]) -> tuple[str, ...]:
        """The nodes of ``names`` that have no such cordon now. All of them must have been asked about."""
        still = dict(self.failed)
        return tuple(name for name in names if name not in still)


def lift_cordons(
    cluster: Cluster, names: Collection[str], run: str = "", spared: Collection[str] = frozenset()
) -> Lifted:
    """Lift cordons with the mark of ``run`` (``""``: of every run except ``spared``) and any token from these nodes.

    ``RemoteError`` if the nodes cannot be listed.
    """
    ours = [
        node
        for node in cluster.nodes()
        if node.name in names and node.cordoned_by and run in ("", node.cordoned_by) and node.cordoned_by not in spared
    ]
    lifted: list[str] = []
    failed: list[tuple[str, str]] = []
    for node in ours:
        try:
            whose = cluster.uncordon(node.name, node.cordoned_by, None, ASK_SECONDS)
        except RemoteError as error:
            failed.append((node.name, f"{error.message} [{error.reference}]"))
            continue
        if whose is not Cordon.OURS:
            lifted.append(node.name)
    return Lifted(tuple(lifted), tuple(failed))


def write_down_lifted(
    journal: Journal, state: RunState, names: tuple[str, ...], at: float, who: str, reason: str
) -> None:
    """Record in the journal of an ended run, under the cluster's lease, that these cordons are lifted."""
    event = as_journaled(state, CordonsLifted(at, names, who, reason))
    if names and event is not None:
        journal.append(state.order.run, [encode_event(event)])
