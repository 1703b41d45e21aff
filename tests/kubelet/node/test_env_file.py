"""Environment files as systemd 252 reads them; only the bytes of one assignment are replaced."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.kubelet.node import env_file
from rollout.kubelet.node.env_file import assign, quote, values


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("A=1\nB=2\nA=3\n", {"A": "3", "B": "2"}),
        ("# A=1\n;B=2\n  C = 3  \n", {"C": "3"}),
        ('A="x y"\n', {"A": "x y"}),
        ("A='x \"y'\n", {"A": 'x "y'}),
        ('A="a" "b" c d  \n', {"A": "abc d"}),
        ('A="a\\"b\\$c\\n"\n', {"A": 'a"b$c\\n'}),
        ('A="two\nlines"\nB=1\n', {"A": "two\nlines", "B": "1"}),
        ('A="go\\\non"\n', {"A": "goon"}),
        ("A=go\\\non\n", {"A": "goon"}),
        ("A=x\\ \\ \nB=1", {"A": "x  ", "B": "1"}),
        ('A=--x="a b" --y\n', {"A": '--x="a b" --y'}),
        ("A=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("nonsense\nA=1\n", {"A": "1"}),
        ("A=\nB=", {"A": "", "B": ""}),
    ],
)
def test_values(text: str, found: dict[str, str]) -> None:
    assert values(text) == found


@pytest.mark.parametrize("text", ["A='open\n", 'A="open\n', "# a comment \\\nA=1\n"])
def test_broken_or_ambiguous_files_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        env_file.parse(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", 'A="x"\n'),
        ("# mine\nB=1", '# mine\nB=1\nA="x"\n'),
        ("B=1\r\n", 'B=1\r\nA="x"\r\n'),
        ("A=1\n# between\nA='2'   \nB=1\n", 'A=1\n# between\nA="x"\nB=1\n'),
        ('A="two\nlines" # no comment\nB=1\n', 'A="x"\nB=1\n'),
    ],
)
def test_assign(old: str, new: str) -> None:
    assert assign(old, "A", "x") == new
    assert assign(new, "A", "x") == new


@given(st.text(st.characters(exclude_characters="\n\r\0", exclude_categories=["Cs"]), max_size=30))
def test_any_value_is_read_back_and_others_stay(value: str) -> None:
    text = assign("# c\nB='1'\nA=old\nC=2\n", "A", value)
    assert values(text) == {"A": value, "B": "1", "C": "2"}
    assert text.startswith("# c\nB='1'\nA=")
    assert text.endswith("\nC=2\n")


def test_line_ends_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="line end"):
        quote("a\nb")


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = env_file.parse(text)
    except ValueError:
        return
    assert all(text[entry.start :].startswith(entry.name) for entry in found)
