"""The whole bench ends with results, whatever fails in it. A part that is measured alone leaves the others as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import benchmarks.__main__ as bench
from benchmarks import results
from benchmarks.figures import Row
from benchmarks.measured import FailedError, Measured, Turns, measured

SIZES = bench.Sizes(4, 1, 50, 4, 1, 2, 1, 4, 1, 100.0, 3000, Path("tools"))
REASONS = results.Reasons("a verb", (("verb", "CPU"), ("apply", "3 ms | 4 ms")), "Of one node.")
LAST = results.Found((Row("the last", 1.0, 2.0, "s"),), reasons=(REASONS,))


def broken(_sizes: bench.Sizes) -> results.Found:
    raise SystemExit("sshd does not listen\nand more")


def compared(_sizes: bench.Sizes) -> results.Found:
    turns = Turns(4, {"safe floor": [Measured(2.0, 0.4, "")]}, {"safe floor": 1.0}, {"pyinfra": "round 1: no | route"})
    return results.Found(bench.of_turns(turns), (results.comparison("4 real nodes", turns, bench.SETTINGS),))


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Of results, beside a README; the bench has three parts."""
    monkeypatch.setattr(bench, "HERE", tmp_path)
    monkeypatch.setattr(bench, "README", tmp_path / "README.md")
    (tmp_path / "README.md").write_text("before\n<!-- bench -->\nold\n<!-- /bench -->\nafter\n")
    monkeypatch.setattr(bench, "PARTS", {"real": compared, "broken": broken, "last": lambda _: LAST})
    return tmp_path


def test_a_part_that_fails_costs_its_own_rows_only(folder: Path) -> None:
    bench.measure(("real", "broken", "last"), SIZES, "abcdef01")
    written = (folder / "results.md").read_text()
    assert "| the part `broken` | - |" in written
    assert "failed: sshd does not listen |" in written
    assert "| the last | 1.00 s |" in written
    assert "| safe floor | 2.0 s | 100.0 ms | 1.0 | pool of 200 |" in written
    assert "| pyinfra | - | - | - | pyinfra failed in round 1: no / route |" in written
    assert "### a verb\n\n| verb | CPU |\n| --- | ---: |\n| apply | 3 ms / 4 ms |\n\nOf one node.\n" in written
    assert json.loads((folder / "results.json").read_text())["last"]["found"]["rows"][0]["verdict"] == "met"
    assert "safe floor" in (folder / "results.svg").read_text()
    front = (folder / "README.md").read_text()
    assert front.startswith("before\n<!-- bench -->\nMeasured on 4 real nodes")
    assert front.endswith("<!-- /bench -->\nafter\n")
    assert "|  | safe floor |\n| --- | ---: |\n| wall | 2.0 s |\n| controller's CPU a node | 100.0 ms |\n" in front
    assert "old" not in front


def test_a_part_measured_alone_leaves_the_others(folder: Path) -> None:
    bench.measure(("real", "last"), SIZES, "12345678")
    earlier = results.read(folder / "results.json")
    bench.measure(("last",), SIZES, "abcdef01")
    kept = results.read(folder / "results.json")
    assert kept["real"] == earlier["real"]
    assert (kept["real"].commit, kept["last"].commit) == ("12345678", "abcdef01")
    written = (folder / "results.md").read_text()
    assert f"| real | 12345678 | {earlier['real'].date} | one round |" in written
    assert f"| last | abcdef01 | {kept['last'].date} | one round |" in written


@pytest.mark.process
def test_a_command_that_fails_has_no_figures(tmp_path: Path) -> None:
    with pytest.raises(FailedError, match="ended with 3: gone"):
        measured(("sh", "-c", "echo gone; exit 3"), tmp_path)
