"""Runs of another version of rollout: ``status`` and ``report`` show what is stored; they are never resumed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rollout import __version__
from rollout.adapters.journal import SqlJournal
from rollout.app.ports import RunHeader
from rollout.cli.main import run
from rollout.core.plans import plan_codec
from rollout.core.presentation.summary import RunSummary, run_summary
from rollout.core.run.events import Event
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.state import RULES
from tests.core.presentation import journals
from tests.documents import only

RUN, LATER = "r20251119-100000-0001", "r20251120-100000-0002"
PLAN, PLAY = journals.halted()
BEGUN = RunHeader(
    RUN, PLAN.cluster, "apply", "", 1, plan_codec.encode(PLAN), PLAY.began, "ann@ops", "pulls time out", "0.0.9"
)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqlJournal:
    monkeypatch.chdir(tmp_path)
    return SqlJournal(Path(".rollout"))


def write(
    journal: SqlJournal,
    header: RunHeader,
    summary: RunSummary | None,
    rules: int | None = RULES - 1,
    events: Sequence[Event] = PLAY.journal,
) -> None:
    """A run with events that a version with these rules wrote."""
    order = json.loads(encode_order(PLAY.order)) | {"run": header.run, "rules": rules}
    text = json.dumps({name: value for name, value in order.items() if value is not None})
    journal.acquire(PLAN.cluster, header.run)
    journal.begin(replace(header, order=text))
    journal.append(header.run, [encode_event(event) for event in events], summary)
    journal.release(PLAN.cluster, header.run)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["status", "report"])
@pytest.mark.parametrize("rules", [RULES - 1, RULES + 1])
def test_a_run_with_other_rules_is_shown_by_its_summary(
    journal: SqlJournal, capsys: pytest.CaptureFixture[str], command: str, rules: int
) -> None:
    write(journal, BEGUN, run_summary(PLAY.state), rules)
    said = told(capsys, command)
    first, changes, second, third, *_ = said.splitlines()
    assert first == f"run {RUN} on rno: halted, exit code 3"
    assert changes.startswith("  changes: serializeImagePulls: true → false")
    assert second.startswith("  by ann@ops, began 2026-11-20 16:00:00 UTC, took 2 min ")
    assert second.endswith(": pulls time out")
    assert third == (
        f"  its events were written by rollout 0.0.9 with rules {rules}; this is rollout {__version__} with rules {RULES}: "
        "it can be shown, not resumed"
    )
    assert f"  plan: {plan_codec.digest(PLAN)}\n" in said
    assert "  why: 2 of 60 nodes of rack04 failed" in said
    for state, found in run_summary(PLAY.state).nodes.items():
        assert f"  {state} ({found.count}): {found.nodes}"[:200] in said


@pytest.mark.parametrize("command", ["status", "report"])
def test_json_shows_the_same(journal: SqlJournal, capsys: pytest.CaptureFixture[str], command: str) -> None:
    write(journal, BEGUN, run_summary(PLAY.state))
    document = only(told(capsys, command, "-o", "json"))
    summary = run_summary(PLAY.state)
    assert (document["run"], document["ending"], document["exitCode"]) == (RUN, "halted", 3)
    assert document["anotherVersion"] == {"rollout": "0.0.9", "rules": RULES - 1}
    assert document["counts"] == {state: found.count for state, found in summary.nodes.items()}
    assert {state: found["nodes"] for state, found in document["nodes"].items()} == {
        state: found.nodes for state, found in summary.nodes.items()
    }
    assert document["began"] == "2026-11-20T16:00:00.000Z"


def test_a_missing_summary_is_reported(journal: SqlJournal, capsys: pytest.CaptureFixture[str]) -> None:
    write(journal, replace(BEGUN, version=""), None, rules=None)
    said = told(capsys, "status")
    assert f"run {RUN} on rno: how it ended is not known\n" in said
    assert "  its events were written by another version with older rules; " in said
    assert "  no summary: the run has not ended, or its version wrote none\n" in said
    assert (
        "finish it with the version of rollout that began it, or run: rollout rollback --cluster rno --emergency"
        in said
    )
    assert only(told(capsys, "status", "-o", "json"))["ending"] is None


def test_a_run_that_continued_after_its_summary_is_not_reported_as_ended(
    journal: SqlJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    write(journal, BEGUN, run_summary(PLAY.state))
    journal.acquire(PLAN.cluster, RUN)
    journal.append(RUN, ['{"event": "Resumed", "at": 1.0, "counter": 2}'])
    assert "how it ended is not known" in told(capsys, "status")


@pytest.mark.parametrize("command", ["resume", "resume --recover-only", "rollback", "watch"])
def test_it_is_not_resumed_and_the_alternatives_are_printed(
    journal: SqlJournal, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    write(journal, BEGUN, None)
    assert run([*command.split(), RUN]) == 5
    (line,) = capsys.readouterr().err.splitlines()
    assert f"run {RUN} follows rules {RULES - 1}" in line
    assert (
        "finish it with rollout 0.0.9, the version that started it, or `rollout rollback --cluster rno --emergency`"
        in line
    )
    assert f"`rollout status {RUN}` shows what the journal records of it" in line
    assert line.endswith("[another-version]")


@pytest.mark.parametrize("rules", sorted({11, RULES - 1, RULES + 1}))
def test_events_that_these_rules_cannot_replay_are_those_of_another_version(
    journal: SqlJournal, capsys: pytest.CaptureFixture[str], rules: int
) -> None:
    """Not a broken journal: the rules are read before any event."""
    write(journal, BEGUN, None, rules, tuple(reversed(PLAY.journal)))
    assert f"with rules {rules}; " in told(capsys, "status")
    assert run(["resume", RUN]) == 5
    assert "[another-version]" in capsys.readouterr().err


def test_an_html_report_of_it_is_refused_with_a_message(
    journal: SqlJournal, capsys: pytest.CaptureFixture[str]
) -> None:
    write(journal, BEGUN, run_summary(PLAY.state))
    assert run(["report", "--html", "run.html"]) == 5
    assert "[another-version]" in capsys.readouterr().err
    assert not Path("run.html").exists()


def test_changed_events_of_another_version_are_refused(journal: SqlJournal, capsys: pytest.CaptureFixture[str]) -> None:
    write(journal, BEGUN, run_summary(PLAY.state))
    journal.close()
    with sqlite3.connect(".rollout/journal.db") as connection:
        connection.execute("UPDATE events SET body = '{}' WHERE number = 3")
    connection.close()
    assert run(["status"]) == 5
    assert "[journal-broken]" in capsys.readouterr().err


@pytest.mark.parametrize("reverted", [{RUN: "tess-node-[0001-0002]"}, {}], ids=["some", "none"])
def test_the_run_shows_what_a_rollback_of_another_version_reverted(
    journal: SqlJournal, capsys: pytest.CaptureFixture[str], reverted: dict[str, str]
) -> None:
    write(journal, BEGUN, run_summary(PLAY.state))
    back = replace(BEGUN, run=LATER, goal="revert", plan=b"", order="")
    names: Sequence[str] = ("tess-node-0001", "tess-node-0002")
    order = json.dumps({"run": LATER, "rules": RULES - 1, "transactions": dict.fromkeys(names, f"{RUN}-1")})
    journal.acquire(PLAN.cluster, LATER)
    journal.begin(replace(back, order=order))
    journal.append(LATER, ["{}"], replace(run_summary(PLAY.state), reverted=reverted))
    said = told(capsys, "status", RUN)
    line = f"  since then run {LATER} rolled it back on 2 nodes (tess-node-[0001-0002])"
    assert (line in said) == bool(reverted)
    assert f"  later: rollback {LATER} on rno by ann@ops\n" in said
    assert told(capsys, "status", LATER).startswith(f"rollback {LATER} on rno: halted")
