"""The calendars of a plan in a real run: the driver journals what they say, waits, and goes on; resume reads them again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from pathlib import Path

import pytest

from rollout.adapters.clock import SystemZones
from rollout.adapters.journal import SqlJournal
from rollout.app.following import replay
from rollout.app.runs import Tools, resumable, resume, start_apply
from rollout.app.start_times import PASSES, closed_lines
from rollout.core.run.events import InterruptAsked, Ticked, WindowClosed, WindowOpened
from rollout.core.run.journal_codec import decode_event
from rollout.core.run.state import Ending, NodeState
from rollout.errors import InputError, Place, Problem
from rollout.features.change_windows.asking import ChangeWindows, WindowTimes, zoned
from rollout.features.change_windows.rules import ChangeCalendar, Freeze, Weekday, Window
from tests.app.site import ACCESS, SMALL, Site

PLACE = Place("playbooks/p.yaml", 7, 9)
EVERY_DAY = frozenset(Weekday)
AT_NIGHT = ChangeCalendar(PLACE, "UTC", (Window(EVERY_DAY, 22 * 60, 4 * 60),), ())
NOON = 12 * 3600.0
NIGHT = 22 * 3600.0


@dataclass
class Wall:
    """The wall clock of a site: it begins at ``starts`` and runs with the site's own clock."""

    site: Site
    starts: float
    reads: int = 0

    def wall_seconds(self) -> float:
        return self.starts + self.site.at - 1000.0

    def zone(self, name: str) -> tzinfo:
        self.reads += 1
        if name != "UTC":
            raise InputError((Problem("unknown-zone", f"no zone `{name}` here"),))
        return UTC


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(SqlJournal(tmp_path))


def tools(site: Site, starts: float, interrupted_at: float = float("inf")) -> Tools:
    return replace(
        site.tools(), start_times=WindowTimes(Wall(site, starts)), interrupted=lambda: site.at >= interrupted_at
    )


def words(site: Site, run: str = "r1") -> list[str]:
    events = [decode_event(line) for line in site.journal.events(run)]
    return [type(event).__name__ for event in events if isinstance(event, WindowClosed | WindowOpened | InterruptAsked)]


def test_a_run_waits_for_its_window_and_its_journal_replays(site: Site) -> None:
    """It begins at 21:58 and its window opens at 22:00."""
    end = start_apply(replace(SMALL, conditions=(AT_NIGHT,)), ACCESS, tools(site, NIGHT - 120))
    assert end.ending is Ending.DONE
    assert words(site) == ["WindowClosed", "WindowOpened"]
    assert site.at - 1000 > 120
    known = replay(site.journal, "r1")
    assert known == replace(end, now=known.now)


def test_a_window_that_ends_in_the_middle_of_a_run(site: Site) -> None:
    """It ends 6 s after the beginning: the canary is finished, and the rest waits for three minutes."""
    again = replace(AT_NIGHT, windows=(*AT_NIGHT.windows, Window(EVERY_DAY, 243, 300)))
    end = start_apply(replace(SMALL, conditions=(again,)), ACCESS, tools(site, 4 * 3600 - 6))
    assert end.ending is Ending.DONE
    assert words(site) == ["WindowClosed", "WindowOpened"]
    assert 180 < site.at - 1000 < 300


def test_without_calendars_nothing_is_evaluated(site: Site) -> None:
    wall = Wall(site, NOON)
    start_apply(SMALL, ACCESS, replace(site.tools(), start_times=WindowTimes(wall)))
    assert words(site) == []
    assert wall.reads == 0


def test_a_calendar_is_evaluated_once_a_minute_at_most(site: Site) -> None:
    wall = Wall(site, NIGHT - 600)
    known = replace(site.tools(), start_times=WindowTimes(wall))
    start_apply(replace(SMALL, conditions=(AT_NIGHT,)), ACCESS, known)
    assert wall.reads < 15


def test_zone_data_that_cannot_be_read_closes(site: Site) -> None:
    lost = replace(AT_NIGHT, zone="Europe/Nowhere")
    end = start_apply(replace(SMALL, conditions=(lost,)), ACCESS, tools(site, NIGHT, interrupted_at=1300))
    assert end.ending is Ending.INTERRUPTED
    assert {record.state for record in end.nodes.values()} == {NodeState.PENDING}
    assert end.closed is not None
    assert end.closed.why.startswith("the calendar cannot be read: playbooks/p.yaml:7:9:")
    assert words(site) == ["WindowClosed", "InterruptAsked"]


def test_resume_obeys_the_plan_and_a_freeze_that_was_written_since(site: Site) -> None:
    start_apply(replace(SMALL, conditions=(AT_NIGHT,)), ACCESS, tools(site, NOON, interrupted_at=1060))
    frozen = ChangeCalendar(
        Place("inventories/c.yaml", 3, 1), "UTC", (), (Freeze("1970-01-01", "1970-01-01", "audit"),)
    )
    again = tools(site, NIGHT + 60, interrupted_at=site.at + 300)
    end = resume(resumable(site.journal, "r1"), ACCESS, again, (frozen,))
    assert {record.state for record in end.nodes.values()} == {NodeState.PENDING}
    assert end.closed is not None
    assert "inventories/c.yaml: frozen from 1970-01-01 to 1970-01-01 (audit)" in end.closed.why
    last = resume(resumable(site.journal, "r1"), ACCESS, tools(site, 86_400 + NIGHT), (frozen,))
    assert last.ending is Ending.DONE


def test_a_clock_that_is_set_is_noticed_within_a_minute(site: Site) -> None:
    wall = Wall(site, NOON)
    windows = ChangeWindows((AT_NIGHT,), wall)
    assert not windows.now().is_open
    wall.starts = NIGHT
    site.at += 61
    assert windows.now().is_open
    wall.starts = NOON
    assert not windows.now().is_open, "a clock that is set back is noticed at once"


def test_windows_are_told_before_the_tick_of_the_same_time(site: Site) -> None:
    """Changes start on ticks only, so none starts at the second at which its window ends."""
    start_apply(replace(SMALL, conditions=(AT_NIGHT,)), ACCESS, tools(site, 4 * 3600 - 3, interrupted_at=1060))
    events = [decode_event(line) for line in site.journal.events("r1")]
    closed = next(at for at, event in enumerate(events) if isinstance(event, WindowClosed))
    assert not any(isinstance(event, Ticked) and event.at >= events[closed].at for event in events[:closed])


def test_a_rollback_says_that_it_passes_a_closed_window(site: Site) -> None:
    at_noon, at_night = WindowTimes(Wall(site, NOON)), WindowTimes(Wall(site, NIGHT))
    found = closed_lines((AT_NIGHT, AT_NIGHT), at_noon, PASSES)
    why = "playbooks/p.yaml allows no change now; the next window opens Thu 1970-01-01 22:00 (UTC)"
    assert found == (f"the change window is closed: {why}; a rollback does not wait for it",)
    assert closed_lines((AT_NIGHT,), at_night, PASSES) == closed_lines((), at_noon, PASSES) == ()


@pytest.mark.parametrize("name", ["Europe/Zurick", "../../etc/passwd", "Europe", ""])
def test_an_unknown_zone_is_reported_at_its_place(name: str) -> None:
    with pytest.raises(InputError) as raised:
        zoned((replace(AT_NIGHT, zone=name),), SystemZones())
    (problem,) = raised.value.problems
    assert (problem.reference, problem.place) == ("unknown-zone", PLACE)
    assert problem.hint == ("did you mean `Europe/Zurich`?" if name == "Europe/Zurick" else problem.hint)


def test_the_zones_of_this_machine() -> None:
    assert SystemZones().zone("Europe/Zurich").utcoffset(None) is None
    assert SystemZones().wall_seconds() > 1_700_000_000
