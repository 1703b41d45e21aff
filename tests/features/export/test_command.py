"""What people are told beside the patches."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.runs import start_apply
from rollout.cli.main import run
from tests.app.site import ACCESS, SMALL, Site


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


@pytest.mark.parametrize("command", ["status", "runs"])
def test_the_help_of_commands_that_read_the_journal_only_says_what_it_does_not_know(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "-h"]) == 0
    assert "what a run of another journal reverted is not shown" in " ".join(capsys.readouterr().out.split())
