"""What a node pulls right before its change, and whether that is asked at all."""

from __future__ import annotations

from rollout.core.model.plan import Change
from rollout.core.model.playbook import Busy, PullsInFlight
from rollout.core.model.report import Report
from rollout.core.text.terminal import counted

MOST_IMAGES = 10
"""So many images are named; an answer goes into the journal each time."""


def asks_for_pulls(pulls: PullsInFlight, change: Change) -> bool:
    """Only a restart cancels pulls; and where any are overridden at once nothing is asked."""
    return change.disruption.restarts and pulls != PullsInFlight(0.0, Busy.OVERRIDE)


def images_of(report: Report) -> tuple[str, ...] | None:
    """The images being pulled, the first ten by name; ``None``: the node cannot tell."""
    said = report.measurement.pulls if report.measurement else None
    if said is None:
        return None
    found = tuple("an unnamed image" if image == _UNNAMED else image for image in said)
    more = len(found) - MOST_IMAGES
    return found if more <= 0 else (*found[:MOST_IMAGES], counted(more, "more image"))


_UNNAMED = "(unnamed)"
