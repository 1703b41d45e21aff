"""Command lines as pflag reads them, words as systemd splits them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.kubelet.node import arguments
from rollout.kubelet.node.arguments import Given, last, merge, quote, split, without


def test_flags_as_pflag_reads_them() -> None:
    words = [
        "--config=/a",
        "--node-ip",
        "10.0.0.1",
        "--fail-swap-on",
        "--registry_qps=3",
        "-v",
        "4",
        "--",
        "--config=/b",
    ]
    assert arguments.given(words) == (
        Given("--config", "/a", 0, 1),
        Given("--node-ip", "10.0.0.1", 1, 3),
        Given("--fail-swap-on", "true", 3, 4),
        Given("--registry-qps", "3", 4, 5),
        Given("--v", "4", 5, 7),
    )


def test_unknown_flags_do_not_take_the_next_flag_as_a_value() -> None:
    assert arguments.given(["--strange", "--v=2", "--odd"]) == (
        Given("--strange", "", 0, 1),
        Given("--v", "2", 1, 2),
        Given("--odd", "", 2, 3),
    )


def test_words_that_are_no_flags_are_skipped() -> None:
    assert arguments.given(["kubelet", "-", "--v=1"]) == (Given("--v", "1", 2, 3),)


def test_the_last_one_wins() -> None:
    words = ["--image-pull-progress-deadline=1m", "--v=2", "--image-pull-progress-deadline", "5m"]
    found = last(words, "--image-pull-progress-deadline")
    assert found == Given("--image-pull-progress-deadline", "5m", 2, 4)
    assert last(words, "--config") is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("  a  b\t", ["a", "b"]),
        ("""--x="a b" 'c d' e\\ f""", ["--x=a b", "c d", "e f"]),
        ('"a\\"b" "" \'"\'', ['a"b', "", '"']),
    ],
)
def test_split(line: str, words: list[str]) -> None:
    assert [word.text for word in split(line)] == words


@pytest.mark.parametrize("line", ['"open', "'open", "end\\"])
def test_split_refuses_unclosed_quotes(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        split(line)


@given(st.lists(st.text(max_size=6), max_size=4))
def test_quoted_words_are_read_back(words: list[str]) -> None:
    assert [word.text for word in split(" ".join(quote(word) for word in words))] == words


@pytest.mark.parametrize(
    ("line", "ours", "merged"),
    [
        ("", ["--a=1"], "--a=1"),
        ("  ", ["--a=1", "--b=2"], "--a=1 --b=2"),
        ("--v=2", ["--a=1"], "--v=2 --a=1"),
        ("--a=0  --v=2", ["--a=1"], "--a=1  --v=2"),
        ("--a=0 --node-ip '1' --a 5", ["--a=1"], "--a=0 --node-ip '1' --a=1"),
        ("--v=2", ["--a=x y"], '--v=2 "--a=x y"'),
        ("--b=\\ ", ["--a=1"], "--b=\\  --a=1"),  # a blank that belongs to the word before
    ],
)
def test_merge_changes_only_ours(line: str, ours: list[str], merged: str) -> None:
    assert merge(line, ours) == merged
    assert merge(merged, ours) == merged


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("--a=1", ""),
        (" --a=1  --v=2", "--v=2"),
        ("--v=2  --a 1 --w", "--v=2 --w"),
        ("--b=\\  --a=1", "--b=\\ "),  # a blank that belongs to the word before
    ],
)
def test_removing_flags_keeps_the_bytes_of_all_other_words(line: str, left: str) -> None:
    assert without(line, {"--a"}) == left
