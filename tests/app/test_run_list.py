"""The list of runs reads summaries. A replay of each run would take a long time for a long journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.revert import revert_run
from rollout.app.run_list import listed_runs
from rollout.core.model.playbook import EMERGENCY_LIMITS
from rollout.core.run.state import Verb
from tests.app.call import FakeCall, FakeOperator
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


def test_as_many_reverted_nodes_as_confirmed_ones_are_no_rollback_of_all(tmp_path: Path) -> None:
    """n3 was lost and is reverted; n2 was confirmed, did not answer the rollback and has the change."""
    call = FakeCall(tmp_path)
    call.engine.then["n3", Verb.APPLY] = lambda: call.silence("n3")
    call.applied()
    call.agents.says, call.engine.then = {}, {}
    call.silence("n2")
    revert_run(call, FakeOperator(), "r1", "", EMERGENCY_LIMITS, force=False)
    _, run = listed_runs(call.journal())
    assert [later.nodes for later in run.rolled_back] == ["n[1,3]"]
    assert (run.is_rolled_back, run.standing) == (False, "done, incomplete, rolled back on 2 nodes")
    call.agents.says = {}
    revert_run(call, FakeOperator(), "r1", "", EMERGENCY_LIMITS, force=False)
    *_, run = listed_runs(call.journal())
    assert (run.is_rolled_back, run.standing) == (True, "done, incomplete, rolled back")
