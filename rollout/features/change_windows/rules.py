"""When a run may start changes: weekly windows and freeze dates of one time zone, and what they mean at an instant.

Times are written as a wall clock shows them. A night when clocks change follows two rules:

* A time that the clock skips is the instant of the change.
* A time that comes twice is the later one for a beginning of a window or the end of a freeze, else the earlier one. So a
  window is never open longer than both readings allow, and a freeze is never shorter.

Nothing here reads a clock or zone data: the zone is given as a ``tzinfo``, instants are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import StrEnum

from rollout.core.model.conditions import OPEN, Condition, StartAnswer
from rollout.core.model.frozen import dataclass
from rollout.core.model.spans import Span, joined
from rollout.core.text.terminal import printable
from rollout.errors import Place

DAY_MINUTES = 1440


class Weekday(StrEnum):
    """In the order of ``date.weekday``."""

    MONDAY = "mon"
    TUESDAY = "tue"
    WEDNESDAY = "wed"
    THURSDAY = "thu"
    FRIDAY = "fri"
    SATURDAY = "sat"
    SUNDAY = "sun"


@dataclass(frozen=True, slots=True)
class Window:
    """Minutes since midnight. It ends on the next day if ``ends`` is not later than ``begins``; 1440 is midnight."""

    days: frozenset[Weekday]
    begins: int
    ends: int


@dataclass(frozen=True, slots=True)
class Freeze:
    """``first`` and ``last`` are ISO dates; both days are frozen."""

    first: str
    last: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChangeCalendar(Condition):
    """Without ``windows`` it is open except for its freezes. ``place`` is where it is written."""

    place: Place
    zone: str
    windows: tuple[Window, ...]
    freezes: tuple[Freeze, ...]

    key = "calendars"
    is_timed = True
    not_the_plans = "the inventory's change windows are not those of the plan"

    def lines(self) -> Iterator[str]:
        """One line for each calendar; all of them must be open."""
        yield f"changes start only in: {printable('; '.join(_parts(self)), 300)}"


_DAY = 86_400.0
_AHEAD = (8, 400)
"""Days to look ahead for the next change: mostly a week is enough."""
_FIRST, _LAST = date.min + timedelta(days=2), date.max - timedelta(days=2)
"""Python computes no instants beyond, in some zones; people write 9999-12-31 for a freeze without an end."""


def answer(calendars: Sequence[tuple[ChangeCalendar, tzinfo]], at: float) -> StartAnswer:
    """What these calendars together mean at an instant: each of them must be open."""
    found = OPEN
    for days in _AHEAD:
        found = _within(calendars, at, days)
        if found.until is not None:
            break
    if found.is_open:
        return found
    closed = [(calendar, zone) for calendar, zone in calendars if not _within([(calendar, zone)], at, 1).is_open]
    return StartAnswer(is_open=False, until=found.until, why=_why(closed, at, found.until))


def _within(calendars: Sequence[tuple[ChangeCalendar, tzinfo]], at: float, days: int) -> StartAnswer:
    horizon = (at - 2 * _DAY, at + days * _DAY)
    spans = [horizon]
    for calendar, zone in calendars:
        spans = list(_both(spans, _open_spans(calendar, zone, horizon)))
    for begin, end in spans:
        if begin <= at < end:
            return StartAnswer(is_open=True, until=end if end < horizon[1] else None)
        if begin > at:
            return StartAnswer(is_open=False, until=begin)
    return StartAnswer(is_open=False, until=None)


def _open_spans(calendar: ChangeCalendar, zone: tzinfo, horizon: Span) -> list[Span]:
    """When it is open within the horizon, joined and in order."""
    open_ = [horizon] if not calendar.windows else joined(_windows(calendar, zone, horizon))
    for freeze in calendar.freezes:
        open_ = list(_without(open_, _frozen(freeze, zone)))
    return open_


def _windows(calendar: ChangeCalendar, zone: tzinfo, horizon: Span) -> Iterator[Span]:
    day = datetime.fromtimestamp(horizon[0], zone).date() - timedelta(days=1)
    last = datetime.fromtimestamp(horizon[1], zone).date()
    weekdays = tuple(Weekday)
    while day <= last:
        for window in calendar.windows:
            if weekdays[day.weekday()] in window.days:
                later = 0 if window.ends > window.begins else DAY_MINUTES
                begin = _instant(day, window.begins, zone, last=True)
                end = _instant(day, window.ends + later, zone, last=False)
                if begin < end:
                    yield begin, end
        day += timedelta(days=1)


def _frozen(freeze: Freeze, zone: tzinfo) -> Span:
    first, last = max(date.fromisoformat(freeze.first), _FIRST), min(date.fromisoformat(freeze.last), _LAST)
    return _instant(first, 0, zone, last=False), _instant(last, DAY_MINUTES, zone, last=True)


def _instant(day: date, minutes: int, zone: tzinfo, *, last: bool) -> float:
    """When the wall clock shows this many minutes after the day's midnight; see the module for the two rules."""
    shown = datetime(day.year, day.month, day.day) + timedelta(minutes=minutes)  # noqa: DTZ001 - what a wall clock shows
    early, late = sorted(shown.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    if any(datetime.fromtimestamp(found, zone).replace(tzinfo=None) == shown for found in (early, late)):
        return late if last else early
    return _change_between(early, late, zone)


def _change_between(before: float, after: float, zone: tzinfo) -> float:
    """The second at which the zone's offset changes between these instants."""
    low, high = int(before), int(after)
    offset = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    return float(high)


def _both(some: Sequence[Span], others: Sequence[Span]) -> Iterator[Span]:
    """Where both are open, in order."""
    for begin, end in some:
        for start, stop in others:
            if max(begin, start) < min(end, stop):
                yield max(begin, start), min(end, stop)


def _without(spans: Iterable[Span], closed: Span) -> Iterator[Span]:
    for begin, end in spans:
        if begin < min(end, closed[0]):
            yield begin, min(end, closed[0])
        if max(begin, closed[1]) < end:
            yield max(begin, closed[1]), end


# For people.


def _why(closed: Sequence[tuple[ChangeCalendar, tzinfo]], at: float, until: float | None) -> str:
    reasons = "; ".join(_reason(calendar, zone, at) for calendar, zone in closed)
    zone = closed[0][1] if closed else UTC
    opens = f"the next window opens {shown(until, zone)}" if until is not None else "no window opens within a year"
    return f"{reasons}; {opens}"


def _reason(calendar: ChangeCalendar, zone: tzinfo, at: float) -> str:
    for freeze in calendar.freezes:
        begin, end = _frozen(freeze, zone)
        if begin <= at < end:
            why = f" ({freeze.reason})" if freeze.reason else ""
            return f"{calendar.place.file}: frozen from {freeze.first} to {freeze.last}{why}"
    return f"{calendar.place.file} allows no change now"


def shown(at: float, zone: tzinfo) -> str:
    """``Wed 2026-11-25 22:00 (Europe/Zurich)``."""
    return f"{datetime.fromtimestamp(at, zone):%a %Y-%m-%d %H:%M} ({zone})"


def _parts(calendar: ChangeCalendar) -> Iterator[str]:
    yield f"{calendar.place.file}, zone {calendar.zone}"
    for window in calendar.windows:
        days = ", ".join(day for day in Weekday if day in window.days)
        yield f"{days if len(window.days) < len(Weekday) else 'every day'} {_clock(window.begins)} to {_clock(window.ends)}"
    for freeze in calendar.freezes:
        yield f"frozen from {freeze.first} to {freeze.last}{f': {freeze.reason}' if freeze.reason else ''}"


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
