"""Lists of CPUs: the count of the written-out set, without writing it out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.kubelet.configuration.go_values import cpu_list_error, cpus
from tests.cost import calls

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=8)


@given(SPANS)
def test_the_count_is_that_of_the_set(spans: list[tuple[int, int]]) -> None:
    listed = ",".join(f"{first}-{last}" for first, last in spans)
    assert cpus(listed) == len({cpu for first, last in spans for cpu in range(first, last + 1)})


@pytest.mark.parametrize(
    ("listed", "count"), [("0", 1), ("0-3,8", 5), ("0,0", 1), ("5-3", 0), ("1-2-3", 0), ("0-9999999999", 10**10)]
)
def test_a_list_has_so_many_cpus(listed: str, count: int) -> None:
    assert cpus(listed) == count


@pytest.mark.parametrize(("listed", "word"), [("a", "invalid syntax"), ("", "invalid syntax"), ("-1", "invalid syntax"),
                                              (f"0-{2**63}", "out of range"), ("9" * 5000, "out of range")])  # fmt: skip
def test_a_part_that_is_no_number_is_named(listed: str, word: str) -> None:
    assert word in cpu_list_error(listed, 21)
    with pytest.raises(ValueError, match=word):
        cpus(listed)


@pytest.mark.parametrize(
    ("listed", "minor", "error"),
    [
        ("0,3-1", 21, ""),
        ("0,1-2-3", 21, ""),
        ("0,3-1", 22, 'invalid range "3-1" (3 >= 1)'),
        ("0,3-1", 27, 'invalid range "3-1" (3 > 1)'),
        ("0,1-2-3", 22, 'strconv.Atoi: parsing "2-3": invalid syntax'),
        ("1-1", 36, ""),
    ],
)
def test_ranges_are_refused_from_1_22_on(listed: str, minor: int, error: str) -> None:
    assert cpu_list_error(listed, minor) == error


def test_the_work_depends_on_the_parts_and_not_on_the_numbers() -> None:
    assert calls(lambda: cpus("0-9999999999")) == calls(lambda: cpus("0-1"))
