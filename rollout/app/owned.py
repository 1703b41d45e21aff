"""Owned settings of a cluster, as its journal has them."""

from __future__ import annotations

from rollout.app.ports import PastRuns
from rollout.core.presentation.owned_text import OwnedNoted, owned_noted


def owned_in(journal: PastRuns, cluster: str) -> OwnedNoted | None:
    """``None``: no setting is owned."""
    return owned_noted((note.at, note.text) for note in journal.notes(cluster))
