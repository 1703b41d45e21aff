"""The image pulls that succeeded on a node since its change, from the counter of its kubelet.

The counter begins at 0 with the kubelet's process. A change that restarts the kubelet begins a new process, so all that it
counts is since the change. Of another change only what comes after the first reading counts. A counter that is lower than
before belongs to a new process: what earlier processes counted stays in the sum. What was not seen is not counted, so the
number is a lower bound. Clocks play no part.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rollout.app.ports import Cluster
from rollout.core.model.live import PullCounter
from rollout.errors import RemoteError

PULLS_SECONDS = 10.0
"""The longest that one reading of a kubelet's counter takes."""


@dataclass(slots=True)
class _Counted:
    """``earlier``: of the processes before, or, negative, what the first one had counted already."""

    earlier: int
    ended: int = 0
    succeeded: int = 0


@dataclass(slots=True)
class PullCounts:
    """The counts of one controller. Called on many threads, on one at a time for a node."""

    cluster: Cluster
    counted: dict[str, _Counted] = field(default_factory=dict)

    def forget(self, node: str) -> None:
        """It is changed, or its change is reverted."""
        self.counted.pop(node, None)

    def since_change(self, node: str, *, restarted: bool) -> int | None:
        """``restarted``: its change restarts the kubelet. ``None``: not known."""
        try:
            counter = self.cluster.pull_counter(node, PULLS_SECONDS)
        except RemoteError:
            return None
        known = self.counted.get(node)
        if known is None:
            known = self.counted[node] = _Counted(0 if restarted else -_succeeded(counter))
        if counter.ended < known.ended:
            known.earlier, known.succeeded = known.earlier + known.succeeded, 0
        known.ended, known.succeeded = counter.ended, max(known.succeeded, _succeeded(counter))
        return known.earlier + known.succeeded


def _succeeded(found: PullCounter) -> int:
    """A failed pull is counted as failed just before it is counted as ended."""
    return max(0, found.ended - found.failed)
