"""A journal on a file system that nobody can write to is read, and one that could not be made leaves nothing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.adapters.journal.sqlite_file import _connect_read_only, reader_of
from rollout.adapters.private_files import remove_empty_journal
from rollout.app.ports import RunHeader
from rollout.core.run.journal_codec import encode_order
from tests.orders import make_order

HEADER = RunHeader("r1", "test", "apply", encode_order(make_order({"a": 3})), 1, b"", 1.0, "ann@desk", "OPS-7")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    with closing(SqlJournal(tmp_path / "state")) as journal:
        journal.begin(HEADER)
    return tmp_path / "state"


@pytest.mark.root  # mounting
@pytest.mark.parametrize("command", ["status", "runs", "report", "show metrics"])
def test_a_look_at_a_read_only_journal_shows_its_run(state: Path, command: str) -> None:
    rollout = f"{sys.executable} -m rollout.cli {command} --state {state}"
    script = f"mount --bind {state} {state} && mount -o remount,ro,bind {state} && {rollout}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ('cluster="test"' if command == "show metrics" else "r1") in done.stdout


@pytest.mark.root  # mounting
def test_verify_reads_a_read_only_journal(state: Path) -> None:
    """No node answers, so the exit code is 4: the journal was read."""
    (state.parent / "inventories").mkdir()
    (state.parent / "inventories/test.yaml").write_text(
        "cluster: test\napiServer: v1.34.2\nnodes: {a-1: {address: 127.0.0.9, port: 9}}\n"
    )
    rollout = f"{sys.executable} -m rollout.cli verify --cluster test --state {state}"
    script = f"mount --bind {state} {state} && mount -o remount,ro,bind {state} && cd {state.parent} && {rollout}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr


def test_a_file_without_a_log_is_read_without_writing(state: Path) -> None:
    before = sorted(path.name for path in state.iterdir())
    with closing(_connect_read_only(state / "journal.db")) as connection:
        assert connection.execute("SELECT run FROM runs").fetchall() == [("r1",)]
    assert sorted(path.name for path in state.iterdir()) == before


def test_a_log_with_events_is_not_passed_over(state: Path) -> None:
    (state / "journal.db-wal").write_bytes(b"events")
    with pytest.raises(sqlite3.OperationalError, match="write-ahead log"):
        _connect_read_only(state / "journal.db")


def test_no_journal_is_no_reader(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_bytes(b"")
    assert reader_of(tmp_path) is None


def test_an_empty_journal_is_removed_and_its_folder_and_a_full_one_stay(tmp_path: Path, state: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "journal.db").write_bytes(b"")
    remove_empty_journal(empty)
    assert list(empty.iterdir()) == []
    remove_empty_journal(state)
    assert reader_of(state) is not None
    remove_empty_journal(tmp_path / "nowhere")
