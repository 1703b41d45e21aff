"""Controllers that died without telling anybody: a reader of the journal tells people once of each death."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

from rollout.adapters.journal import SqlJournal
from rollout.app.ports import Journal
from rollout.core.presentation.notices import Notice, NoticeKind
from rollout.core.run.state import RunState
from rollout.errors import StateError
from rollout.features.serve.asking import tell_of_lost, watch_controllers
from tests.core.presentation import journals
from tests.features.serve.serving import keep

RUN = "r20261124-lost"


def running(folder: Path, events: int | None = 200) -> SqlJournal:
    """A run in the middle (``None``: at its end). This process is its controller and holds the lease."""
    plan, play = journals.halted(120)
    journal = keep(folder, RUN, plan, play, events)
    if events is None:
        journal.acquire("rno", RUN)
    return journal


def die(folder: Path, silent: float = 45.0) -> None:
    """The lease is that of another machine, which sent no heartbeat for so many seconds."""
    with sqlite3.connect(folder / "state" / "journal.db") as database:
        words = "UPDATE leases SET owner = 'desk:boot.1:77:9', heartbeat = heartbeat - ?"
        assert database.execute(words, (silent,)).rowcount == 1
    database.close()


def told(journal: Journal, now: float | None = None) -> list[Notice]:
    found: list[Notice] = []

    def tell(notice: Notice, state: RunState) -> None:
        assert state.order.run == RUN
        found.append(notice)

    tell_of_lost(journal, tell, "ann@ops", time.time() if now is None else now)
    return found


def test_a_controller_that_lives_or_ended_in_order_is_no_news(tmp_path: Path) -> None:
    journal = running(tmp_path)
    assert told(journal) == []
    journal.release("rno", RUN)
    assert told(journal) == [], "it told of itself"


def test_people_are_told_once_of_each_controller_that_dies(tmp_path: Path) -> None:
    journal = running(tmp_path)
    die(tmp_path)
    (notice,) = told(journal)
    assert notice.kind is NoticeKind.CONTROLLER_LOST
    assert "from desk" in notice.lines[0]
    assert notice.lines[1] == f"rollout resume {RUN}"
    assert told(SqlJournal(tmp_path / "state")) == [], "another reader finds the note"
    (note,) = journal.notes("rno")
    assert (note.who, note.text.partition(":")[0]) == ("ann@ops", f"run {RUN} has no controller"), "it was not sent yet"
    assert len(told(journal, time.time() + 3600)) == 1, "its heartbeat is newer than the note: a later controller died"


def test_a_run_that_has_ended_lost_nothing(tmp_path: Path) -> None:
    journal = running(tmp_path, None)
    die(tmp_path)
    assert told(journal) == []


def test_a_journal_that_is_away_is_read_again(tmp_path: Path) -> None:
    journal = running(tmp_path)
    die(tmp_path)
    looks: list[float] = []
    heard: list[Notice] = []

    def opened() -> Journal:
        if not looks:
            raise StateError("journal-unreachable", "away")
        return journal

    def stopped(seconds: float) -> bool:
        looks.append(seconds)
        return len(looks) == 3

    watch_controllers(opened, lambda notice, _state: heard.append(notice), "ann@ops", time.time, stopped)
    assert [notice.kind for notice in heard] == [NoticeKind.CONTROLLER_LOST]
