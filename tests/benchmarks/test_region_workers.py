"""What the benchmark of regions prints is computed from what it measured."""

from __future__ import annotations

from benchmarks.measured import Measured, Turns
from benchmarks.region_workers import EMBEDDED, ONE, TWO, page, rows

FIGURES = {EMBEDDED: (10.0, 2.0), ONE: (11.0, 2.25), TWO: (12.0, 3.0)}
ALL = Turns(100, {engine: [Measured(wall, cpu, "")] for engine, (wall, cpu) in FIGURES.items()})
SINGLE = Turns(1, {engine: [Measured(1.0, 0.1 if engine == EMBEDDED else 0.3, "")] for engine in FIGURES})
MEMORY = {200: 70.0, 400: 71.5, 600: 72.0, 800: 72.0, 1000: 72.25}


def test_overheads_are_over_the_embedded_engine_and_starts_are_shown_apart() -> None:
    wall, cpu, wall_of_two, cpu_of_two, memory = rows(SINGLE, ALL, MEMORY)
    assert (round(wall.value or 0, 6), wall.verdict, wall.note) == (10.0, "met", "11.0 s, embedded 10.0 s")
    assert (round(cpu.value or 0, 6), cpu.verdict) == (2.5, "met")
    assert cpu.note == "0.5 ms without the 0.20 s of a run of one node"
    assert [each.verdict for each in (wall_of_two, cpu_of_two)] == ["not met", "not met"]
    assert (memory.value, memory.verdict, memory.note.count("MiB")) == (2.25, "met", 5)
    assert "1,000: 72.2 MiB" in memory.note


def test_the_page_names_the_real_numbers() -> None:
    text = page(SINGLE, ALL, MEMORY, 3)
    assert "A change of 100 cheap nodes, the median of 3 rounds. Embedded: 10.0 s and 20.0 ms of CPU a node." in text
