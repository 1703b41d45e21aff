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
from rollout.core.run.state import NodeRecord, NodeState, Order, Pulling, Unseen
from rollout.core.text.terminal import counted

# Pulls in flight: after ``Order.pulls.within`` seconds the node is ``refused`` without a charge, or changed regardless.
# The time starts again with a new controller and after a pause, because the node was not asked meanwhile.


ASK_PULLS_AGAIN = 15.0
"""Seconds after which a node that pulled images is asked again."""

PULLS_IN_FLIGHT = "pulls-in-flight"


def in_turn(names: Nodes, records: Records, now: float) -> tuple[Nodes, Nodes]:
    """The nodes to go that may be asked now: those not asked before, and those that come after them."""
    postponed = names & records.listed(NodeList.POSTPONED)
    again = (name for name, record in records.those(postponed) if may_be_asked(record, now))
    return names & ~postponed, records.among(again)


def may_be_asked(record: NodeRecord, now: float) -> bool:
    """Whether the node waits neither for its pulls nor for its baseline now."""
    return all(now >= found.again for found in (record.pulling, record.unseen) if found is not None)


def still_pulling(record: NodeRecord, images: tuple[str, ...], now: float) -> Pulling:
    """The record of a node that was found pulling, now or again."""
    since = record.pulling.since if record.pulling else now
    return Pulling(since, now + ASK_PULLS_AGAIN, images)


def pulls_are_over(pulling: Pulling | None, order: Order, now: float) -> bool:
    """Whether the playbook's wait for this node has ended."""
    return now - (pulling.since if pulling else now) >= order.pulls.within


def goes_regardless(record: NodeRecord, order: Order, now: float) -> bool:
    """Whether the next apply changes the node even if it pulls."""
    return order.pulls.then is Busy.OVERRIDE and pulls_are_over(record.pulling, order, now)


def is_left_alone(record: NodeRecord, order: Order, now: float) -> bool:
    """Whether a node that still pulls is left unchanged."""
    return order.pulls.then is Busy.SKIP and pulls_are_over(record.pulling, order, now)


def skipped_for_pulls(record: NodeRecord) -> bool:
    """Whether it was left alone because of its pulls. It did not fail, so a new controller may try again."""
    return record.state is NodeState.REFUSED and record.pulling is not None


def pulls_words(images: tuple[str, ...]) -> str:
    """What a node pulls, for messages."""
    if images:
        return f"it is pulling {', '.join(images)}"
    return "it does not know whether it is pulling images; `pullsInFlight: override` skips this check"


# A baseline that could not be taken: a restart of the API server is not the node's fault. After ``BASELINE_WITHIN``
# seconds the node is ``refused`` without a charge; a resume tries it again.


ASK_BASELINE_AGAIN = 10.0
"""Seconds until the next try."""

BASELINE_WITHIN = 120.0
"""Seconds after which the tries end."""

BASELINE_UNKNOWN = "baseline-unknown"


def still_unseen(record: NodeRecord, now: float) -> Unseen:
    """The record of a failed attempt to take a node's baseline, the first or a later one."""
    return Unseen(record.unseen.since if record.unseen else now, now + ASK_BASELINE_AGAIN)


def baseline_is_over(unseen: Unseen, now: float) -> bool:
    return now - unseen.since >= BASELINE_WITHIN


def skipped_without_baseline(record: NodeRecord) -> bool:
    """Whether it was left alone without a baseline. It did not fail, so a new controller may try again."""
    return record.state is NodeState.REFUSED and record.unseen is not None


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
    found = tuple("an unnamed image" if image == _UNNAMED else image for image in said)
    more = len(found) - MOST_IMAGES
    return found if more <= 0 else (*found[:MOST_IMAGES], counted(more, "more image"))


_UNNAMED = "(unnamed)"
