"""What every view of a run shows first: settings old → new, nodes n of m, how long, operator and reason, what rolled it back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout.core.presentation.headline import (
    ChangedSetting,
    Headline,
    NodesDone,
    WhatChanged,
    changed_settings,
    headline_lines,
    nodes_done,
    reverted_settings,
)
from rollout.core.presentation.run_list import RunFilter, RunStanding, run_lines, standing_at_work
from rollout.core.presentation.summary_text import RolledBack
from rollout.core.run.state import ClosedWindow, Pause
from tests.core.presentation import journals
from tests.core.presentation.journals import BEGAN
from tests.core.presentation.listed import CHANGE, listed

REASONS = (
    "serializeImagePulls: true → false (playbook image-pulls)",
    "--image-pull-progress-deadline: not set → 5m (playbook image-pulls)",
    "serializeImagePulls: true → false (playbook image-pulls)",
)


def test_reasons_of_a_plan_become_settings_with_old_and_new_values() -> None:
    assert changed_settings(REASONS) == (
        ChangedSetting("serializeImagePulls", "true", "false"),
        ChangedSetting("--image-pull-progress-deadline", "not set", "5m"),
    )


@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        ("maxPods: 110 → 90", ChangedSetting("maxPods", "110", "90")),
        ("--config: not set → /x (so that the kubelet reads it)", ChangedSetting("--config", "not set", "/x")),
        ("a: 1 (of 2) → 2 (of 2)", ChangedSetting("a", "1 (of 2)", "2 (of 2)")),
        ("only a restart is missing", ChangedSetting("only a restart is missing", "", "")),
        ("registryToken: token=a → token=b", ChangedSetting("registryToken", "token=‹redacted›", "token=‹redacted›")),
    ],
)
def test_each_form_of_a_reason_is_shown(reason: str, setting: ChangedSetting) -> None:
    found = changed_settings([reason])[0]
    assert found == setting or "redacted" in setting.old
    assert "token=a" not in str(found)


def test_a_rollback_shows_the_settings_backwards_and_the_run_that_it_reverts() -> None:
    change = WhatChanged("", reverted_settings(changed_settings(REASONS)), ("r1",))
    assert str(change) == (
        "serializeImagePulls: false → true; --image-pull-progress-deadline: 5m → not set (rolls back run r1)"
    )


def test_many_settings_are_counted() -> None:
    many = WhatChanged("p", tuple(ChangedSetting(f"s{at}", "1", "2") for at in range(6)))
    assert str(many) == "s0: 1 → 2; s1: 1 → 2; s2: 1 → 2; s3: 1 → 2; 2 more (playbook p)"
    assert str(WhatChanged()) == "settings not recorded"


def test_the_first_lines_say_what_changes_where_how_long_who_and_why() -> None:
    head = Headline(CHANGE, "apply", NodesDone(118, 2000), "ann@ops", "OPS-7", BEGAN, BEGAN + 95, BEGAN + 500)
    assert list(headline_lines(head)) == [
        "  changes: serializeImagePulls: true → false (playbook image-pulls)",
        "  nodes: 118 of 2,000 confirmed; began 2026-11-20 16:00:00 UTC, took 1 min 35 s",
        "  by ann@ops: OPS-7",
    ]
    rollback = Headline(CHANGE, "revert", NodesDone(1, 2), "ann@ops", "", BEGAN, None, BEGAN + 60)
    assert list(headline_lines(rollback))[1:] == [
        "  nodes: 1 of 2 reverted; began 2026-11-20 16:00:00 UTC, 60 s so far",
        "  by ann@ops: no reason was given",
    ]


def test_no_time_runs_where_no_controller_works_on_it() -> None:
    head = Headline(CHANGE, "apply", NodesDone(1, 2), "ann@ops", "", BEGAN, None, None)
    assert list(headline_lines(head))[1] == "  nodes: 1 of 2 confirmed; began 2026-11-20 16:00:00 UTC"


def test_a_run_is_rolled_back_only_on_all_nodes_that_may_have_its_change() -> None:
    """A node that did not answer may still hold the change."""
    back = (RolledBack("r2", "n[1-2]", 2),)
    assert listed(rolled_back=back, is_rolled_back=True).standing == "halted, rolled back"
    assert listed(rolled_back=back).standing == "halted, rolled back on 2 nodes"


def test_done_are_confirmed_nodes_and_in_a_rollback_reverted_ones() -> None:
    counts = {"confirmed": 3, "reverted": 2, "failed": 1}
    assert (nodes_done("apply", counts), nodes_done("revert", counts)) == (NodesDone(3, 6), NodesDone(2, 6))


def test_a_run_of_the_list_says_what_it_changed_how_it_ended_and_what_rolled_it_back() -> None:
    back = RolledBack("r2", "n[1-2]", 2)
    assert list(run_lines([listed(rolled_back=(back,), is_rolled_back=True)], BEGAN)) == [
        "2026-11-20 16:00:00 UTC  run r1 on rno by ann@ops: halted, rolled back, exit code 3",
        "  changes: serializeImagePulls: true → false (playbook image-pulls)",
        "  nodes: 2 of 3 confirmed, took 1 min 35 s",
        "  why: 2 of 3 nodes of rack01 failed [budget-rack]",
        "  reason: pulls time out",
        "  rolled back by run r2 on 2 nodes (n[1-2])",
    ]
    assert listed(rolled_back=(RolledBack("r2", "n1", 1),)).standing == "halted, rolled back on 1 node"
    assert listed(state=RunStanding.DONE, exit_code=4).standing == "done, incomplete"


def test_a_run_that_waits_is_not_merely_at_work() -> None:
    _, play = journals.stopped(lambda state: state.wave == 2)
    state = play.state
    assert standing_at_work(state) is RunStanding.AT_WORK
    paused = Pause("ann@ops", "lunch", BEGAN)
    cases = {
        RunStanding.PAUSED: {"paused": paused},
        RunStanding.ON_HOLD: {"paused": Pause("", "holds after wave canary", BEGAN, held=True)},
        RunStanding.WINDOW_CLOSED: {"closed": ClosedWindow("night", BEGAN, None)},
    }
    for standing, changes in cases.items():
        waits = replace(state, **changes)  # type: ignore[arg-type]
        assert standing_at_work(waits) is standing
    assert standing_at_work(journals.halted(120)[1].state) is RunStanding.HALTING
    held = listed(state=RunStanding.ON_HOLD, ended=None, exit_code=None)
    assert list(RunFilter("", {RunStanding.AT_WORK}, 9).chosen(iter([held]))) == [held]
    assert held.took(BEGAN + 60) == "60 s so far"
    assert listed(state=RunStanding.NO_CONTROLLER, ended=None).took(BEGAN + 60) == "", "nobody works on it"
