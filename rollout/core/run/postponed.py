"""Nodes with a postponed change: they pull images, which a restart would cancel, or their baseline could not be taken.

Such a node is unchanged and ``pending``. It is queued again, for a limited time. It takes no room from any limit, and
others go first. Its wave does not end while it waits.
"""

from __future__ import annotations

from rollout.core.model.plan import Change
from rollout.core.model.playbook import Busy, PullsInFlight
from rollout.core.model.report import Report
from rollout.core.run.facts import NodeList
from rollout.core.run.records import Nodes, Records
from rollout.core.run.state import NodeRecord, Postponed, PostponedFor, Refused
from rollout.core.text.terminal import counted

# Pulls in flight: after ``Order.pulls.within`` seconds the node is ``refused`` without a charge, or changed regardless.
# A baseline that could not be taken: a restart of the API server is not the node's fault. After ``BASELINE_WITHIN``
# seconds the node is ``refused`` without a charge. A resume tries both again. The time starts again with a new controller
# and after a pause, because the node was not asked meanwhile.


ASK_AGAIN = {PostponedFor.PULLS: 15.0, PostponedFor.BASELINE: 10.0}
"""Seconds after which a node is asked again."""

BASELINE_WITHIN = 120.0
"""Seconds after which the attempts to take a baseline end."""

PULLS_IN_FLIGHT = "pulls-in-flight"


def in_turn(names: Nodes, records: Records, now: float) -> tuple[Nodes, Nodes]:
    """The nodes to go that may be asked now: those not asked before, and those that come after them."""
    postponed = names & records.listed(NodeList.POSTPONED)
    again = (name for name, record in records.those(postponed) if may_be_asked(record.postponed, now))
    return names & ~postponed, records.among(again)


def may_be_asked(wait: Postponed | None, now: float) -> bool:
    """Whether a change is not postponed at this time."""
    return wait is None or now >= wait.again


def again(wait: Postponed | None, reason: PostponedFor, now: float, images: tuple[str, ...] = ()) -> Postponed:
    """The change is postponed once more. ``wait``: how it was until now."""
    since = {reason: now} | (dict(wait.since) if wait else {})
    return Postponed(reason, now + ASK_AGAIN[reason], since, images)


def pulls_are_over(wait: Postponed | None, pulls: PullsInFlight, now: float) -> bool:
    """Whether the playbook's wait for this node's pulls has ended."""
    since = wait.since.get(PostponedFor.PULLS, now) if wait else now
    return now - since >= pulls.within


def goes_regardless(wait: Postponed | None, pulls: PullsInFlight, now: float) -> bool:
    """Whether the next apply changes the node even if it pulls."""
    return pulls.then is Busy.OVERRIDE and pulls_are_over(wait, pulls, now)


def is_left_alone(wait: Postponed, pulls: PullsInFlight, now: float) -> bool:
    """Whether a node that still pulls is left unchanged."""
    return pulls.then is Busy.SKIP and pulls_are_over(wait, pulls, now)


def skipped_for_pulls(record: NodeRecord) -> bool:
    """Whether it was left alone because of its pulls. It did not fail, so a new controller may try again."""
    return _was_left_for(record, PostponedFor.PULLS)


def skipped_without_baseline(record: NodeRecord) -> bool:
    """The same for a node without a baseline."""
    return _was_left_for(record, PostponedFor.BASELINE)


def _was_left_for(record: NodeRecord, reason: PostponedFor) -> bool:
    at = record.current
    return isinstance(at, Refused) and at.postponed is not None and at.postponed.reason is reason


def pulls_words(images: tuple[str, ...]) -> str:
    """What a node pulls, for messages."""
    if images:
        return f"it is pulling {', '.join(images)}"
    return "it does not know whether it is pulling images; `pullsInFlight: override` skips this check"


def baseline_is_over(wait: Postponed, now: float) -> bool:
    """Whether a node without a baseline is left unchanged."""
    return now - wait.since[PostponedFor.BASELINE] >= BASELINE_WITHIN


MOST_IMAGES = 10
"""Most images that are named: each answer goes into the journal."""


def asks_for_pulls(pulls: PullsInFlight, change: Change) -> bool:
    """Only a restart cancels pulls. If the playbook overrides all pulls at once, the node is not asked."""
    return change.disruption.restarts and pulls != PullsInFlight(0.0, Busy.OVERRIDE)


def images_of(report: Report) -> tuple[str, ...] | None:
    """The images being pulled, the first ten by name; ``None``: the node does not know."""
    said = report.measurement.pulls if report.measurement else None
    if said is None:
        return None
    named = tuple("an unnamed image" if image == _UNNAMED else image for image in said)
    more = len(named) - MOST_IMAGES
    return named if more <= 0 else (*named[:MOST_IMAGES], counted(more, "more image"))


_UNNAMED = "(unnamed)"
