"""When a run may start changes: the calendars of its plan at the wall clock, as events for the run machine.

The machine reads no clock and no zone data, and its journal must replay on any machine. So the calendars are evaluated
here, and only the answer is journaled. A calendar that cannot be read closes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import tzinfo

from rollout.app.ports import Zones
from rollout.core.model.calendar import OPEN, CalendarAnswer, ChangeCalendar, answer
from rollout.core.run.events import Window, WindowClosed, WindowOpened
from rollout.core.run.state import Goal, Phase, RunState
from rollout.errors import InputError, Problem

LOOK_AGAIN = 60.0
"""Seconds until a calendar is evaluated again at the latest: the wall clock may have been set."""


class NoZones:
    """A machine without zone data: every calendar is closed."""

    def wall_seconds(self) -> float:
        return 0.0

    def zone(self, name: str) -> tzinfo:
        raise InputError((Problem("unknown-zone", f"no zone data is read here, so none of `{name}`"),))


class ChangeWindows:
    """The calendars of one run."""

    def __init__(self, calendars: Sequence[ChangeCalendar], zones: Zones) -> None:
        self._calendars = tuple(calendars)
        self._zones = zones
        self._answer = OPEN
        self._since, self._until = float("inf"), float("-inf")

    def events(self, state: RunState, now: float) -> Sequence[Window]:
        """What has changed for the run since the machine was told last; ``now`` is the event's time."""
        if not self._calendars or state.order.goal is Goal.REVERT or _is_over(state):
            return ()
        found = self.now()
        if found.is_open:
            return () if state.closed is None else (WindowOpened(now),)
        if state.closed is not None and (state.closed.why, state.closed.opens) == (found.why, found.until):
            return ()
        return (WindowClosed(now, found.why, found.until),)

    def now(self) -> CalendarAnswer:
        """What the calendars mean now."""
        at = self._zones.wall_seconds()
        if not self._since <= at < self._until:
            self._answer = self._evaluated(at)
            self._since = at
            self._until = at + LOOK_AGAIN if self._answer.until is None else min(at + LOOK_AGAIN, self._answer.until)
        return self._answer

    def _evaluated(self, at: float) -> CalendarAnswer:
        try:
            return answer(zoned(self._calendars, self._zones), at)
        except InputError as error:
            return CalendarAnswer(is_open=False, until=None, why=f"the calendar cannot be read: {error}")


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


def _is_over(state: RunState) -> bool:
    return state.halt is not None or state.phase in (Phase.CLOSING, Phase.ENDED)


def closed_lines(calendars: Iterable[ChangeCalendar | None], zones: Zones, then: str) -> tuple[str, ...]:
    """What an operator reads outside the windows, before nodes are changed or reverted: why, and what happens ``then``."""
    written = tuple(dict.fromkeys(calendar for calendar in calendars if calendar is not None))
    found = ChangeWindows(written, zones).now() if written else OPEN
    return () if found.is_open else (f"the change window is closed: {found.why}; {then}",)


WAITS = "the run claims its nodes and waits"
PASSES = "a rollback does not wait for it"
