"""Shared lines of two files: right for any two, as good as difflib for short ones, and never the square of the work."""

from __future__ import annotations

import difflib
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.text import diff
from rollout.core.text.diff import LineMatcher
from tests.cost import calls

LINES = st.lists(st.sampled_from("abcdefgh"), max_size=40)


def rebuilt(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """``new``, made of ``old`` by the steps of the matcher, which must also cover ``old``."""
    made: list[str] = []
    at = 0
    for kind, start, end, new_start, new_end in LineMatcher(old, new).get_opcodes():
        assert start == at
        at = end
        made += old[start:end] if kind == "equal" else new[new_start:new_end]
    assert at == len(old)
    return made


@pytest.mark.parametrize("short", [0, 4, 400])
@given(old=LINES, new=LINES)
def test_the_steps_make_the_new_file_of_the_old_one(short: int, old: list[str], new: list[str]) -> None:
    before = diff.SHORT
    diff.SHORT = short
    try:
        assert rebuilt(old, new) == new
    finally:
        diff.SHORT = before


@given(old=LINES, new=LINES)
def test_a_short_diff_is_as_short_as_that_of_difflib(old: list[str], new: list[str]) -> None:
    mine = list(diff._unified(old, new, "a", "b", 2))  # noqa: SLF001 - without redaction
    theirs = list(difflib.unified_diff(old, new, "a", "b", n=2, lineterm=""))
    assert (mine == []) is (theirs == [])
    assert _changed(mine) <= _changed(theirs) + 8


def _changed(lines: list[str]) -> int:
    return sum(line[:1] in "+-" for line in lines[2:])


def test_two_small_edits_of_a_long_file_are_two_small_hunks() -> None:
    lines = [f"key{at}: {at}" for at in range(5000)]
    new = [*lines[:10], "added", *lines[10:4000], "changed", *lines[4001:]]
    old_text, new_text = ("".join(f"{line}\n" for line in each).encode() for each in (lines, new))
    assert diff.unified(old_text, new_text, "/x", 1) == (
        "--- /x", "+++ /x", "@@ -10,2 +10,3 @@", " key9: 9", "+added", " key10: 10",
        "@@ -4000,3 +4001,3 @@", " key3999: 3999", "-key4000: 4000", "+changed", " key4001: 4001",
    )  # fmt: skip


def _kinds(count: int, kinds: int) -> tuple[bytes, bytes]:
    return _text(at % kinds for at in range(count)), _text(at * 7 % kinds for at in range(count))


def _text(numbers: object) -> bytes:
    return "".join(f"{number}\n" for number in numbers).encode()  # type: ignore[attr-defined]


def _equal(count: int) -> tuple[bytes, bytes]:
    return b"a\n" * count, b"b\n" + b"a\n" * (count // 2) + b"c\n" + b"a\n" * (count // 2)


def _shuffled(count: int) -> tuple[bytes, bytes]:
    numbers = list(range(count))
    random.Random(count).shuffle(numbers)  # noqa: S311 - the same each time
    return _text(range(count)), _text(numbers)


PAIRS: dict[str, Callable[[int], tuple[bytes, bytes]]] = {
    "one kind of line": _equal,
    "120 kinds": lambda count: _kinds(count, 120),
    "1,000 kinds": lambda count: _kinds(count, 1000),
    "another order": _shuffled,
    "backwards": lambda count: (_text(range(count)), _text(range(count, 0, -1))),
    "nothing alike": lambda count: (_text(range(count)), _text(range(-count, 0))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_four_times_the_lines_are_about_four_times_the_work(name: str) -> None:
    small, large = _work(*PAIRS[name](2000)), _work(*PAIRS[name](8000))
    assert large < 6 * small, (small, large)


def _work(old: bytes, new: bytes) -> int:
    return calls(lambda: diff.unified(old, new, "/x"))
