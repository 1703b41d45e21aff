"""What the rehearsal of the rollback has shown, and what it says of the whole fleet."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rollout.core.model.playbook import EMERGENCY_LIMITS
from rollout.core.run.order import predicted_seconds
from rollout.core.run.state import Rehearsal, RunState
from rollout.core.text.terminal import counted, seconds_text


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
