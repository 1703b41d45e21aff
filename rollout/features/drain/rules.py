"""What a drain finds at the API server, as values: the answer to an eviction, and the owner of a cordon."""

from __future__ import annotations

from enum import StrEnum

from rollout.core.model.frozen import dataclass


class Eviction(StrEnum):
    """The API server's answer to an eviction. An accepted eviction does not mean that the pod is gone."""

    ACCEPTED = "accepted"
    GONE = "gone"  # 404, or another pod has its name
    BLOCKED = "blocked"  # not now: its PodDisruptionBudget allows none (429), or an answer that may be a webhook's
    REFUSED = "refused"  # it can never be evicted: two budgets match it (500), or we may not evict (403)


@dataclass(frozen=True, slots=True)
class EvictionAnswer:
    """``message`` is the API server's, ``retry_after`` the wait it asks for (0: none given)."""

    eviction: Eviction
    message: str = ""
    retry_after: float = 0.0


class Cordon(StrEnum):
    """Which run or user set the cordon on a node."""

    NONE = "none"
    OURS = "ours"  # with this run's mark, and no newer token
    NEWER = "newer"  # with this run's mark and a newer token: another controller continued it
    ANOTHER_RUN = "another-run"  # with another run's mark
    OTHERS = "others"  # without a mark: set by others, never lifted by us
