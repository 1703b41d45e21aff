"""A changed value is what ``dataclasses.replace`` would make of it; the first stays as it was."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from rollout.core.run.machine import opening
from rollout.core.run.replace import altered
from rollout.core.run.state import Phase
from tests.orders import make_order


def test_it_is_as_if_replaced_and_the_first_is_untouched() -> None:
    first, _ = opening(make_order({"a": 1}), 1, 3.0)
    before = replace(first)
    changed = altered(first, phase=Phase.RUNNING, round=2)
    assert changed == replace(first, phase=Phase.RUNNING, round=2)
    assert first == before
    with pytest.raises(FrozenInstanceError):
        changed.round = 3  # type: ignore[misc]


def test_a_field_that_is_not_there_is_no_field() -> None:
    first, _ = opening(make_order({"a": 1}), 1, 3.0)
    with pytest.raises(TypeError, match="RunState has no pases"):
        altered(first, pases=1)
