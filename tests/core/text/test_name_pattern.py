"""Names as a short regular expression: exactly these, no backslash, bounded."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.text.name_pattern import PatternTooLongError, name_pattern

names = st.sets(st.from_regex(r"[a-c1-3][a-c1-3.-]{0,4}[a-c1-3]|[a-c1-3]", fullmatch=True), min_size=1, max_size=60)


@given(names, names)
def test_exactly_the_names(wanted: set[str], others: set[str]) -> None:
    pattern = re.compile(name_pattern(wanted))
    assert all(pattern.fullmatch(name) for name in wanted)
    assert {name for name in others if pattern.fullmatch(name)} == wanted & others
    assert not any(pattern.fullmatch(name + "0") or pattern.fullmatch("0" + name) for name in wanted)


@given(names)
def test_without_characters_that_strings_and_engines_read_differently(wanted: set[str]) -> None:
    assert not set(name_pattern(wanted)) & set("\\\"'^$*+{}")


@pytest.mark.parametrize(
    ("wanted", "pattern"),
    [
        (["n1"], "(?:n1)"),
        (["n1", "n2", "n3", "n9"], "(?:n[1-39])"),
        (["n1", "n10", "n11"], "(?:n1(?:|[01]))"),
        (["a.b", "a-b"], "(?:a[.-]b)"),
        (["a.b"], "(?:a[.]b)"),
        ([f"tess-node-{at:04}" for at in range(1, 2001)], "(?:tess-node-(?:0(?:0(?:0[1-9]|[1-9][0-9])|[1-9][0-9][0-9])|1[0-9][0-9][0-9]|2000))"),
    ],
)  # fmt: skip
def test_numbered_names_are_short(wanted: list[str], pattern: str) -> None:
    assert name_pattern(wanted) == pattern


def test_no_names_match_no_name() -> None:
    assert not any(re.fullmatch(name_pattern([]), text) for text in ("", "a", "n1"))


def test_names_with_nothing_in_common_have_a_bound() -> None:
    with pytest.raises(PatternTooLongError, match="4000 names need"):
        name_pattern(f"{at * 7919 % 100_003:x}-{at * 104_729:x}-{at * 15_485_863:x}" for at in range(4000))


def test_texts_that_are_not_names_are_refused() -> None:
    with pytest.raises(ValueError, match="only names"):
        name_pattern([".*"])
