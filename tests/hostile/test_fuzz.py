"""Every reader of foreign bytes, with earlier findings and with mutations of its normal input.

The seed of the tree draws them, so that CI is reproducible; `make fuzz` continues from here for a given time, guided by coverage.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.hostile.mutations import mutated
from tests.hostile.property import judge
from tests.hostile.targets import TARGETS
from tests.sampling import DEPTH, Depth

CASES = sorted(path for path in (Path(__file__).parent / "cases").glob("*/*") if path.is_file())

SIGNED = "host-certificate"
"""The reader with seeds that ssh-keygen makes, in a process."""


def of_reader(name: str, case: object, id: str) -> object:  # noqa: A002 - pytest's name
    """A parameter of a test of that reader."""
    return pytest.param(case, id=id, marks=[pytest.mark.process] if name == SIGNED else [])


READERS = [of_reader(name, name, name) for name in TARGETS]


@pytest.mark.parametrize(
    "case", [of_reader(case.parent.name, case, f"{case.parent.name}/{case.name}") for case in CASES]
)
def test_inputs_that_once_broke_a_reader_break_none(case: Path) -> None:
    judge(TARGETS[case.parent.name], case.read_bytes())


@pytest.mark.parametrize("name", READERS)
def test_a_reader_handles_its_normal_input(name: str) -> None:
    for seed in TARGETS[name].seeds():
        judge(TARGETS[name], seed)


@pytest.mark.parametrize("name", READERS)
def test_any_bytes_give_a_value_or_an_error_of_rollout(name: str) -> None:
    target = TARGETS[name]
    examples = max(1, target.examples * DEPTH.value // Depth.TEST.value)

    @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
    @given(mutated(target.seeds()))
    def every(data: bytes) -> None:
        judge(target, data)

    every()


@pytest.mark.parametrize("name", READERS)
def test_a_reader_handles_empty_input(name: str) -> None:
    judge(TARGETS[name], b"")
