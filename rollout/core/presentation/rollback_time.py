"""How long reverting nodes will take, printed before anything is changed. An estimate for people; no decision depends on it.

    claiming          one round trip to every node: as long as reading them just took
    reverting         as in ``seconds_to_revert``: the slower of pace and rounds, where a round is one node's time and 5 s to
                      settle; and not faster than this machine can reach them all
    cleanup, proof    two more round trips to every node

One node's time is what the journal's last rehearsal or rollback measured. Without one it is
RestartSec and a tenth, as read from the nodes, and 3 s to stop, start and connect; else 20 s. For RestartSec and a tenth
the agent watches a kubelet before it counts as healthy. Nodes that fail or stop answering make it longer.
"""

from __future__ import annotations

from collections.abc import Iterable

from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import RevertTimes
from rollout.core.plans.estimate import BACK_SECONDS
from rollout.core.run.order import predicted_seconds
from rollout.core.run.state import Order
from rollout.core.text.terminal import counted, seconds_text
from rollout.core.text.timespans import timespan

ROUND_TRIP = 0.02
"""Seconds this machine needs for one round trip to one of many nodes, until reading them has measured it."""

STOP_AND_START = 3.0
REVERTS, CLEANS, PROOFS = 1.5, 1.5, 2.0
"""The cost on this machine of a revert, a cleanup and a proof, in units of one reading of a node."""

MOST_PAUSE = 3600.0
"""A longer RestartSec does not count: no kubelet is started like that, and one node must not decide the estimate."""


@dataclass(frozen=True, slots=True)
class NodeTime:
    """The expected seconds to revert one node, and where the number is from."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class TimeBack:
    """``seconds`` in all, of which ``reverts`` from the first restart to the last reverted node."""

    nodes: int
    seconds: float
    reverts: float
    each: NodeTime
    pace: float

    def __str__(self) -> str:
        return (
            f"{counted(self.nodes, 'node')} to revert, about {seconds_text(self.seconds)} at {self.pace:g} nodes/s "
            f"({self.each.seconds:.0f} s per node, {self.each.why})"
        )


@dataclass(frozen=True, slots=True)
class NoTimeBack:
    """The estimate failed or was late. ``nodes`` are reverted all the same."""

    nodes: int


def time_back(order: Order, each: NodeTime, reading: float | None = None) -> TimeBack:
    """``reading`` is how long it took to read these nodes; ``None``: they were not read."""
    count = len(order.nodes)
    around = reading if reading is not None else count * ROUND_TRIP
    reverts = max(predicted_seconds(order, each.seconds), REVERTS * around)
    return TimeBack(count, around + reverts + (CLEANS + PROOFS) * around, reverts, each, order.limits.pace)


def node_time(known: RevertTimes | None, pauses: Iterable[str] = ()) -> NodeTime:
    """From what was measured, else from the nodes' RestartSec (as printed by ``systemctl show``), else ``BACK_SECONDS``."""
    if known is not None:
        return NodeTime(known.revert_seconds, f"measured by run {known.run} on {counted(known.nodes, 'node')}")
    asked = [span for text in pauses if (span := timespan(text)) is not None and span <= MOST_PAUSE]
    if asked:
        why = f"never rehearsed; from RestartSec={max(asked):g} s on {counted(len(asked), 'node')}"
        return NodeTime(1.1 * max(asked) + STOP_AND_START, why)
    return NodeTime(BACK_SECONDS, "never rehearsed")
