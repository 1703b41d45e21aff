"""`rollout runs`: when each run began, its operator, how it ended, and which later runs rolled it back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.ports import RunHeader
from rollout.cli.main import run
from rollout.core.presentation.summary import NodeCount, RunSummary
from rollout.core.run.journal_codec import encode_order
from tests.documents import only
from tests.orders import make_order

FIRST = 1_795_276_800.0


def summary(ending: str, code: int, reverted: dict[str, str] | None = None, owed: str = "") -> RunSummary:
    nodes = {"confirmed": NodeCount(3, "a-[1-3]")}
    return RunSummary(FIRST + 90, ending, code, "", 1, nodes, owed, "", reverted or {})


def begin(journal: SqlJournal, number: int, who: str, goal: str = "apply", cluster: str = "test") -> str:
    name = f"r{number}"
    order = encode_order(make_order({"a": 3}))
    journal.acquire(cluster, name)
    journal.begin(RunHeader(name, cluster, goal, order, number, b"", FIRST + number, who, f"OPS-{number}"))
    return name


def end(journal: SqlJournal, number: int, who: str, found: RunSummary, goal: str = "apply") -> None:
    name = begin(journal, number, who, goal)
    journal.append(name, ['{"event": "none"}'], found)
    journal.release("test", name)


@pytest.fixture
def state(tmp_path: Path) -> str:
    """A halted run that two rollbacks reverted, a run that its controller left, and one at work on another cluster."""
    journal = SqlJournal(tmp_path / "state")
    end(journal, 1, "ann@ops", summary("halted", 3))
    end(journal, 2, "bob@ops", summary("done", 0, {"r1": "a-1"}), "revert")
    end(journal, 3, "bob@ops", summary("done", 4, {"r1": "a-[2-3]"}, "a-3"), "revert")
    journal.release("test", begin(journal, 4, "ann@ops"))
    begin(journal, 5, "eve@desk", cluster="other")
    return str(tmp_path / "state")


def listed(state: str, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert run(["runs", "--state", state, "-o", "json", *words]) == 0
    found: list[dict[str, Any]] = only(capsys.readouterr().out)["runs"]
    return found


def test_the_newest_is_first_and_each_has_its_end(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert [(each["run"], each["state"], each["exitCode"]) for each in listed(state, capsys)] == [
        ("r5", "at-work", None),
        ("r4", "no-controller", None),
        ("r3", "done", 4),
        ("r2", "done", 0),
        ("r1", "halted", 3),
    ]


def test_a_run_names_the_runs_that_rolled_it_back(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--state", state, "--in", "halted"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2026-11-21 16:00:01 UTC  run r1 on test by ann@ops: halted, rolled back, exit code 3",
        "  changes: settings not recorded",
        "  nodes: 3 of 3 confirmed, took 89 s",
        "  reason: OPS-1",
        "  rolled back by run r2 on 1 node (a-1)",
        "  rolled back by run r3 on 2 nodes (a-[2-3])",
    ]
    (found,) = listed(state, capsys, "--in", "halted")
    assert found["rolledBack"][1] == {"run": "r3", "nodes": "a-[2-3]", "count": 2}
    assert (found["began"], found["ended"]) == ("2026-11-21T16:00:01.000Z", "2026-11-21T16:01:30.000Z")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--cluster", "test", "--most", "2"), ["r4", "r3"]),
        (("--who", "bob"), ["r3", "r2"]),
        (("--in", "done", "--in", "no-controller"), ["r4", "r3", "r2"]),
        (("--who", "nobody"), []),
        (("--since", "2026-11-21"), ["r5", "r4", "r3", "r2", "r1"]),
        (("--since", "2026-11-22"), []),
        (("--since", "1000000h"), ["r5", "r4", "r3", "r2", "r1"]),
    ],
)
def test_filters(state: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], names: list[str]) -> None:
    assert [each["run"] for each in listed(state, capsys, *words)] == names


def test_a_time_that_is_none_is_refused(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runs", "--state", state, "--since", "tuesday"]) == 2
    assert "[bad-since]" in capsys.readouterr().err


def test_an_empty_journal_has_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(str(tmp_path / "none"), capsys) == []
    assert run(["runs", "--state", str(tmp_path / "none")]) == 0
    how = f"`rollout show config --state {tmp_path / 'none'}`"
    assert (
        capsys.readouterr().out
        == f"the journal has no run, or none that the options choose; {how} shows which journal is read\n"
    )
    assert not (tmp_path / "none").exists()


def test_long_lines_are_wrapped_and_indented_on_a_terminal_only(
    state: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert run(["runs", "--state", state, "--in", "halted"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) > 60
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run(["runs", "--state", state, "--in", "halted"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "2026-11-21 16:00:01 UTC  run r1 on test by"
    assert second == "  ann@ops: halted, rolled back, exit code 3"


def test_a_rollback_without_a_run_names_the_newest_and_does_not_take_it(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rollback", "--state", state, "--yes"]) == 2
    hint = f"(the newest is r5; `rollout runs --state {state}` lists all) [run-or-emergency]\n"
    assert capsys.readouterr().err.endswith(hint)
