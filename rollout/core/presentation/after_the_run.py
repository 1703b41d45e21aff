"""What a run's own events do not show: whether a controller still works on it, what it left behind, what was rolled back since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rollout.core.presentation.left_silences import LeftSilence, left_silences_document, left_silences_lines
from rollout.core.presentation.summary import Summary
from rollout.core.presentation.summary_text import (
    Attendance,
    attendance_lines,
    controller_document,
    since_document,
    since_lines,
)


@dataclass(frozen=True, slots=True)
class Afterwards:
    """As seen at ``now``, seconds since the epoch. ``rolled_back``: later rollback → its nodes. Without arguments: nothing to report."""

    now: float = 0.0
    controller: Attendance = field(default_factory=lambda: Attendance(alive=True))
    silences: tuple[LeftSilence, ...] = ()
    rolled_back: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


NOTHING_SINCE = Afterwards()


def afterwards_lines(summary: Summary, after: Afterwards) -> Iterator[str]:
    """For people, on a terminal and on the page."""
    yield from attendance_lines(summary, after.controller)
    yield from left_silences_lines(after.silences, summary.run, after.now)
    yield from since_lines(after.rolled_back)


def afterwards_document(summary: Summary, after: Afterwards) -> dict[str, Any]:
    """``controller`` is ``None`` once the run has ended."""
    return {
        "controller": controller_document(summary, after.controller),
        "silences": left_silences_document(after.silences),
        "rolledBack": since_document(after.rolled_back),
    }
