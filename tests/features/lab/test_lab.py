"""``rollout lab`` as a user types it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rollout.errors import RolloutError, StateError, UsageError
from rollout.features.lab.command import lab
from tests.documents import only
from tests.places import ROOT

pytestmark = pytest.mark.process

INVENTORIES = ROOT / "inventories"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inventories").symlink_to(INVENTORIES)
    return tmp_path


def rollout_lab(*words: str) -> Result:
    result = CliRunner().invoke(lab, words)
    assert result.exception is None or isinstance(result.exception, RolloutError | SystemExit), result.exception
    return result


def test_up_status_fault_down(here: Path) -> None:
    result = rollout_lab("up", "--cluster", "rno", "--nodes", "3", "--restart-sec", "0.5")
    try:
        assert result.output.splitlines()[:2] == [
            "3 nodes of rno serve on loopback: kubelet 1.20.15 with dockershim.",
            "  rollout plan --cluster rno --ssh-config .rollout/lab/ssh_config --limit 'tess-node-[0001-0003]'",
        ]
        line = result.output.splitlines()[2].split()
        assert subprocess.run(line, capture_output=True, check=True).stdout == b"active\n"
        assert isinstance(rollout_lab("up", "--cluster", "rno").exception, StateError)
        assert rollout_lab("fault", "tess-node-0002", "refuse").output == "refuse: tess-node-0002\n"
        assert rollout_lab("status").output.splitlines() == [
            "cluster rno, 0 connections, 0 commands",
            "  running 3: tess-node-[0001-0003]",
            "  fault refuse 1: tess-node-0002",
        ]
        assert rollout_lab("fault", "@all", "--clear").output == "cleared: tess-node-[0001-0003]\n"
        status = only(rollout_lab("status", "-o", "json").output)
        assert (status["states"], status["faults"]) == ({"running": "tess-node-[0001-0003]"}, {})
        assert rollout_lab("faults").output == "no fault is set\n"
        assert rollout_lab("fault", "api", "api-down").output == "api-down: api\n"
        assert rollout_lab("faults").output == "api api-down\n"
        assert rollout_lab("fault", "tess-node-0001", "reboots").output == "reboot: tess-node-0001\n"
        listed = only(rollout_lab("faults", "-o", "json").output)
        assert (listed["api"], [each["nodes"] for each in listed["faults"]]) == ("api-down", [])
        for words in (("tess-node-0001",), ("tess-node-0001", "refuse", "--clear"), ("nobody", "refuse")):
            assert isinstance(rollout_lab("fault", *words).exception, UsageError), words
    finally:
        assert rollout_lab("down").exit_code == 0
    assert not (here / ".rollout/lab").exists()


def test_without_a_lab(here: Path) -> None:
    for words in (("status",), ("down",), ("fault", "x", "refuse")):
        assert isinstance(rollout_lab(*words).exception, StateError)


def test_an_invalid_limit(here: Path) -> None:
    assert isinstance(rollout_lab("up", "--cluster", "rno", "--limit", "nobody").exception, UsageError)
    assert not (here / ".rollout/lab").exists()
