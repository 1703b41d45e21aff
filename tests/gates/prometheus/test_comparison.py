"""The statistic: when touched nodes count as worse than the control group."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.model.verdict import Verdict
from rollout.gates.prometheus.comparison import SampleGroup, compare
from rollout.gates.prometheus.query import Worse

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
samples = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30)


def verdict(touched: list[float], control: list[float], worse: Worse = Worse.HIGHER, tolerance: float = 0.2) -> Verdict:
    return compare(SampleGroup("touched", touched), SampleGroup("control", control), worse, tolerance)[0]


@pytest.mark.parametrize(
    ("touched", "control", "expected"),
    [
        ([1.2], [1.0], PASS),  # 20 % is allowed
        ([1.3], [1.0], FAIL),
        ([1.0, 1.1, 99.0], [1.0, 1.0], PASS),  # one odd node does not move a median
        ([5.0], [1.0, 2.0, 3.0], PASS),  # 3 sigma of the control are 4.4
        ([7.0], [1.0, 2.0, 3.0], FAIL),
        ([2.5], [1.0, 3.0], FAIL),  # two samples have no spread: only the tolerance
        ([0.001], [0.0, 0.0, 0.0], PASS),  # a share of zero is zero: an absolute floor
        ([0.02], [0.0, 0.0, 0.0], FAIL),
        ([0.001], [0.0001] * 3, FAIL),  # a share of more than zero: no floor hides ten times as much
        ([-1.0], [-2.0], FAIL),
        ([], [1.0], UNKNOWN),
        ([1.0], [], UNKNOWN),
        ([math.nan], [1.0], UNKNOWN),
        ([1.0], [math.inf], UNKNOWN),
    ],
)
def test_higher_is_worse(touched: list[float], control: list[float], expected: Verdict) -> None:
    assert verdict(touched, control) is expected


@given(samples, samples)
def test_lower_is_the_mirror_image(touched: list[float], control: list[float]) -> None:
    mirrored = verdict([-value for value in touched], [-value for value in control], Worse.LOWER)
    assert verdict(touched, control) is mirrored


@given(samples)
def test_a_group_is_never_worse_than_itself(group: list[float]) -> None:
    assert verdict(group, group) is PASS


@given(samples, samples)
def test_never_worse_both_ways(one: list[float], other: list[float]) -> None:
    assert not (verdict(one, other) is FAIL and verdict(one, other, Worse.LOWER) is FAIL)


@given(samples, samples, st.floats(0, 3), st.floats(0, 3))
def test_more_tolerance_never_fails_more(touched: list[float], control: list[float], a: float, b: float) -> None:
    if verdict(touched, control, tolerance=min(a, b)) is PASS:
        assert verdict(touched, control, tolerance=max(a, b)) is PASS


def test_the_evidence_shows_better_too() -> None:
    said = compare(SampleGroup("touched", [0.5]), SampleGroup("control", [1.0]), Worse.HIGHER, 0.2)[1]
    assert "0.5 is 0.5 lower" in said
