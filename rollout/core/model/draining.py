"""What draining a node looks at: the pods on it as the API server tells of their end, and what it answers to an eviction.

All times are seconds. A pod's ``uid`` tells it from the next one of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

BY_HAND = "kubectl uncordon NODE && kubectl annotate node NODE rollout/cordoned-by- rollout/token-"
"""Lifts a cordon of ours. Without the second half the next cordon that somebody puts on would count as ours."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one container ends. ``hook``: it has a preStop hook; ``hook_sleeps``: how long that surely takes (a ``sleep`` handler's
    seconds), 0 where that cannot be told; ``sidecar``: an init container with ``restartPolicy: Always``.
    """

    name: str
    hook: bool = False
    hook_sleeps: int = 0
    sidecar: bool = False


@dataclass(frozen=True, slots=True)
class LeavingPod:
    """A pod on a node that is to be drained.

    ``grace``: spec.terminationGracePeriodSeconds as written, which may be negative; ``deletion_grace``: what the API server
    granted when it was deleted (``None``: it is not being deleted), ``deleted``: by when it said that it ends (RFC 3339).
    ``stays``: why a drain leaves it: ``daemon-set``, ``static``, ``over``; ``""``: it is to go. ``held_by``: finalizers.
    """

    uid: str
    name: str  # "namespace/name"
    grace: int = 30
    deletion_grace: int | None = None
    deleted: str = ""
    stays: str = ""
    local: bool = False  # it has an emptyDir, which ends with it
    controlled: bool = True  # something will make it anew
    held_by: tuple[str, ...] = ()
    containers: tuple[Ending, ...] = ()


class Eviction(StrEnum):
    """What the API server said when it was asked to evict a pod. Accepted is not gone."""

    ACCEPTED = "accepted"
    GONE = "gone"  # 404, or another pod has its name
    BLOCKED = "blocked"  # 429: its PodDisruptionBudget allows none now
    REFUSED = "refused"  # it never will: two budgets match it (500), or it may not be asked (403)


@dataclass(frozen=True, slots=True)
class EvictionAnswer:
    """``message`` is the API server's, ``retry_after`` what it asks to wait (0: nothing said)."""

    eviction: Eviction
    message: str = ""
    retry_after: float = 0.0


class Cordon(StrEnum):
    """Whose cordon is on a node."""

    NONE = "none"
    OURS = "ours"  # with this run's mark, and no newer token
    NEWER = "newer"  # with this run's mark and a newer token: another controller went on with it
    ANOTHER_RUN = "another-run"  # with another run's mark
    OTHERS = "others"  # without a mark: somebody else's, never lifted by us
