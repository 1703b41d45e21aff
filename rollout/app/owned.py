"""Owned settings of a cluster, as its journal has them."""

from __future__ import annotations

from dataclasses import replace

from rollout.app.node_histories import ClusterHistory, cluster_history, nodes_by_run
from rollout.app.ports import PastRuns
from rollout.core.presentation.owned_text import OwnedNoted, owned_noted


def noted_in(journal: PastRuns, cluster: str) -> OwnedNoted | None:
    """With runs that were rolled back since. ``None``: there is none."""
    return owned_noted((note.at, note.text) for note in journal.notes(cluster))


def owned_in(journal: PastRuns, cluster: str) -> OwnedNoted | None:
    """``None``: no setting is owned. A rollback counts once it has ended: status and metrics ask this often, and do not replay a run."""
    noted = noted_in(journal, cluster)
    return noted and standing(noted, cluster_history(journal, cluster, _not_ended(journal, cluster)))


def _not_ended(journal: PastRuns, cluster: str) -> tuple[str, ...]:
    """The run that has the cluster, with or without a controller."""
    holder = journal.holder(cluster)
    return (holder.run,) if holder is not None and journal.summary(holder.run) is None else ()


def standing(noted: OwnedNoted, history: ClusterHistory) -> OwnedNoted | None:
    """Without the runs that were rolled back on all their nodes. A run that the history does not reach may stand."""
    there = nodes_by_run(history.nodes, "")
    runs = tuple(run for run in noted.runs if run in there or run not in history.runs)
    return replace(noted, runs=runs) if runs else None
