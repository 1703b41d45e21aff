"""The table and the chart, on drawn figures: no row is hidden, no verdict is wrong, the chart is well-formed."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import Bar, Row, chart, document, table

FIGURES = st.floats(0, 1e6)
WORDS = st.text(st.characters(categories=("L", "N", "P")), min_size=1)
ROWS = st.builds(Row, WORDS, st.none() | FIGURES, FIGURES, st.just("s"), st.booleans(), WORDS)


@given(st.lists(ROWS))
def test_every_row_is_printed_with_its_verdict(rows: list[Row]) -> None:
    lines = table(rows).removesuffix("\n").split("\n")[2:]
    assert len(lines) == len(rows) == len(document(rows))
    for line, row in zip(lines, rows, strict=True):
        assert f"| {row.verdict} |" in line


def test_a_limit_is_met_at_itself_in_both_directions() -> None:
    assert Row("a", 1.25, 1.25, "×").verdict == Row("a", 1.25, 1.25, "×", at_least=True).verdict == "met"
    assert (Row("a", 1.26, 1.25, "×").verdict, Row("a", None, 1, "×").verdict) == ("not met", "not measured")


@given(st.lists(st.builds(Bar, WORDS, FIGURES)))
def test_the_chart_has_a_bar_for_each_tool_and_stays_inside(bars: list[Bar]) -> None:
    drawn = ET.fromstring(chart("wall time", bars))  # noqa: S314 (made here)
    widths = [float(bar.attrib["width"]) for bar in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(widths) == len(bars)
    assert all(0 <= width <= 400 for width in widths)
