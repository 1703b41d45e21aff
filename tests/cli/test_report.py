"""``rollout report`` as typed, over a journal on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.ports import RunHeader
from rollout.cli.main import run
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.run.journal_codec import encode_event, encode_order
from tests.core.presentation import journals
from tests.documents import only
from tests.plays import Drive


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the journal of a halted run, and of an earlier run that ended as done."""
    monkeypatch.chdir(tmp_path)
    write("r20261119-100000-0001", *journals.done(60))
    write("r20261120-160000-ab12", *journals.halted())
    return tmp_path


def write(name: str, plan: Plan, play: Drive, content: bytes | None = None) -> None:
    journal = SqlJournal(Path(".rollout"))
    order = encode_order(play.order).replace(play.order.run, name)
    content = plan_codec.encode(plan) if content is None else content
    journal.acquire(plan.cluster, name)
    journal.begin(RunHeader(name, plan.cluster, "apply", order, 1, content, play.began, "ann@ops", "pulls time out"))
    journal.append(name, [encode_event(event) for event in play.journal])
    journal.release(plan.cluster, name)


def test_the_newest_run_is_reported_as_text(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("run r20261120-160000-ab12 on rno: halted, exit code 3\n")
    assert "■ halted: 2 of 60 nodes of rack04 failed" in said


def test_a_named_run_is_reported_as_json(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "r20261119-100000-0001", "-o", "json"]) == 0
    document = only(capsys.readouterr().out)
    assert (document["summary"]["run"], document["summary"]["ending"]) == ("r20261119-100000-0001", "done")


def test_an_html_report_is_written_and_its_path_printed(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "--html", "run.html"]) == 0
    assert capsys.readouterr().out == "report of run r20261120-160000-ab12: run.html\n"
    page = (kept / "run.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "Planned changes" in page


def test_a_run_is_reported_without_an_unreadable_plan(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, play = journals.done(60)
    write("r20261121-100000-0003", plan, play, b"{}")
    assert run(["report", "--html", "run.html"]) == 0
    page = (kept / "run.html").read_text()
    assert "cannot be read by this version" in page
    assert "Planned changes" not in page


BAD = [
    (["report", "r1"], "has no run `r1`", "no-such-run"),
    (["report", "--html", "nowhere/run.html"], "nowhere/run.html: No such file or directory", "file-not-writable"),
    (["report", "--state", "elsewhere"], "holds no run yet", "no-runs"),
]


@pytest.mark.parametrize(("words", "message", "reference"), BAD, ids=[reference for _, _, reference in BAD])
def test_a_failed_report_is_one_line(
    kept: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str, reference: str
) -> None:
    assert run(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert line.endswith(f"[{reference}]")
    assert not (kept / "elsewhere").exists()
