"""Other people on the controller's machine: files of rollout are private, links are not followed, world-writable folders not trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rollout.adapters.private_files import private_state, write_privately
from rollout.errors import InputError, StateError
from tests.controllers import Done
from tests.story.conftest import Site

SOMEBODY = 12345


def rights(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def status(folder: Path) -> Done:
    return Site(folder, folder).rollout("status")


def test_written_files_are_private_whatever_was_there_before(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text("old")
    path.chmod(0o666)
    before = os.umask(0)
    try:
        write_privately(path, b"new")
    finally:
        os.umask(before)
    assert (path.read_bytes(), rights(path)) == (b"new", 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.json"]


def test_a_link_that_somebody_made_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "shadow"
    victim.write_text("root:x")
    (tmp_path / "p.json").symlink_to(victim)
    with pytest.raises(InputError, match="symbolic link") as caught:
        write_privately(tmp_path / "p.json", b"new")
    assert caught.value.reference == "file-not-writable"
    assert victim.read_text() == "root:x"


def test_a_pipe_or_a_folder_instead_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(InputError, match="not a regular file"):
            write_privately(path, b"new")


def test_a_failed_write_leaves_only_the_previous_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file or directory"):
        write_privately(tmp_path / "no" / "where", b"new")
    assert list(tmp_path.iterdir()) == []


def test_the_journal_is_private_even_in_a_folder_that_others_can_read(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    private_state(folder)
    assert (rights(folder), rights(folder / "journal.db")) == (0o700, 0o600)
    wide = tmp_path / "wide"
    wide.mkdir(mode=0o755)
    (wide / "journal.db").touch(mode=0o644)
    private_state(wide)
    assert rights(wide / "journal.db") == 0o600


@pytest.mark.process
@pytest.mark.parametrize("where", ["", "journal.db", "journal.db-wal"])
def test_a_world_writable_journal_is_refused(tmp_path: Path, where: str) -> None:
    private_state(tmp_path / ".rollout")
    path = tmp_path / ".rollout" / where
    path.touch()
    path.chmod(path.stat().st_mode | 0o002)
    done = status(tmp_path)
    assert done.code == 5
    assert "[state-not-private]" in done.err
    assert "writable by everybody" in done.err


@pytest.mark.root  # giving a file to another user
@pytest.mark.parametrize("where", ["", "journal.db"])
def test_a_journal_of_another_user_is_refused(tmp_path: Path, where: str) -> None:
    private_state(tmp_path / ".rollout")
    os.chown(tmp_path / ".rollout" / where, SOMEBODY, SOMEBODY)
    done = status(tmp_path)
    assert (done.code, "belongs to another user (uid 12345)" in done.err) == (5, True)


@pytest.mark.process
def test_a_link_instead_of_the_journal_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("root:x")
    (tmp_path / ".rollout").mkdir(mode=0o700)
    (tmp_path / ".rollout/journal.db").symlink_to(victim)
    with pytest.raises(StateError, match="unexpected kind of file"):
        private_state(tmp_path / ".rollout")
    assert status(tmp_path).code == 5
    assert victim.read_text() == "root:x"
