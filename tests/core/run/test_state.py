"""A changed value equals that of ``dataclasses.replace``; the original is unchanged."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from rollout.core.run.machine import opening
from rollout.core.run.state import Phase, altered
from tests.orders import make_order


def test_it_equals_replace_and_keeps_the_original() -> None:
    first, _ = opening(make_order({"a": 1}), 1, 3.0)
    before = replace(first)
    changed = altered(first, {"phase": Phase.RUNNING, "round": 2})
    assert changed == replace(first, phase=Phase.RUNNING, round=2)
    assert first == before
    with pytest.raises(FrozenInstanceError):
        changed.round = 3  # type: ignore[misc]


def test_an_unknown_field_is_an_error() -> None:
    first, _ = opening(make_order({"a": 1}), 1, 3.0)
    with pytest.raises(TypeError, match="RunState has no pases"):
        altered(first, {"pases": 1})
