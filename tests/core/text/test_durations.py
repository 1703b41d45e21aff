"""Go's durations, compared with the grammar of ``time.ParseDuration`` and against durationpy where that is right."""

from __future__ import annotations

import durationpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.core.text.durations import DurationError, go_format, go_format_nanoseconds, nanoseconds, parse

UNITS = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300.0),
        ("1h15m30.5s", 4530.5),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("0", 0.0),
        ("+0", 0.0),
        ("-0", 0.0),
        ("0s", 0.0),
        ("+5s", 5.0),
        ("-1.5h", -5400.0),
        ("100ms", 0.1),
        ("1us", 1e-6),
        ("1µs", 1e-6),
        ("1μs", 1e-6),
        ("1ns", 1e-9),
        ("30s1m", 90.0),
    ],
)
def test_parse(text: str, seconds: float) -> None:
    assert parse(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "5 m",
        "1d",
        "2w",
        "1y",
        "5M",
        "5min",
        "s",
        ".s",
        "+",
        "1.2.3s",
        "1h!5m",
        "5m ",
        " 5m",
        "٣s",
        "--5s",
        "1e3s",
        "5m\n",
        "1s" * 65,
    ],
)
def test_texts_that_are_not_durations(text: str) -> None:
    with pytest.raises(DurationError, match=r"a duration is numbers with units"):
        parse(text)


@pytest.mark.parametrize("text", ["2562048h", "9223372036854775808ns", "-9999999999999s"])
def test_out_of_range(text: str) -> None:
    with pytest.raises(DurationError, match="at most"):
        parse(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (300.0, "5m0s"),
        (90.0, "1m30s"),
        (3600.0, "1h0m0s"),
        (4530.5, "1h15m30.5s"),
        (0.0, "0s"),
        (1.0, "1s"),
        (0.1, "100ms"),
        (0.0015, "1.5ms"),
        (1e-6, "1µs"),
        (2e-9, "2ns"),
        (-90.0, "-1m30s"),
        (100 * 3600.0, "100h0m0s"),
    ],
)
def test_go_format(seconds: float, text: str) -> None:
    assert go_format(seconds) == text


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_what_go_prints_go_reads(count: int) -> None:
    assert nanoseconds(go_format_nanoseconds(count)) == count


@given(
    st.lists(st.tuples(st.integers(0, 999), st.sampled_from(["us", "µs", "ms", "s", "m", "h"])), min_size=1, max_size=4)
)
def test_durationpy_agrees_down_to_microseconds(terms: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in terms)
    assert parse(text) == pytest.approx(durationpy.from_str(text).total_seconds())


def digits(least: int) -> st.SearchStrategy[str]:
    return st.text("0123456789", min_size=least, max_size=6)


WHOLE, FRACTION, BARE = digits(1), digits(0).map(".{}".format), digits(1).map(".{}".format)
NUMBER = WHOLE | st.tuples(WHOLE, FRACTION).map("".join) | BARE
TERM = st.tuples(NUMBER, st.sampled_from(["ns", "us", "µs", "μs", "ms", "s", "m", "h"])).map("".join)


@given(st.sampled_from(["", "+", "-"]), st.lists(TERM, min_size=1, max_size=3))
def test_everything_in_the_grammar_is_read(sign: str, terms: list[str]) -> None:
    assert isinstance(parse(sign + "".join(terms)), float)


@given(st.text(alphabet="0123456789.+-nuµμmshd ", max_size=12))
def test_what_is_read_ends_in_a_unit(text: str) -> None:
    try:
        parse(text)
    except DurationError:
        return
    assert text.endswith(tuple(UNITS)) or text.lstrip("+-") == "0"
