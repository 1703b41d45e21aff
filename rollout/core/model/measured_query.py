"""A query that is answered by what the agent measures on a node."""

from __future__ import annotations

from rollout.core.model.gates import GateQuery
from rollout.core.model.plan import Change
from rollout.core.model.snapshot import Measurement
from rollout.core.model.verdict import Judged


class MeasuredQuery(GateQuery):
    __slots__ = ()

    def judge(self, name: str, change: Change, measurement: Measurement, previous: Measurement | None) -> Judged:
        """The verdict of the gate ``name`` on this reading; ``previous`` is the node's last reading since its restart, if any."""
        raise NotImplementedError
