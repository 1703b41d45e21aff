"""How long taking nodes back will take, said before anything is touched. An estimate for people; nothing waits by it.

    claiming                  one round trip to every node: as long as reading them took a moment ago
    taking back               as in ``way_back``: the slower of pace and rounds, a round being one node's time and 5 s to
                              settle; and not faster than this machine gets around them
    leaving as found, proof   two round trips more to every node

One node's time is what the journal's last rehearsal or rollback measured. Without one it is the time in which the agent
watches a kubelet before it believes in it, RestartSec and a tenth, as the nodes themselves say it, and 3 s for stopping,
starting and the way there; else 20 s. Nodes that fail, or stop answering meanwhile, make it longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rollout.core.model.playbook import EMERGENCY_LIMITS
from rollout.core.model.rollback_timing import WayBack
from rollout.core.plans.estimate import BACK_SECONDS
from rollout.core.run.order import predicted_seconds
from rollout.core.run.state import Order, Rehearsal, RunState
from rollout.core.text.terminal import counted, seconds_text

# What the rehearsal of the rollback has shown, and what it says of the whole fleet.


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """``done`` of ``nodes`` were taken back once, healthy. Seconds are the longest seen; 0: none measured.

    ``fleet`` is how long an emergency rollback of every node of the run would take at that time a node.
    """

    nodes: int
    done: int
    back: int
    revert_seconds: float
    apply_seconds: float
    fleet: float

    def __str__(self) -> str:
        if not self.done:
            return f"rehearsal: {self.back} of {counted(self.nodes, 'node')} on the way back"
        took = f", in at most {seconds_text(self.revert_seconds)} a node" if self.revert_seconds else ""
        fleet = f"; taking everything back would take about {seconds_text(self.fleet)}" if self.fleet else ""
        return f"rehearsal: {self.done} of {counted(self.nodes, 'node')} taken back once, healthy{took}{fleet}"


def rehearsed(state: RunState) -> Rehearsed | None:
    """``None``: nothing was rehearsed (yet)."""
    if not state.order.rehearsal or not state.order.waves:
        return None
    records = [state.nodes[name] for name in state.order.waves[0].nodes]
    done = [record for record in records if record.rehearsal is Rehearsal.DONE]
    back = sum(record.rehearsal is Rehearsal.BACK for record in records)
    if not done and not back:
        return None
    longest = max((record.revert_seconds for record in done), default=0.0)
    hurried = replace(state.order, limits=EMERGENCY_LIMITS)
    return Rehearsed(
        nodes=len(records),
        done=len(done),
        back=back,
        revert_seconds=longest,
        apply_seconds=max((record.apply_seconds for record in records), default=0.0),
        fleet=predicted_seconds(hurried, longest) if longest else 0.0,
    )


ROUND_TRIP = 0.02
"""Seconds of this machine's for one round trip to one of many nodes, until it was measured by reading them."""

STOP_AND_START = 3.0
REVERTS, CLEANS, PROOFS = 1.5, 1.5, 2.0
"""What this machine spends on a revert, on leaving a node as found and on its proof, in readings of a node."""

_SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|ms|s|min|h)?(?:\s|$)")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1e-6, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class NodeTime:
    """What one node's way back is taken to take, and how that is known."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class TimeBack:
    """``seconds`` in all, of which ``reverts`` between the first restart and the last node back."""

    nodes: int
    seconds: float
    reverts: float
    each: NodeTime
    pace: float

    def __str__(self) -> str:
        return (
            f"{counted(self.nodes, 'node')} to take back, about {seconds_text(self.seconds)} at {self.pace:g} a second "
            f"({self.each.seconds:.0f} s a node, {self.each.why})"
        )


def time_back(order: Order, each: NodeTime, reading: float | None = None) -> TimeBack:
    """``reading`` is how long it took to read these nodes; ``None``: it was not done."""
    count = len(order.nodes)
    around = reading if reading is not None else count * ROUND_TRIP
    reverts = max(predicted_seconds(order, each.seconds), REVERTS * around)
    return TimeBack(count, around + reverts + (CLEANS + PROOFS) * around, reverts, each, order.limits.pace)


def node_time(known: WayBack | None, pauses: Iterable[str] = ()) -> NodeTime:
    """By what was measured, else by RestartSec as nodes said it (``systemctl show``'s words), else by a rule of thumb."""
    if known is not None:
        return NodeTime(known.revert_seconds, f"as run {known.run} measured it on {counted(known.nodes, 'node')}")
    asked = [span for text in pauses if (span := _span(text)) is not None]
    if asked:
        why = f"never rehearsed; by RestartSec={max(asked):g} s of {counted(len(asked), 'node')}"
        return NodeTime(1.1 * max(asked) + STOP_AND_START, why)
    return NodeTime(BACK_SECONDS, "never rehearsed")


def _span(text: str) -> float | None:
    """``1min 30s`` as seconds; ``None``: it is not one, or no end at all."""
    if not re.fullmatch(r"(?:[0-9]+(?:\.[0-9]+)?\s*(?:us|ms|s|min|h)?\s*)+", text.strip()):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _SPAN.findall(text.strip()))
