"""New files: all of them or none, and never over another."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.errors import InputError
from rollout.features.init.client import replace_all, write_new


def test_all_are_written_with_their_folders(tmp_path: Path) -> None:
    write_new(tmp_path, {"a/one": "1\n", "two": "2\n"})
    assert (tmp_path / "a/one").read_text() == "1\n"
    assert (tmp_path / "two").read_text() == "2\n"


def test_one_that_exists_removes_those_before_it_again(tmp_path: Path) -> None:
    (tmp_path / "two").write_text("mine\n")
    with pytest.raises(InputError, match="nothing was written"):
        write_new(tmp_path, {"a/one": "1\n", "two": "2\n"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["two"]
    assert (tmp_path / "two").read_text() == "mine\n"


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "two").write_text("mine\n")
    with pytest.raises(InputError):
        write_new(tmp_path, {"a/one": "1\n", "two": "2\n"})
    assert list((tmp_path / "a").iterdir()) == []


def test_a_file_that_changed_since_it_was_shown_is_left(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("old\n")
    with pytest.raises(InputError, match="has changed since it was shown"):
        replace_all(tmp_path, {"two": (None, "2\n"), "one": ("older\n", "new\n")})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one"]
    replace_all(tmp_path, {"two": (None, "2\n"), "one": ("old\n", "new\n")})
    assert (tmp_path / "one").read_text() == "new\n"
