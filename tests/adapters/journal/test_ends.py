"""The state in which a run ended, beside its journal: read as it was written, for just its events, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from rollout.adapters.journal import PostgresUrl, SqlJournal, ends
from rollout.adapters.journal.ends import Ends
from rollout.app.ports import RunHeader
from rollout.core.run.machine import opening
from rollout.core.run.state import RunState, altered
from rollout.core.run.state_codec import decode_state
from tests.adapters.journal.conftest import Place
from tests.orders import make_order

STATE, _ = opening(make_order({"a": 2}), 1, 1.0)
"""The journal does not look into it."""
HEADER = RunHeader("r1", "test", "apply", "{}", 1, b"plan", 1.0, "me@here", "why")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqlJournal]:
    """Of a run that has ended."""
    with closing(SqlJournal(tmp_path)) as made:
        made.begin(HEADER)
        made.acquire("test", "r1")
        made.append("r1", ["a"])
        made.keep_end(STATE)
        yield made


@pytest.fixture
def other(tmp_path: Path) -> Iterator[SqlJournal]:
    """Another terminal's."""
    with closing(SqlJournal(tmp_path)) as made:
        yield made


def state_in(journal: SqlJournal, run: str = "r1") -> RunState | None:
    kept = journal.kept_end(run)
    return decode_state(kept, STATE.order) if kept is not None else None


def test_another_terminal_reads_it(journal: SqlJournal, other: SqlJournal) -> None:
    assert state_in(other) == STATE
    assert state_in(other, "r2") is None


def test_the_newest_states_are_kept(tmp_path: Path) -> None:
    found = Ends(tmp_path)
    for number in range(ends.MOST + 3):
        found.keep(f"r{number}", "head", "{}")
        os.utime(tmp_path / ends.FOLDER / f"r{number}", ns=(number, number))
    kept = [number for number in range(ends.MOST + 3) if found.kept(f"r{number}", "head")]
    assert kept == list(range(3, ends.MOST + 3))


def test_on_a_server_it_is_read_on_the_machine_of_the_run(place: Place, tmp_path: Path) -> None:
    mine, beside = tmp_path / "mine", tmp_path / "beside"
    with closing(SqlJournal(place, mine)) as made:
        made.begin(HEADER)
        made.acquire("test", "r1")
        made.append("r1", ["a"])
        made.keep_end(STATE)
    for folder, found in ((mine, STATE), (beside, None), *([(None, None)] if isinstance(place, PostgresUrl) else [])):
        with closing(SqlJournal(place, folder)) as read:
            assert state_in(read) == found


def test_it_counts_for_just_its_events(journal: SqlJournal, other: SqlJournal) -> None:
    journal.append("r1", ["b"])
    assert state_in(other) is None, "the run continues"
    again = altered(STATE, {"wave": 1})
    journal.keep_end(again)
    assert state_in(other) == again


def test_a_controller_that_has_written_no_event_keeps_nothing(journal: SqlJournal, other: SqlJournal) -> None:
    """It does not know which events its state is of."""
    other.keep_end(altered(STATE, {"wave": 1}))
    assert state_in(journal) == STATE


def edited(old: str, new: str) -> Callable[[Path], None]:
    def edit(file: Path) -> None:
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))

    return edit


def into_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


CHANGES: dict[str, Callable[[Path], object]] = {
    "another value": edited('"opening"', '"closing"'),
    "another seal": lambda file: file.write_text("0" * 64 + file.read_text()[64:]),
    "no seal": lambda file: file.write_text(file.read_text()[65:]),
    "cut off": lambda file: file.write_text(file.read_text()[:-1]),
    "empty": lambda file: file.write_text(""),
    "no text": lambda file: file.write_bytes(b"\xff\x00"),
    "a folder": into_a_folder,
    "gone": Path.unlink,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_it_is_not_read(
    journal: SqlJournal, other: SqlJournal, tmp_path: Path, change: Callable[[Path], object]
) -> None:
    assert state_in(other) == STATE
    change(tmp_path / "ends" / "r1")
    assert state_in(other) is None


def test_of_another_run_it_is_not_read(journal: SqlJournal, other: SqlJournal, tmp_path: Path) -> None:
    journal.begin(replace(HEADER, run="r2", cluster="iad"))
    journal.acquire("iad", "r2")
    journal.append("r2", ["a"])
    (tmp_path / "ends" / "r1").rename(tmp_path / "ends" / "r2")
    assert state_in(other, "r2") is None


def test_of_another_version_it_is_not_read(
    journal: SqlJournal, other: SqlJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under other rules the same events may lead to another state."""
    monkeypatch.setattr(ends, "__version__", "0.0.9")
    assert state_in(other) is None


def test_that_it_cannot_be_kept_is_no_failure(journal: SqlJournal, other: SqlJournal, tmp_path: Path) -> None:
    file = tmp_path / "ends" / "r1"
    file.unlink()
    file.mkdir()
    journal.keep_end(STATE)
    assert state_in(other) is None


def test_it_is_for_its_owner_only(journal: SqlJournal, tmp_path: Path) -> None:
    file = tmp_path / "ends" / "r1"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_without_a_folder_nothing_is_kept() -> None:
    Ends(None).keep("r1", "", "{}")
    assert Ends(None).kept("r1", "") is None
