"""``changeWindows`` of a playbook or an inventory: its shape, and the calendar that it means."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date
from typing import Annotated, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from rollout.core.reading import schema_words
from rollout.core.reading.condition_keys import WrittenCondition
from rollout.core.reading.validation import Written, wrong
from rollout.core.reading.value_types import choice
from rollout.core.text.terminal import printable
from rollout.errors import Place
from rollout.features.change_windows.rules import DAY_MINUTES, ChangeCalendar, Freeze, Weekday, Window

_ZONE = re.compile(r"UTC|[A-Za-z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9][A-Za-z0-9_+-]{0,31}){1,2}")
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]|24:00")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAYS = tuple(day.value for day in Weekday)
_LONGEST_REASON = 200
_YEARS = range(1970, 3000)


def _zone(value: object) -> str:
    if not isinstance(value, str) or not _ZONE.fullmatch(value):
        shown = printable(str(value), 60)
        raise wrong(
            "bad-zone", f"KEY: `{shown}` is not the name of an IANA time zone", "write for example Europe/Zurich"
        )
    return value


def _time(value: object) -> int:
    """Minutes since midnight."""
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        shown = printable(str(value), 60)
        raise wrong("bad-time", f"KEY: `{shown}` is not a time of day", 'write it in quotes, for example "22:00"')
    return int(value[:2]) * 60 + int(value[3:])


def _date(value: object) -> str:
    day = None
    if isinstance(value, str) and _DATE.fullmatch(value):
        with suppress(ValueError):
            day = date.fromisoformat(value)
    if day is None:
        raise wrong("bad-date", f"KEY: `{printable(str(value), 60)}` is not a date", "write for example 2026-12-20")
    if day.year not in _YEARS and day != date.max:  # people write 9999-12-31 for a freeze without an end
        # near the ends of Python's years, a zone has instants that cannot be computed
        span = f"{_YEARS.start} to {_YEARS.stop - 1}"
        raise wrong("bad-date", f"KEY: {day} is not in the years {span}", "write for example 2026-12-20")
    return day.isoformat()


def _day(value: object) -> Weekday:
    return Weekday(choice(value, _DAYS))


def _reason(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_REASON or not value.isprintable():
        raise wrong("bad-reason", f"KEY must be one line of at most {_LONGEST_REASON} characters")
    return value


Time = Annotated[int, BeforeValidator(_time), schema_words.text(_TIME.pattern, "A time of day.", "22:00")]
Day = Annotated[Weekday, BeforeValidator(_day), WithJsonSchema({"enum": [*_DAYS]})]
Date = Annotated[str, BeforeValidator(_date), schema_words.text(_DATE.pattern, "", "2026-12-20")]


class WrittenWindow(Written):
    """A weekly window. Without ``days`` it is every day's; with ``to`` not later than ``from`` it ends the next day."""

    days: Annotated[list[Day], Field(min_length=1)] | None = None
    begins: Time = Field(alias="from")
    ends: Time = Field(alias="to")

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if self.begins in (self.ends, DAY_MINUTES):
            raise wrong("bad-window", "KEY does not last", 'a whole day is from "00:00" to "24:00"')
        return self


class WrittenFreeze(Written):
    """Days without changes; ``first`` and ``last`` belong to it."""

    first: Date
    last: Date
    reason: Annotated[
        str, BeforeValidator(_reason), WithJsonSchema({"type": "string", "maxLength": _LONGEST_REASON})
    ] = ""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.last < self.first:
            raise wrong("bad-freeze", f"KEY ends on {self.last}, before it begins on {self.first}")
        return self


class WrittenCalendar(WrittenCondition):
    """When changes may start, in the time of ``zone``: within ``windows`` (none: always), and not in ``freezes``."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["windows"]}, {"required": ["freezes"]}]})
    placed_at = "zone"

    zone: Annotated[
        str, BeforeValidator(_zone), schema_words.text(_ZONE.pattern, "An IANA time zone.", "Europe/Zurich")
    ]
    windows: list[WrittenWindow] = Field(default_factory=list)
    freezes: list[WrittenFreeze] = Field(default_factory=list)

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if not self.windows and not self.freezes:
            raise wrong("bad-calendar", "KEY limits nothing", "set windows, freezes or both")
        return self

    def condition(self, place: Place) -> ChangeCalendar:
        windows = (Window(frozenset(w.days or Weekday), w.begins, w.ends) for w in self.windows)
        freezes = (Freeze(f.first, f.last, f.reason) for f in self.freezes)
        return ChangeCalendar(place, self.zone, tuple(windows), tuple(freezes))
