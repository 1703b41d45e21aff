"""`rollout status` shows whether a run that has not ended has a live controller."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.ports import Note, RunHeader
from rollout.cli.main import run
from rollout.core.run.events import Answered, Trigger
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.state import Verb
from tests.documents import only, printed
from tests.orders import make_order

HEADER = RunHeader("r1", "test", "apply", encode_order(make_order({"a": 3})), 1, b"", 1.0, "ann@desk", "OPS-7")


@pytest.fixture
def journal(tmp_path: Path) -> SqlJournal:
    """A run that has started and not ended."""
    made = SqlJournal(tmp_path / "state")
    made.begin(HEADER)
    return made


def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["status", "--state", str(tmp_path / "state")]) == 0
    return capsys.readouterr().out


def document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert run(["status", "-o", "json", "--state", str(tmp_path / "state")]) == 0
    controller: dict[str, object] = only(capsys.readouterr().out)["controller"]
    return controller


def test_a_live_controller_is_not_mentioned(
    journal: SqlJournal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal.acquire("test", "r1")
    assert "no controller" not in told(tmp_path, capsys)
    found = document(tmp_path, capsys)
    assert (found["alive"], found["host"], found["pid"]) == (True, socket.gethostname(), os.getpid())
    assert abs(datetime.fromisoformat(str(found["heartbeat"])).timestamp() - time.time()) < 3600


def to_continue(folder: Path) -> str:
    """The proposal, with the option of the command that prints it."""
    return f"  To continue: rollout resume --state {folder / 'state'} r1\n"


def test_a_run_without_a_controller_is_reported_with_the_command_to_continue(
    journal: SqlJournal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = told(tmp_path, capsys)
    assert "  no controller is at work on this run\n" + to_continue(tmp_path) in out
    nobody: dict[str, object] = {"alive": False, "host": None, "pid": None, "heartbeat": None, "regions": []}
    assert document(tmp_path, capsys) == nobody


def test_json_has_the_age_of_the_run_and_who_began_it(
    journal: SqlJournal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = time.time()
    assert run(["status", "-o", "json", "--state", str(tmp_path / "state")]) == 0
    found = only(capsys.readouterr().out)
    assert (found["kind"], found["who"], found["reason"]) == ("Status", "ann@desk", "OPS-7")
    assert found["began"] == "1970-01-01T00:00:01.000Z"
    assert before - 1.0 <= found["age"] <= time.time() - 1.0


def test_an_impossible_event_in_the_journal_is_a_state_error(
    journal: SqlJournal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal.acquire("test", "r1")
    journal.append("r1", [encode_event(Answered(2.0, "a-1", 9, Verb.READ, Trigger.UNTOUCHED))])
    for command in ("status", "report"):
        assert run([command, "--state", str(tmp_path / "state")]) == 5
        assert "is not outstanding" in capsys.readouterr().err


@pytest.mark.process
def test_a_killed_controller_is_not_alive(
    journal: SqlJournal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import os, signal; from pathlib import Path; from rollout.adapters.journal import SqlJournal; "
        f"SqlJournal(Path({str(tmp_path / 'state')!r})).acquire('test', 'r1'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    out = told(tmp_path, capsys)
    assert "  no controller is at work on this run: the last heartbeat came " in out
    assert to_continue(tmp_path) in out
    assert document(tmp_path, capsys)["alive"] is False

    at = str(tmp_path / "state")
    assert run(["watch", "--state", at]) == 5
    assert "no controller is at work on this run: the last heartbeat came " in capsys.readouterr().err
    assert run(["watch", "--state", at, "-o", "json"]) == 5
    last = printed(capsys.readouterr().out)[-1]
    assert (last["kind"], last["run"], last["controller"]["alive"]) == ("NoController", "r1", False)
    assert last["controller"]["pid"] != os.getpid()
    assert run(["report", "--state", at]) == 0
    assert "no controller is at work on this run: the last heartbeat came " in capsys.readouterr().out
    assert run(["report", "--state", at, "--html", str(tmp_path / "run.html")]) == 0
    page = (tmp_path / "run.html").read_text()
    assert "<p>no controller is at work on this run: the last heartbeat came " in page
    assert f"<p>{to_continue(tmp_path).strip()}</p>" in page
    assert run(["pause", "--state", at]) == 5
    assert "no controller is at work on run r1: the last heartbeat came " in capsys.readouterr().err


def test_json_has_the_newest_notes_on_the_cluster_of_the_run(
    journal: SqlJournal, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands that operators ran by hand, and unlocks."""
    for number in range(150):
        journal.note("test", Note(float(number), "ann@desk", f"exec {number}"))
    journal.note("other", Note(200.0, "ann@desk", "elsewhere"))
    assert run(["status", "-o", "json", "--state", str(tmp_path / "state")]) == 0
    notes = only(capsys.readouterr().out)["notes"]
    assert len(notes) == 100
    assert notes[-1] == {"at": "1970-01-01T00:02:29.000Z", "who": "ann@desk", "text": "exec 149"}
