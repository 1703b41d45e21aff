"""The calendars of a plan at the wall clock. One that cannot be read closes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo

from rollout.app.ports import Zones
from rollout.core.model.conditions import OPEN, Condition, StartAnswer, of_kind
from rollout.errors import InputError, Problem
from rollout.features.change_windows.rules import ChangeCalendar, answer

LOOK_AGAIN = 60.0
"""Seconds until a calendar is evaluated again at the latest: the wall clock may have been set."""


class WindowTimes:
    """When changes may start by the calendars among the conditions of a plan."""

    def __init__(self, zones: Zones) -> None:
        self._zones = zones

    def check(self, conditions: Iterable[Condition]) -> None:
        zoned(of_kind(conditions, ChangeCalendar), self._zones)

    def by(self, conditions: Sequence[Condition]) -> Callable[[], StartAnswer]:
        return ChangeWindows(of_kind(conditions, ChangeCalendar), self._zones).now


class ChangeWindows:
    """Some calendars, evaluated once a minute or when they change."""

    def __init__(self, calendars: Sequence[ChangeCalendar], zones: Zones) -> None:
        self._calendars = calendars
        self._zones = zones
        self._answer = OPEN
        self._since, self._until = float("inf"), float("-inf")

    def now(self) -> StartAnswer:
        """What the calendars mean now."""
        at = self._zones.wall_seconds()
        if not self._since <= at < self._until:
            self._answer = self._evaluated(at)
            self._since = at
            self._until = at + LOOK_AGAIN if self._answer.until is None else min(at + LOOK_AGAIN, self._answer.until)
        return self._answer

    def _evaluated(self, at: float) -> StartAnswer:
        try:
            return answer(zoned(self._calendars, self._zones), at)
        except InputError as error:
            return StartAnswer(is_open=False, until=None, why=f"the calendar cannot be read: {error}")


def zoned(calendars: Iterable[ChangeCalendar], zones: Zones) -> list[tuple[ChangeCalendar, tzinfo]]:
    """Each calendar with its zone. ``InputError`` at its place for one without zone data."""
    found = []
    for calendar in calendars:
        try:
            found.append((calendar, zones.zone(calendar.zone)))
        except InputError as error:
            raise InputError(
                tuple(Problem(each.reference, each.message, calendar.place, each.hint) for each in error.problems)
            ) from error
    return found
