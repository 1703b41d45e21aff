"""What people are told beside the patches."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.cli.main import run


def test_an_export_of_a_cluster_says_that_it_does_not_know_what_another_journal_reverted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "kubeadm", "--cluster", "rno", "--state", str(tmp_path)]) == 0
    told = capsys.readouterr()
    assert f"`rollout verify --state {tmp_path} --cluster rno` reads the nodes" in told.err
    assert "another journal" not in told.out


@pytest.mark.parametrize("command", ["status", "runs"])
def test_the_help_of_commands_that_read_the_journal_only_says_what_it_does_not_know(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "-h"]) == 0
    assert "what a run of another journal reverted is not shown" in " ".join(capsys.readouterr().out.split())
