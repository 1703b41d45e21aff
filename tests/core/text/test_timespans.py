"""systemd's time spans, which a node writes: the right ones, and those that a hostile node could print."""

from __future__ import annotations

from math import inf

import pytest

from rollout.core.text.timespans import timespan
from tests.cost import calls


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10.0), ("100ms", 0.1), ("1min 30s", 90.0), ("1h 2min 3s 4ms 5us", 3723.004005), ("0", 0.0),
        ("1.5s", 1.5), ("2w 1d", 1296000.0), ("infinity", inf), ("90y", inf), ("999999999999y", inf),
    ],
)  # fmt: skip
def test_a_span_of_systemd_is_read(text: str, seconds: float) -> None:
    assert timespan(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "x", "s", "-1s", "1 s", "1e9s", "٣s", "1s;2s", "9" * 26 + "x", "9" * 400, "1s " * 90]
)
def test_a_text_that_is_no_span_is_none(text: str) -> None:
    assert timespan(text) is None


def test_the_work_does_not_grow_with_the_text() -> None:
    """A pattern that repeats a repetition would double its work with each digit."""
    assert calls(lambda: timespan("1" * 10_000_000 + "x")) <= calls(lambda: timespan("1" * 99 + "x"))
