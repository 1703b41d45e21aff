"""Every field, flag and key of a runtime has a row of what its change does; a setting without one fails here."""

from __future__ import annotations

import pytest

from rollout.kubelet import fields
from rollout.kubelet.effects.rows import SettingEffect, Takes, every, of_runtime, of_setting
from rollout.kubelet.runtimes.known import ROWS

MINORS = fields.known_minors()


@pytest.mark.parametrize("minor", MINORS)
def test_each_field_and_flag_of_each_minor_has_a_row(minor: int) -> None:
    names = (*fields.known_fields(minor), *fields.known_flags(minor))
    assert sorted(name for name in names if of_setting(name) is None) == []


def test_each_key_that_rollout_writes_for_a_runtime_has_a_row() -> None:
    assert {row.key for row in ROWS if row.key and of_runtime(row.key) is None} == set()


def test_a_flag_has_the_row_of_its_field() -> None:
    assert of_setting("--max-pods") is of_setting("maxPods")
    assert of_setting("authentication.anonymous.enabled") is of_setting("authentication")
    assert of_setting("--anonymous-auth") is of_setting("authentication")
    assert of_setting("noSuchField") is None


@pytest.mark.parametrize("each", list(every()), ids=lambda each: each.name)
def test_a_row_names_its_source_and_what_exists(each: SettingEffect) -> None:
    assert each.source
    assert each.name in fields.every_name() or fields.flag(each.name) or each.name in {row.key for row in ROWS}
    assert each.takes.words
    for case in each.cases:
        assert case.says
        assert case.since <= case.last
        assert {condition.path.partition(".")[0] for condition in case.when} <= {*fields.every_name()}


def test_rows_that_take_effect_late_say_what_stays_as_it_is() -> None:
    """Who changes one of these wonders why nothing happens."""
    late = {each.name for each in every() if each.takes is Takes.REGISTRATION}
    assert {"registerWithTaints", "--node-labels", "registerNode"} <= late
