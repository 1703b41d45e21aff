"""The results of the bench: kept in ``results.json`` by part, and written from there as a page, a chart and the README's table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.figures import Bar, Row, chart, table
from benchmarks.measured import Turns


@dataclass(frozen=True, slots=True)
class Tool:
    """``wall`` in seconds, ``cpu`` in milliseconds of the controller a node. ``note``: the settings, or why a figure is missing."""

    name: str
    wall: float | None
    cpu: float | None
    connections: float | None
    note: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same work by several tools."""

    title: str
    tools: Sequence[Tool]


@dataclass(frozen=True, slots=True)
class Reasons:
    """Where time is spent: a table (its first row is the head, its first column has names), and what to know of it."""

    title: str
    cells: Sequence[Sequence[str]]
    note: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a part of the bench has found. ``rows`` are what must be reached."""

    rows: Sequence[Row] = ()
    compared: Sequence[Comparison] = ()
    reasons: Sequence[Reasons] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """``how`` often, on which machine, at which commit and when it was measured, and the seconds that it took."""

    found: Found
    how: str
    machine: str
    commit: str
    date: str
    seconds: float


_PARTS = TypeAdapter(dict[str, Part])


def read(file: Path) -> dict[str, Part]:
    """The parts in ``results.json``; none if there is no such file."""
    return _PARTS.validate_json(file.read_bytes()) if file.exists() else {}


def comparison(title: str, turns: Turns, settings: Mapping[str, str]) -> Comparison:
    """``settings`` of each tool, for people."""
    return Comparison(
        title,
        tuple(
            Tool(tool, turns.wall(tool), turns.cpu(tool), turns.connections.get(tool), turns.why(tool) or settings[tool])
            for tool in dict.fromkeys((*turns.turns, *turns.failures))
        ),
    )  # fmt: skip


def write(folder: Path, readme: Path, parts: Mapping[str, Part]) -> None:
    """``results.json``, ``results.md`` and ``results.svg``, and the comparison on real nodes in the README."""
    kept = {name: asdict(part) for name, part in parts.items()}
    for name, part in parts.items():
        kept[name]["found"]["rows"] = [{**asdict(row), "verdict": row.verdict} for row in part.found.rows]
    (folder / "results.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    (folder / "results.md").write_text(page(parts))
    if "real" in parts and parts["real"].found.compared:
        shown = parts["real"].found.compared[0]
        bars = [Bar(tool.name, tool.wall) for tool in shown.tools if tool.wall is not None]
        (folder / "results.svg").write_text(
            chart(f"{shown.title}, wall time", sorted(bars, key=lambda bar: bar.seconds))
        )
        readme.write_text(front_page(readme.read_text(), shown))


def page(parts: Mapping[str, Part]) -> str:
    """``results.md``."""
    return "\n".join(_page(parts))


def _page(parts: Mapping[str, Part]) -> Iterator[str]:
    yield "# Measured\n"
    yield "Written by `make bench`. Real nodes are systemd in nspawn with OpenSSH and sudo; cheap nodes are a folder each, behind one OpenSSH."
    yield "All of them share this machine with the controller. A part that was measured alone has a commit and a date of its own.\n"
    yield from _markdown(
        (
            ("part", "commit", "date", "how", "machine", "took"),
            *(
                (name, part.commit, part.date, part.how, part.machine, f"{part.seconds:.0f} s")
                for name, part in parts.items()
            ),
        ),
        "---",
    )
    yield "\n## What must be reached\n"
    yield table(row for part in parts.values() for row in part.found.rows)
    for part in parts.values():
        for compared in part.found.compared:
            yield f"## {compared.title}\n"
            yield from tools(compared)
            yield ""
    yield "The safe floor is one hand-written script over one connection and one sudo: the same copies, syncs, receipt, boot unit, transient units,"
    yield "trial of the guard, reload, restart, wait, health and disarming, without fencing, journal and protocol. The agent's floor sends the agent the verbs of an"
    yield "emergency rollback over one connection, and does nothing else. pyinfra and ansible-core have no guard and no rollback.\n"
    reasons = [each for part in parts.values() for each in part.found.reasons]
    if reasons:
        yield "## Where the time goes\n"
    for each in reasons:
        yield f"### {each.title}\n"
        yield from _markdown(each.cells)
        yield f"\n{each.note}\n"


def tools(compared: Comparison) -> Iterator[str]:
    """The lines of a table."""
    yield "| tool | wall | controller's CPU a node | connections a node | settings |"
    yield "| --- | ---: | ---: | ---: | --- |"
    for tool in compared.tools:
        cells = (
            tool.name,
            "-" if tool.wall is None else f"{tool.wall:.1f} s",
            "-" if tool.cpu is None else f"{tool.cpu:.1f} ms",
            "-" if tool.connections is None else f"{tool.connections:.1f}",
            tool.note.replace("|", "/").replace("\n", " "),
        )
        yield f"| {' | '.join(cells)} |"


def _markdown(cells: Sequence[Sequence[str]], rule: str = "---:") -> Iterator[str]:
    head, *rows = cells
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join(('---', *(rule for _ in head[1:])))} |"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def front_page(text: str, compared: Comparison) -> str:
    """The README with these figures between its two marks."""
    begin, end = "<!-- bench -->\n", "<!-- /bench -->"
    before, _, rest = text.partition(begin)
    shown = [tool for tool in compared.tools if tool.wall is not None]
    rows = (
        ("", *(tool.name for tool in shown)),
        ("---", *("---:" for _ in shown)),
        ("wall", *(f"{tool.wall:.1f} s" for tool in shown)),
        ("controller's CPU a node", *(f"{tool.cpu:.1f} ms" for tool in shown)),
    )
    lines = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    words = f"Measured on {compared.title} by `make bench`, which has the settings and what must be reached: [results](benchmarks/results.md)."
    return f"{before}{begin}{words}\n\n{lines}\n{end}{rest.partition(end)[2]}"
