"""A scenario: an order and faults, as data. A seed always draws the same one; a shorter list of faults also plays."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from rollout import known_faults
from rollout.core.run.state import Order
from rollout.simulator.open_minutes import OpenMinutes


class FaultKind(StrEnum):
    """Kinds of faults and requests from elsewhere, by part."""

    # a node
    DIES = "node-dies"
    REBOOTS = known_faults.REBOOT.name
    FREEZES = known_faults.NODE_FREEZES.name
    AGENT_KILLED = known_faults.AGENT_KILLED.name
    RESTART_FAILS = "restart-fails-in-the-revert"
    SLOW = "node-slow"
    SICK_AFTER_CHANGE = known_faults.NEVER_HEALTHY.name
    SICK_EITHER_WAY = "sick-with-both"
    FALLS_SICK = "falls-sick-later"
    DRIFTS = known_faults.DRIFTS.name
    PULLS = known_faults.PULLING.name
    PODS_KEPT = known_faults.PDB_BLOCKS.name
    # its network
    CUT = known_faults.LINK_CUT.name
    LATENT = "link-slow"
    ANSWER_LOST = "answer-lost"
    COMMAND_LOST = "command-lost"
    APPLY_LOST = "apply-lost"
    APPLY_LATE = "apply-late"
    ANSWER_LATE = "answer-taken-late"
    # gates
    NODE_GATE = "node-gate"
    NODE_BASELINE = "node-baseline"
    WAVE_GATE = "wave-gate"
    WAVE_BASELINE = "wave-baseline"
    API_AWAY = known_faults.API_DOWN.name
    ENGINE_AWAY = "engine-away"
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
    KILLED = known_faults.CONTROLLER_KILLED.name
    FROZEN = known_faults.CONTROLLER_FROZEN.name
    INTERRUPTED = "interrupted"
    UNLOCKED = "unlock"
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
    conditions: tuple[OpenMinutes, ...] = ()
