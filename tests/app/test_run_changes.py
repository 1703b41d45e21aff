"""What the runs of a journal change: from their plans, from the runs that they revert, and from what cannot be read whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.run_changes import change_of
from rollout.app.run_list import listed_runs
from rollout.app.status import status_document, status_of
from rollout.core.plans import plan_codec
from rollout.core.presentation.headline import ChangedSetting, NodesDone, WhatChanged
from rollout.core.presentation.run_list import RunStanding
from rollout.core.run.state import Verb
from tests.app.site import NAMES, Site

FORTH = WhatChanged("p", (ChangedSetting("maxPods", "110", "120"),))
BACK = WhatChanged("", (ChangedSetting("maxPods", "120", "110"),), ("r1",))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(SqlJournal(tmp_path))


def test_a_run_and_its_rollback_name_the_setting_and_each_other(site: Site) -> None:
    site.apply()
    site.roll_back("r1")
    back, forth = listed_runs(site.journal)
    assert (forth.change, back.change) == (FORTH, BACK)
    assert (forth.progress, back.progress) == (NodesDone(len(NAMES), len(NAMES)), NodesDone(len(NAMES), len(NAMES)))
    assert [later.run for later in forth.rolled_back] == [back.run]
    assert forth.standing == "done, rolled back"
    found = status_document(status_of(site.journal, "r1", 0.0))
    assert (found.change, found.progress) == (FORTH, NodesDone(len(NAMES), len(NAMES)))  # type: ignore[union-attr]


def test_a_run_that_has_not_ended_has_its_nodes_so_far(site: Site) -> None:
    site.killed("n2", Verb.APPLY)
    (run,) = listed_runs(site.journal)
    assert (run.state, run.change, run.ended) == (RunStanding.NO_CONTROLLER, FORTH, None)
    assert run.progress is not None
    assert run.progress.done < run.progress.total == len(NAMES)


def test_a_rollback_of_a_run_that_the_journal_does_not_know_still_names_it(site: Site) -> None:
    site.apply()
    site.roll_back("r1")
    header = site.journal.header("r2")
    elsewhere = replace(header, run="r9", order=header.order.replace("r1-", "r8-"))
    assert change_of(site.journal, elsewhere) == WhatChanged("", (), ("r8",))


@pytest.mark.parametrize(
    "plan",
    [b"", b"not a plan", b'{\n"groups": [\n}', b'{\n"groups": 7\n}', b'{\n"groups": [{"change": {"files": [7]}}]\n}'],
)
def test_a_plan_of_another_form_changes_nothing_that_is_known(plan: bytes) -> None:
    assert plan_codec.reasons_in(plan) == ()
