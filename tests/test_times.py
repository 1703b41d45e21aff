"""The table of what tests cost: its rows, and what is read from it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.times import TABLE, known, measured


def test_a_row_is_the_sum_of_the_tests_of_a_file_in_all_processes(tmp_path: Path) -> None:
    first = [("tests/a.py::one", 1.0, 4.0), ("tests/b.py::two", 0.5, 0.5)]
    second = [("tests/a.py::three[x::y]", 2.0, 1.0)]
    for name, rows in (("1.jsonl", first), ("2.jsonl", second)):
        lines = [json.dumps({"test": test, "cpu": cpu, "seconds": seconds}) for test, cpu, seconds in rows]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    assert measured(tmp_path) == [("tests/a.py", 2, 3.0, 2.0, 4.0), ("tests/b.py", 1, 0.5, 0.0, 0.5)]


def test_the_table_is_sorted_by_what_costs_most() -> None:
    cost = [float(row["cpu"]) for row in known().values()]
    assert cost == sorted(cost, reverse=True), TABLE.name
    assert sum(cost) > 100
