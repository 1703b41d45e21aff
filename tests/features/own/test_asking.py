"""Owning a run: which runs can be owned, and what later runs and rollbacks make of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from rollout.app.owned import owned_in
from rollout.app.ports import PastRuns
from rollout.app.revert import revert_run
from rollout.core.model.plan import WantedSetting
from rollout.core.run.state import Verb
from rollout.errors import StateError, UsageError
from rollout.features.own.asking.owned import counting_runs, end_ownership, own_run
from rollout.features.own.words import owned_runs
from tests.app.call import CLUSTER, FakeCall, FakeOperator, elsewhere, old_nodes
from tests.app.site import SMALL
from tests.app.test_config_maps import CHANGE

WANTED = replace(SMALL, wanted=(WantedSetting("serializeImagePulls", "false", ""),))


def test_a_run_that_has_ended_is_owned_until_that_is_ended(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied(WANTED)
    assert own_run(call, "") == CLUSTER
    (run,) = counting_runs(call.past(), CLUSTER)
    assert (run.run, run.playbook, run.limit, run.wanted) == ("r1", WANTED.playbook, WANTED.limit, WANTED.wanted)
    assert end_ownership(call, "r1") == CLUSTER
    assert owned_in(call.past(), CLUSTER) is None
    with pytest.raises(UsageError) as caught:
        end_ownership(call, "r1")
    assert caught.value.reference == "not-owned"


def test_a_plan_that_does_not_record_its_settings_cannot_be_owned(tmp_path: Path) -> None:
    with pytest.raises(StateError) as caught:
        own_run(FakeCall(tmp_path).applied(), "r1")
    assert caught.value.reference == "settings-not-recorded"


def test_a_run_that_changed_no_node_cannot_be_owned(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied(replace(WANTED, nodes={}, waves=(), groups=(), config_map=CHANGE))
    with pytest.raises(StateError, match="run r1 changed no node") as caught:
        own_run(call, "")
    assert caught.value.reference == "changed-no-node"


class WithoutEvents:
    """A journal of which no events may be read."""

    def __init__(self, journal: PastRuns) -> None:
        self._journal = journal

    def __getattr__(self, name: str) -> object:
        assert name != "events"
        return getattr(self._journal, name)


def test_what_is_owned_is_known_without_a_replay_of_the_run_that_goes_on(tmp_path: Path) -> None:
    """Status and metrics ask it often."""
    call = FakeCall(tmp_path).applied(WANTED)
    own_run(call, "")
    call.agents = old_nodes()
    call.killed("n2", Verb.APPLY)
    call.held(elsewhere("r2", alive=True))
    owned = owned_in(cast("PastRuns", WithoutEvents(call.past())), CLUSTER)
    assert owned is not None
    assert owned.runs == ("r1",)


def test_a_run_that_was_rolled_back_cannot_be_owned(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied(WANTED)
    own_run(call, "r1")
    revert_run(call, FakeOperator(), "r1", "", SMALL.limits, force=False)
    assert counting_runs(call.past(), CLUSTER) == (), "its settings do not count any more"
    with pytest.raises(StateError, match="was rolled back: no node has its change any more") as caught:
        own_run(call, "r1")
    assert caught.value.reference == "rolled-back"
    with pytest.raises(StateError) as caught:
        own_run(call, "r2")
    assert caught.value.reference == "not-an-apply"


def test_a_later_run_with_another_value_counts_beside_the_owned_one(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied(WANTED)
    own_run(call, "r1")
    call.agents = old_nodes()
    call.applied(replace(WANTED, wanted=(WantedSetting("serializeImagePulls", "true", ""),)))
    first, later = counting_runs(call.past(), CLUSTER)
    assert (first.is_owned, later.run, later.is_owned, later.within) == (True, "r2", False, None)
    (told,) = owned_runs((first, later), call.listed)
    assert [(each.run, each.settings, each.whole) for each in told.replaced_by] == [
        ("r2", ("serializeImagePulls",), True)
    ]
