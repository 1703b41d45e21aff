"""Every reader of foreign bytes, with what was found before and with what is made of what it reads in life.

Deterministic, so that CI says the same twice; `make fuzz` goes on from here for as long as it is let, guided by coverage.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.mutations import mutated
from tests.hostile.property import judge
from tests.hostile.targets import TARGETS

CASES = sorted(path for path in (Path(__file__).parent / "cases").glob("*/*") if path.is_file())


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_broke_a_reader_once_breaks_none_again(case: Path) -> None:
    judge(TARGETS[case.parent.name], case.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_reader_reads_in_life_is_read(name: str) -> None:
    for seed in TARGETS[name].seeds():
        judge(TARGETS[name], seed)


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_a_value_or_an_error_of_ours_and_nothing_else(name: str) -> None:
    target = TARGETS[name]
    quick = settings(
        max_examples=target.examples, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )

    @quick
    @given(mutated(target.seeds()))
    def every(data: bytes) -> None:
        judge(target, data)

    every()


@settings(max_examples=1, database=None)
@given(st.just(b""))
def test_nothing_at_all_is_told_too(data: bytes) -> None:
    for target in TARGETS.values():
        judge(target, data)
