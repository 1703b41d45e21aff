"""Measures the newest run of each cluster of a journal."""

from __future__ import annotations

from collections.abc import Iterator

from rollout.app.following import attendance
from rollout.app.live_run import LiveRuns
from rollout.app.owned import owned_in
from rollout.core.presentation.metrics import MeasuredRun, Unreadable
from rollout.errors import StateError


def measured_runs(runs: LiveRuns) -> Iterator[MeasuredRun | Unreadable]:
    """``StateError``: the journal cannot be read at all."""
    journal = runs.journal()
    newest = {header.cluster: header for header in reversed(journal.listed())}
    for cluster, header in sorted(newest.items()):
        try:
            story = runs.get(header.run).look().story
        except StateError as error:
            if error.reference not in ("another-version", "journal-unreadable", "journal-broken"):
                raise
            yield Unreadable(cluster)
            continue
        controller = attendance(journal, cluster, header.run)
        owned = owned_in(journal, cluster)
        yield MeasuredRun(
            story.state, controller, header.at, story.ended, owned.compared if owned is not None else None
        )
