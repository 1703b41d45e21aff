"""Patience for a back end that does not answer: it is asked again, within a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rollout.errors import AwayError

Said = TypeVar("Said")

EVERY = 1.0
"""Seconds between two tries of a back end that does not answer."""


def patiently(
    ask: Callable[[float], Said], timeout: float, now: Callable[[], float], wait: Callable[[float], None]
) -> Said:
    """Ask, with the time that is left, until there is an answer. After ``timeout`` seconds, raise the last error."""
    until = now() + timeout
    while True:
        try:
            return ask(max(until - now(), 0.001))
        except AwayError:
            if until - now() <= EVERY:
                raise
        wait(EVERY)
