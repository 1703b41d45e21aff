"""A scenario: an order and faults, as data. A seed always draws the same one; a shorter list of faults also plays."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from rollout.core.run.state import Order


class FaultKind(StrEnum):
    """Kinds of faults and requests from elsewhere, by part."""

    # a node
    DIES = "node-dies"
    REBOOTS = "node-reboots"
    FREEZES = "node-freezes"
    AGENT_KILLED = "agent-killed"
    RESTART_FAILS = "restart-fails-in-the-revert"
    SLOW = "node-slow"
    SICK_AFTER_CHANGE = "sick-with-new-files"
    SICK_EITHER_WAY = "sick-with-both"
    FALLS_SICK = "falls-sick-later"
    DRIFTS = "drifts"
    PULLS = "pulls-images"
    PODS_KEPT = "a-budget-keeps-its-pods"
    # its network
    CUT = "link-cut"
    LATENT = "link-slow"
    ANSWER_LOST = "answer-lost"
    COMMAND_LOST = "command-lost"
    ANSWER_LATE = "answer-taken-late"
    # gates
    NODE_GATE = "node-gate"
    NODE_BASELINE = "node-baseline"
    WAVE_GATE = "wave-gate"
    WAVE_BASELINE = "wave-baseline"
    API_AWAY = "api-server-away"
    # the store
    WRITE_FAILS = "write-fails"
    WRITE_UNSURE = "write-kept-answer-lost"
    STORE_SLOW = "store-slow"
    STORE_AWAY = "store-away"
    # clocks
    NODE_CLOCK = "node-clock-off"
    NEXT_CLOCK = "next-controllers-clock"
    LEASE_CLOCK = "lease-clock-steps"
    # the controller, and operators
    KILLED = "controller-killed"
    FROZEN = "controller-frozen"
    INTERRUPTED = "interrupted"
    PAUSED = "paused"
    ABORTED = "aborted"
    EMERGENCY = "emergency-rollback"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Fault:
    """``at``: seconds; for a controller the number of its action; for a lost answer the number of the request.

    ``amount``: what the kind needs, such as a factor or a clock's error. ``words``: a verdict, or what an abort reverts.
    """

    kind: FaultKind
    node: str = ""
    at: float = 0.0
    lasting: float = 0.0
    amount: float = 0.0
    words: str = ""

    def __str__(self) -> str:
        told = [
            f"{field.name} {getattr(self, field.name):g}" for field in fields(self)[2:5] if getattr(self, field.name)
        ]
        return " ".join(part for part in (self.kind, self.node, *told, self.words) if part)


@dataclass(frozen=True, slots=True)
class Scenario:
    seed: int
    order: Order
    faults: tuple[Fault, ...]
