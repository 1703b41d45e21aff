"""How live nodes stand to the settings that a cluster owns."""

from __future__ import annotations

from enum import StrEnum

from rollout.core.model.frozen import dataclass


class OwnedStanding(StrEnum):
    """How a node stands to the owned settings. Only the first is as wanted, and a replaced node that has them."""

    AS_WANTED = "as-wanted"  # each of them is in force, also where another tool set it
    DRIFTED = "drifted"  # a change of rollout is recorded, and another value is in force
    NEVER_CHANGED = "never-changed"  # no change of rollout is recorded, and another value is in force
    REPLACED = "replaced"  # another machine has the name of a changed node
    GONE = "gone"  # a run changed it; it is not in the inventory now
    NOT_READABLE = "not-readable"
    NOT_COMPARED = "not-compared"  # it was read; a plan would refuse it, so its value is not judged
    LEFT_ALONE = "left-alone"  # the playbook passes over it: control plane, cordoned by others


@dataclass(frozen=True, slots=True)
class ComparedNode:
    """One node. ``lacks``: another value than the owned one is in force. ``joined``: when its Node was made, RFC 3339; ``""``: not known."""

    name: str
    standing: OwnedStanding
    lacks: bool = False
    reference: str = ""
    evidence: str = ""
    joined: str = ""

    @property
    def is_newcomer(self) -> bool:
        """Whether no run has changed this machine, and it lacks a setting."""
        return self.lacks and self.standing in (OwnedStanding.NEVER_CHANGED, OwnedStanding.REPLACED)


UNREAD = (OwnedStanding.NOT_READABLE, OwnedStanding.NOT_COMPARED)
