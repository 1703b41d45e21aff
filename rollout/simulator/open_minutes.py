"""The timed condition of drawn plays. A rehearsed plan has those of its own, with zones and weekdays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rollout.app.ports import Zones
from rollout.core.model.conditions import Condition, StartAnswer, of_kind
from rollout.core.model.frozen import dataclass

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class OpenMinutes(Condition):
    """Changes start only in these minutes of each day in UTC: from the first of a pair up to the second, in order."""

    windows: tuple[tuple[int, int], ...]

    is_timed = True


class ModelTimes:
    """When changes may start in a drawn play."""

    def __init__(self, wall: Zones) -> None:
        self._wall = wall

    def check(self, conditions: Iterable[Condition]) -> None:
        """Each can be evaluated."""

    def by(self, conditions: Sequence[Condition]) -> Callable[[], StartAnswer]:
        (minutes,) = of_kind(conditions, OpenMinutes)
        return lambda: answer(minutes, self._wall.wall_seconds())


def answer(minutes: OpenMinutes, at: float) -> StartAnswer:
    """What they mean at an instant."""
    midnight = at - at % DAY
    spans = [(midnight + begins * 60, midnight + ends * 60) for begins, ends in minutes.windows]
    for begin, end in (*spans, (spans[0][0] + DAY, spans[0][1] + DAY)):
        if begin <= at < end:
            return StartAnswer(is_open=True, until=end)
        if at < begin:
            return StartAnswer(is_open=False, until=begin, why="outside the minutes of the play")
    raise AssertionError("the first of the next day is ahead")
