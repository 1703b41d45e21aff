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
    assert word in cpu_list_error(listed)
    with pytest.raises(ValueError, match=word):
        cpus(listed)


def test_the_work_depends_on_the_parts_and_not_on_the_numbers() -> None:
    assert calls(lambda: cpus("0-9999999999")) == calls(lambda: cpus("0-1"))
