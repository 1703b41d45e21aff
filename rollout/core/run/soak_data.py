"""What the nodes of a wave have done since their change, against what its soak must have seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rollout.core.model.playbook import SoakData
from rollout.core.run.state import NodeRecord
from rollout.core.text.terminal import counted


@dataclass(frozen=True, slots=True)
class Gathered:
    """How many of ``what`` are known, how many the soak needs, and of how many nodes the number is unknown.

    An unknown number counts as none.
    """

    what: str
    known: int
    needed: int
    nodes_unknown: int

    @property
    def missing(self) -> bool:
        return self.known < self.needed

    def __str__(self) -> str:
        unknown = f", {counted(self.nodes_unknown, 'node')} not known" if self.nodes_unknown else ""
        return f"{self.known:,} of {counted(self.needed, self.what)}{unknown}"


def gathered(data: SoakData, records: Sequence[NodeRecord]) -> tuple[Gathered, ...]:
    """One for each demand, over the records of the wave's confirmed nodes."""
    starts = _sum("pod start", data.pod_starts, [record.pod_starts for record in records])
    pulls = _sum("pull", data.pulls, [record.pulls_done for record in records])
    return tuple(found for found in (starts, pulls) if found.needed)


def _sum(what: str, needed: int, counts: list[int | None]) -> Gathered:
    known = [count for count in counts if count is not None]
    return Gathered(what, sum(known), needed, len(counts) - len(known))
