"""How the work of a call grows with its text: four times the text is about four times the work, at every length.

The work is CPU time of this thread, which other load hardly changes. A call that takes less than ``FLOOR`` with the
longest text is fast enough however it grows, and the noise of a clock does not matter above it.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable

FLOOR = 0.02
"""Seconds of CPU time."""

MOST = 8.0
"""Linear is 4, with a logarithm less than 5; the square is 16."""

SHORTEST = 1 << 9
TRIES = 3
"""The least of several measurements is the work; the rest is noise."""

Clock = Callable[[], float]


def grows(
    call: Callable[[str], object],
    make: Callable[[int], str],
    longest: int,
    clock: Clock = time.thread_time,
) -> tuple[int, float] | None:
    """The length with which the work of ``call`` is far more than four times that of a quarter of it, and that factor.

    ``make``: a text of about so many characters. All lengths are looked at, because a call may read only so many of them.
    """
    whole = _work(call, make(longest), clock)
    if whole < FLOOR:
        return None
    length, large = longest, whole
    while length // 4 >= SHORTEST and large >= FLOOR:
        small = _work(call, make(length // 4), clock)
        if large > MOST * small and (factor := _factor(call, make, length, clock)) > MOST:
            return length, factor
        length, large = length // 2, _work(call, make(length // 2), clock)
    return None


def _factor(call: Callable[[str], object], make: Callable[[int], str], length: int, clock: Clock) -> float:
    small, large = (min(_work(call, text, clock) for _ in range(TRIES)) for text in (make(length // 4), make(length)))
    return large / max(small, 1e-9)


def _work(call: Callable[[str], object], text: str, clock: Clock) -> float:
    gc.disable()  # a whole collection walks all that the process has, and falls into some calls only
    try:
        began = clock()
        with contextlib.suppress(Exception):  # a refusal is work too
            call(text)
        return clock() - began
    finally:
        gc.enable()
