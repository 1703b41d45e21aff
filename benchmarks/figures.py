"""What a bench measured, as a table and a chart: values in, text out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from xml.sax.saxutils import escape


@dataclass(frozen=True, slots=True)
class Row:
    """One thing to reach. ``value`` is None if nothing measured it; ``note`` then says why."""

    name: str
    value: float | None
    limit: float
    unit: str
    at_least: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        reached = self.value >= self.limit if self.at_least else self.value <= self.limit
        return "met" if reached else "not met"


@dataclass(frozen=True, slots=True)
class Bar:
    """Of the chart: seconds of wall time of one tool."""

    name: str
    seconds: float


def ratio(value: float | None, to: float | None) -> float | None:
    """``None``: one of them was not measured."""
    return value / to if value is not None and to else None


def table(rows: Iterable[Row]) -> str:
    """Markdown; every row is printed, whatever its verdict."""
    lines = ["| what | measured | to reach | verdict | note |", "| --- | ---: | ---: | --- | --- |"]
    for row in rows:
        value = "-" if row.value is None else f"{row.value:,.2f} {row.unit}".strip()
        sign = "≥" if row.at_least else "≤"
        lines.append(
            f"| {row.name} | {value} | {sign} {row.limit:,g} {row.unit} | {row.verdict} | {row.note.replace('|', '/')} |"
        )
    return "\n".join(lines) + "\n"


def document(rows: Sequence[Row]) -> list[dict[str, object]]:
    """The rows for ``results.json``."""
    return [{**asdict(row), "verdict": row.verdict} for row in rows]


def chart(title: str, bars: Sequence[Bar]) -> str:
    """An SVG with one horizontal bar a tool, in the given order."""
    most = max((bar.seconds for bar in bars), default=0.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{40 + 28 * len(bars)}" font-family="sans-serif">',
        f'<text x="8" y="22" font-size="15">{escape(title)}</text>',
    ]
    for at, bar in enumerate(bars):
        y = 36 + 28 * at
        parts.append(f'<text x="8" y="{y + 15}" font-size="13">{escape(bar.name)}</text>')
        parts.append(f'<rect x="150" y="{y}" width="{400 * bar.seconds / most:.1f}" height="20" fill="#4878a8"/>')
        parts.append(
            f'<text x="{156 + 400 * bar.seconds / most:.1f}" y="{y + 15}" font-size="13">{bar.seconds:.1f} s</text>'
        )
    return "\n".join([*parts, "</svg>\n"])
