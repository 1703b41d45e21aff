"""What people are told beside the patches."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.runs import start_apply
from rollout.cli.main import run
from rollout.composition.wiring import Session
from tests.app.site import ACCESS, SMALL, Site
from tests.cli.test_leavers import write_plan


def test_an_export_of_a_cluster_says_that_it_does_not_know_what_another_journal_reverted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = SqlJournal(tmp_path)
    start_apply(SMALL, ACCESS, Site(journal).tools())
    journal.close()
    assert run(["export", "kubeadm", "--cluster", SMALL.cluster, "--state", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert f"`rollout verify --state {tmp_path} --cluster {SMALL.cluster}` reads the nodes" in told.err
    assert "another journal" not in told.out


@pytest.mark.parametrize("words", [("kubeadm",), ("new-nodes", "k3s")])
@pytest.mark.parametrize("of", ["plan", "cluster"])
def test_an_export_reads_the_journal_as_status_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], of: str
) -> None:
    """Also where nobody may write to it."""
    monkeypatch.chdir(tmp_path)
    journal = SqlJournal(tmp_path / ".rollout")
    start_apply(SMALL, ACCESS, Site(journal).tools())
    journal.close()
    file = write_plan(tmp_path)
    monkeypatch.delattr(Session, "journal")
    assert run(["export", *words, *((file,) if of == "plan" else ("--cluster", SMALL.cluster))]) == 0


@pytest.mark.parametrize("command", ["status", "runs"])
def test_the_help_of_commands_that_read_the_journal_only_says_what_it_does_not_know(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "-h"]) == 0
    assert "what a run of another journal reverted is not shown" in " ".join(capsys.readouterr().out.split())
