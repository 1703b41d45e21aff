"""Nothing that comes from a node or a file moves the cursor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.text.suggest import closest, did_you_mean
from rollout.core.text.terminal import CONTROL, hanging, printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x1b(0x\x1bc", "x"),
        ("two\nlines\tand\r\nmore", "two lines and more"),
        ("bell\x07 back\x08 del\x7f c1\x9b", "bell back del c1"),
        ("left\u202eright", "leftright"),
        ("\ud800", ""),
        ("é ü 漢", "é ü 漢"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_long_text_is_cut() -> None:
    assert printable("abcdef", 4) == "abc…"
    assert printable("abcd", 4) == "abcd"
    assert printable("\x1b[0m" * 1_000 + "hidden", 4) == "…"


@given(st.text(max_size=300), st.integers(1, 50))
def test_what_is_printed_is_one_short_safe_line(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert len(shown) <= limit
    assert not CONTROL.search(shown)
    assert "\n" not in shown


def test_suggestions() -> None:
    assert closest("CLUSTR", ["cluster", "nodes"]) == "cluster"
    assert did_you_mean("zzz", ["cluster"]) == ""
    assert did_you_mean("nods", ["cluster", "nodes"]) == "did you mean `nodes`?"


def test_lines_keep_their_indentation_and_columns() -> None:
    assert printable_lines("a\tb\n  c\n\nd", 80) == ("a       b", "  c", "", "d")
    assert printable_lines("one\r\ntwo\rthree\n", 80) == ("one", "two", "three")
    assert printable_lines("", 80) == ()
    assert printable_lines("x" * 81, 80) == ("x" * 79 + "…",)


def test_an_escape_that_does_not_end_hides_nothing_of_the_next_line() -> None:
    assert printable_lines("\x1b]0;title\nnext\n", 80) == ("", "next")


@given(st.text())
def test_no_line_moves_the_cursor_or_is_too_long(text: str) -> None:
    for line in printable_lines(text, 20):
        assert not CONTROL.search(line)
        assert not set(line) & {"\n", "\t", "\r"}
        assert len(line) <= 20


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("short", 20, ("short",)),
        ("  one two three four", 12, ("  one two", "    three", "    four")),
        ("one two-three four", 12, ("one", "  two-three", "  four")),
        ("", 10, ("",)),
        (" " * 30 + "deep", 20, (" " * 30 + "deep",)),
    ],
)
def test_a_wrapped_line_is_indented(text: str, width: int, lines: tuple[str, ...]) -> None:
    assert hanging(text, width) == lines
