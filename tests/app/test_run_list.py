"""The list of runs reads summaries. A replay of each run would take a long time for a long journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.run_list import listed_runs
from tests.core.presentation import journals
from tests.features.serve.serving import keep


def test_a_run_with_a_pending_recovery_is_not_replayed_where_no_rollback_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, play = journals.halted(600)
    journal = keep(tmp_path, "r1", plan, play)
    read: list[str] = []
    whole = SqlJournal.events

    def noted(self: SqlJournal, run: str, after: int = 0) -> Sequence[str]:
        read.append(run)
        return whole(self, run, after)

    monkeypatch.setattr(SqlJournal, "events", noted)
    found = next(listed_runs(journal))
    assert found.pending_recovery.nodes
    assert read == []
    journal.close()
