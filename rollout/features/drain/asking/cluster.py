"""The port to the API server of a drain."""

from __future__ import annotations

from typing import Protocol

from rollout.core.model.live import LiveNode
from rollout.core.model.pods import LeavingPod
from rollout.features.drain.rules import Cordon, EvictionAnswer


class DrainCluster(Protocol):
    """Cordons, drains and uncordons nodes. Thread-safe, bounded in time. Without an answer: ``RemoteError``."""

    def nodes(self) -> tuple[LiveNode, ...]:
        """Every Node, in the API's order."""
        ...

    def missing_to_drain(self) -> tuple[str, ...]:
        """The rights that a drain lacks: to read, list and patch Nodes, to list pods, to create evictions."""
        ...

    def cordon(self, node: str, run: str, counter: int, timeout: float) -> Cordon:
        """Make a Node unschedulable with the mark and the token of the run, in one compare-and-swap.

        Returns the owner of its cordon. A cordon of the run with an older token gets this token. Anything except
        ``OURS``: it was already cordoned, and nothing was changed.
        """
        ...

    def uncordon(self, node: str, run: str, counter: int | None, timeout: float) -> Cordon:
        """Lift the cordon with the run's mark (``run`` ``""``: any run's) and no newer token (``None``: any token).

        Removes mark and token too. Returns the owner of the cordon that is on it now.
        """
        ...

    def leaving(self, node: str, timeout: float) -> tuple[LeavingPod, ...]:
        """The pods of a node, including those that a drain leaves; read from the store, not from a cache."""
        ...

    def evict(self, pod: LeavingPod, timeout: float) -> EvictionAnswer:
        """Evict a pod, only if it still has this uid. The API server enforces the disruption budgets."""
        ...
