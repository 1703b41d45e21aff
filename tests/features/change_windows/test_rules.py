"""What calendars mean at an instant: windows over midnight, freezes, and the nights when clocks change, both ways."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rollout.core.model.conditions import StartAnswer
from rollout.errors import Place
from rollout.features.change_windows.rules import ChangeCalendar, Freeze, Weekday, Window, answer
from tests.sampling import examples

HERE = Place("playbooks/p.yaml", 3, 9)
ZURICH = ZoneInfo("Europe/Zurich")  # 2026-03-29: 02:00 becomes 03:00; 2026-10-25: 03:00 becomes 02:00
HAVANA = ZoneInfo("America/Havana")  # clocks change at midnight
EVERY_DAY = frozenset(Weekday)


def at(text: str, zone: tzinfo = UTC) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def minutes(text: str) -> int:
    hours, _, rest = text.partition(":")
    return int(hours) * 60 + int(rest)


def calendar(
    *windows: tuple[str, str], days: frozenset[Weekday] = EVERY_DAY, freezes: tuple[Freeze, ...] = ()
) -> ChangeCalendar:
    made = tuple(Window(days, minutes(begins), minutes(ends)) for begins, ends in windows)
    return ChangeCalendar(HERE, "in the tests", made, freezes)


def spans(found: ChangeCalendar, zone: tzinfo, since: str, until: str) -> list[tuple[str, str]]:
    """When it is open, in UTC, found by following the answers from one change to the next."""
    now, end, open_ = at(since), at(until), []
    while now < end:
        said = answer([(found, zone)], now)
        assert said.until is not None
        assert said.until > now
        if said.is_open:
            open_.append((now, said.until))
        now = said.until
    return [tuple(f"{datetime.fromtimestamp(edge, UTC):%d %H:%M}" for edge in span) for span in open_]  # type: ignore[misc]


def test_a_window_of_some_days_and_over_midnight() -> None:
    weekend = calendar(("22:00", "04:00"), days=frozenset({Weekday.FRIDAY, Weekday.SATURDAY}))
    assert spans(weekend, UTC, "2026-11-23", "2026-11-30") == [("27 22:00", "28 04:00"), ("28 22:00", "29 04:00")]


def test_windows_that_touch_are_one() -> None:
    whole = calendar(("00:00", "24:00"))
    assert answer([(whole, ZURICH)], at("2026-03-29T01:30")) == StartAnswer(is_open=True, until=None)


SPRING = [
    ("01:00", "02:30", ("29 00:00", "29 01:00")),  # 02:30 is skipped: it ends when the clock jumps
    ("02:30", "05:00", ("29 01:00", "29 03:00")),  # it begins when the clock jumps
    ("02:15", "02:45", None),  # all of it is skipped
    ("22:00", "04:00", ("28 21:00", "29 02:00")),
]
AUTUMN = [
    ("01:00", "02:30", ("24 23:00", "25 00:30")),  # it ends at the first 02:30
    ("02:30", "05:00", ("25 01:30", "25 04:00")),  # it begins at the second
    ("02:00", "03:00", ("25 01:00", "25 02:00")),
    ("02:15", "02:45", None),  # the first 02:45 is before the second 02:15: in doubt it is closed
    ("22:00", "04:00", ("24 20:00", "25 03:00")),
]


@pytest.mark.parametrize(("begins", "ends", "expected"), SPRING)
def test_the_night_without_an_hour(begins: str, ends: str, expected: tuple[str, str] | None) -> None:
    found = spans(calendar((begins, ends)), ZURICH, "2026-03-28T12:00", "2026-03-29T12:00")
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize(("begins", "ends", "expected"), AUTUMN)
def test_the_night_with_an_hour_twice(begins: str, ends: str, expected: tuple[str, str] | None) -> None:
    found = spans(calendar((begins, ends)), ZURICH, "2026-10-24T12:00", "2026-10-25T12:00")
    assert found == ([expected] if expected else [])


def test_a_zone_that_changes_its_clocks_at_midnight() -> None:
    """Havana, 2026-03-08: 00:00 becomes 01:00. Havana, 2026-11-01: 01:00 becomes 00:00."""
    early = calendar(("00:00", "06:00"))
    assert spans(early, HAVANA, "2026-03-08T04:00", "2026-03-08T12:00") == [("08 05:00", "08 10:00")]
    assert spans(early, HAVANA, "2026-11-01T03:00", "2026-11-01T12:00") == [("01 05:00", "01 11:00")]


def test_a_freeze_ends_after_its_last_day_and_says_why() -> None:
    year_end = calendar(freezes=(Freeze("2026-12-20", "2027-01-04", "year end"),))
    before = answer([(year_end, ZURICH)], at("2026-12-19T12:00"))
    assert before == StartAnswer(is_open=True, until=None) or before.until == at("2026-12-19T23:00")
    found = answer([(year_end, ZURICH)], at("2027-01-04T22:59"))
    assert (found.is_open, found.until) == (False, at("2027-01-04T23:00"))
    assert found.why == (
        "playbooks/p.yaml: frozen from 2026-12-20 to 2027-01-04 (year end); the next window opens Tue 2027-01-05 00:00 (Europe/Zurich)"
    )


def test_every_calendar_must_be_open() -> None:
    early, late = calendar(("10:00", "12:00")), calendar(("11:00", "13:00"))
    both = [(early, UTC), (late, UTC)]
    found = answer(both, at("2026-11-24T10:30"))
    assert (found.is_open, found.until) == (False, at("2026-11-24T11:00"))
    assert "allows no change now" in found.why
    assert answer(both, at("2026-11-24T11:30")) == StartAnswer(is_open=True, until=at("2026-11-24T12:00"))


def test_calendars_that_are_never_open_together() -> None:
    one = calendar(("10:00", "11:00"), days=frozenset({Weekday.MONDAY}))
    other = calendar(("10:00", "11:00"), days=frozenset({Weekday.TUESDAY}))
    found = answer([(one, UTC), (other, UTC)], at("2026-11-24T12:00"))
    assert (found.is_open, found.until) == (False, None)
    assert found.why.endswith("no window opens within a year")


@given(
    st.integers(0, 1439), st.integers(1, 1440), st.integers(0, 2 * 365 * 1440), st.sampled_from((ZURICH, HAVANA, UTC))
)
@settings(max_examples=examples(150))
def test_where_it_is_open_the_wall_clock_shows_a_time_of_the_window(
    begins: int, ends: int, minute: int, zone: tzinfo
) -> None:
    if begins == ends:
        return
    found = ChangeCalendar(HERE, "", (Window(EVERY_DAY, begins, ends),), ())
    now = at("2026-01-01") + minute * 60
    if answer([(found, zone)], now).is_open:
        clock = datetime.fromtimestamp(now, zone)
        shows = clock.hour * 60 + clock.minute
        assert begins <= shows < ends if begins < ends else shows >= begins or shows < ends


EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - what a wall clock shows
CHANGES = [
    ("Europe/Zurich", "2026-03-29T01:00"),
    ("Europe/Zurich", "2026-10-25T01:00"),
    ("America/Havana", "2026-03-08T05:00"),
    ("America/Havana", "2026-11-01T05:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),  # by half an hour
    ("Africa/Cairo", "2026-10-29T21:00"),  # from midnight to the evening before
    ("Antarctica/Troll", "2026-03-29T01:00"),  # by two hours
    ("Pacific/Apia", "2011-12-30T10:00"),  # a whole day is skipped
    ("Asia/Pyongyang", "2018-05-04T15:00"),
]


def minutes_open(found: ChangeCalendar, zone: tzinfo, first: int, last: int) -> set[int]:
    """The minutes since 1970 in which a window is open, found by looking at the wall clock in each of them."""
    shown = {
        minute: int((datetime.fromtimestamp(minute * 60, zone).replace(tzinfo=None) - EPOCH).total_seconds()) // 60
        for minute in range(first - 3 * 1440, last + 3 * 1440)
    }
    times: dict[int, list[int]] = defaultdict(list)
    for minute, wall in shown.items():
        times[wall].append(minute)

    def instant(wall: int, *, last: bool) -> int:
        if wall in times:
            return max(times[wall]) if last else min(times[wall])
        return next(minute for minute, now in shown.items() if now > wall)

    open_: set[int] = set()
    for wall in range(min(times) // 1440 + 1, max(times) // 1440 - 1):
        day = list(Weekday)[(wall + 3) % 7]  # 1970-01-01 was a Thursday
        for window in found.windows:
            if day in window.days:
                later = 0 if window.ends > window.begins else 1440
                begin = instant(wall * 1440 + window.begins, last=True)
                open_.update(range(begin, instant(wall * 1440 + window.ends + later, last=False)))
    return {minute for minute in open_ if first <= minute < last}


DAYS = st.just(EVERY_DAY) | st.frozensets(st.sampled_from(tuple(Weekday)), min_size=1)
QUARTERS = st.integers(-10, 10) | st.integers(-48, 48)
"""Of an hour, before or after the clock changes."""


@given(
    st.lists(st.tuples(DAYS, QUARTERS, QUARTERS), min_size=1, max_size=2),
    st.sampled_from(CHANGES),
)
@example([(EVERY_DAY, 2, 20)], ("Europe/Zurich", "2026-10-25T01:00"))
@example([(EVERY_DAY, -20, 2)], ("Europe/Zurich", "2026-10-25T01:00"))
@example([(EVERY_DAY, 0, 2)], ("Europe/Zurich", "2026-10-25T01:00"))
@settings(max_examples=examples(20), deadline=None)
def test_around_a_change_of_clocks_it_is_open_in_the_minutes_of_the_wall_clock(
    drawn: list[tuple[frozenset[Weekday], int, int]], change: tuple[str, str]
) -> None:
    zone, middle = ZoneInfo(change[0]), int(at(change[1])) // 60
    clock = datetime.fromtimestamp(middle * 60, zone)
    shown = clock.hour * 60 + clock.minute
    made = [Window(days, (shown + 15 * one) % 1440, (shown + 15 * other) % 1440 or 1440) for days, one, other in drawn]
    windows = tuple(window for window in made if window.begins != window.ends)
    found, first, last = ChangeCalendar(HERE, "", windows, ()), middle - 2160, middle + 2160
    now, open_ = float(first * 60), set[int]()
    while windows and now < last * 60:
        said = answer([(found, zone)], now)
        until = last * 60 if said.until is None else min(said.until, last * 60)
        if said.is_open:
            open_.update(range(int(now) // 60, int(until) // 60))
        now = until
    assert open_ == minutes_open(found, zone, first, last)


def test_an_answer_holds_until_it_says() -> None:
    found, now = calendar(("22:00", "02:30")), at("2026-10-20T12:00")
    while now < at("2026-10-27"):
        said = answer([(found, ZURICH)], now)
        assert said.until is not None
        for part in (0.0, 0.5, 0.99):
            assert answer([(found, ZURICH)], now + (said.until - now) * part).is_open == said.is_open
        now = said.until


@given(
    st.sampled_from(("0001-01-01", "0001-01-02", "1900-01-01", "2026-12-20")),
    st.sampled_from(("2027-01-04", "2999-12-31", "9999-12-30", "9999-12-31")),
    st.sampled_from(("UTC", "Europe/Zurich", "Pacific/Kiritimati", "Etc/GMT+12", "Africa/Monrovia")),
)
@settings(max_examples=examples(40))
def test_a_freeze_may_have_no_beginning_and_no_end(first: str, last: str, zone: str) -> None:
    found = answer([(calendar(freezes=(Freeze(first, last, ""),)), ZoneInfo(zone))], at("2026-12-25"))
    assert (found.is_open, found.until is None) == (False, last != "2027-01-04")
