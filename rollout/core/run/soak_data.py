"""What the nodes of a wave have done since their change, against what its soak must have seen."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.model.playbook import SoakData
from rollout.core.run.state import NodeRecord
from rollout.core.text.terminal import counted


class DataKind(StrEnum):
    """What a soak can demand."""

    POD_STARTS = "podStarts"
    PULLS = "pulls"


_WORDS = {DataKind.POD_STARTS: "pod start", DataKind.PULLS: "pull"}


@dataclass(frozen=True, slots=True)
class Gathered:
    """How many are known, how many the soak needs, and of how many nodes the number is unknown.

    An unknown number counts as none.
    """

    kind: DataKind
    known: int
    needed: int
    nodes_unknown: int

    @property
    def missing(self) -> bool:
        return self.known < self.needed

    def __str__(self) -> str:
        unknown = f", {counted(self.nodes_unknown, 'node')} not known" if self.nodes_unknown else ""
        return f"{self.known:,} of {counted(self.needed, _WORDS[self.kind])}{unknown}"


def gathered(data: SoakData, records: Sequence[NodeRecord]) -> tuple[Gathered, ...]:
    """One for each demand, over the records of the wave's confirmed nodes."""
    starts = _sum(DataKind.POD_STARTS, data.pod_starts, [record.pod_starts for record in records])
    pulls = _sum(DataKind.PULLS, data.pulls, [record.pulls_done for record in records])
    return tuple(found for found in (starts, pulls) if found.needed)


def _sum(kind: DataKind, needed: int, counts: list[int | None]) -> Gathered:
    known = [count for count in counts if count is not None]
    return Gathered(kind, sum(known), needed, len(counts) - len(known))
