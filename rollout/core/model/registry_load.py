"""What the nodes of a scope may ask of one registry at most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PullRate:
    """What one node's kubelet lets itself ask. ``None``: it has no bound. ``burst`` counts only where there is a ``qps``."""

    parallel: int | None  # pulls at once
    qps: int | None  # pulls begun a second
    burst: int = 10


@dataclass(frozen=True, slots=True)
class Sum:
    """Over many nodes: what those with a bound may ask together, and how many have none."""

    total: int
    unbounded: int

    def beyond(self, most: int) -> bool:
        return self.unbounded > 0 or self.total > most

    def more_than(self, other: Sum) -> bool:
        """Whether it grew: a bound that is gone is more than any number."""
        return (self.unbounded, self.total) > (other.unbounded, other.total)


@dataclass(frozen=True, slots=True)
class RegistryLoad:
    """One registry (``""``: whichever they ask) and one zone (``""``: the fleet), before the plan and after it.

    ``nodes`` are those whose values are known, ``unknown`` those that were not read or not understood.
    """

    registry: str
    zone: str
    nodes: int
    unknown: int
    parallel_before: Sum
    parallel_after: Sum
    qps_before: Sum
    qps_after: Sum
