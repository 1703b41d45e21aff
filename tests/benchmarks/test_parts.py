"""The whole bench ends with results, whatever fails in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import benchmarks.__main__ as bench
from benchmarks.figures import Row
from benchmarks.measured import FailedError, Measured, Turns, measured

SIZES = bench.Sizes(4, 1, 50, 4, 1, 2, 3000, Path("tools"))


def broken(_sizes: bench.Sizes) -> bench.Part:
    raise SystemExit("sshd does not listen\nand more")


def compared(_sizes: bench.Sizes) -> bench.Part:
    turns = Turns(4, {"safe floor": [Measured(2.0, 0.4, "")]}, {"safe floor": 1.0}, {"pyinfra": "round 1: no | route"})
    return bench.Part(bench.of_turns(turns), {"4 real nodes": turns})


def test_a_part_that_fails_costs_its_own_rows_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    last = bench.Part((Row("the last", 1.0, 2.0, "s"),))
    monkeypatch.setattr(bench, "HERE", tmp_path)
    monkeypatch.setattr(bench, "README", tmp_path / "README.md")
    (tmp_path / "README.md").write_text("before\n<!-- bench -->\nold\n<!-- /bench -->\nafter\n")
    monkeypatch.setattr(bench, "PARTS", {"compared": compared, "broken": broken, "last": lambda _: last})
    bench.measure_all(SIZES)
    written = (tmp_path / "results.md").read_text()
    assert "| the part `broken` | - |" in written
    assert "failed: sshd does not listen |" in written
    assert "| the last | 1.00 s |" in written
    assert "| safe floor | 2.0 s | 100.0 ms | 1.0 |" in written
    assert "| pyinfra | - | - | - | pyinfra failed in round 1: no / route |" in written
    assert len(json.loads((tmp_path / "results.json").read_text())) == len(compared(SIZES).rows) + 2
    assert "safe floor" in (tmp_path / "results.svg").read_text()
    front = (tmp_path / "README.md").read_text()
    assert front.startswith("before\n<!-- bench -->\nMeasured on 4 real nodes")
    assert front.endswith("<!-- /bench -->\nafter\n")
    assert "|  | safe floor |\n| --- | ---: |\n| wall | 2.0 s |\n| controller's CPU a node | 100.0 ms |\n" in front
    assert "old" not in front


@pytest.mark.process
def test_a_command_that_fails_has_no_figures(tmp_path: Path) -> None:
    with pytest.raises(FailedError, match="ended with 3: gone"):
        measured(("sh", "-c", "echo gone; exit 3"), tmp_path)
