"""Prometheus: samples of an instant query within thresholds, or changed nodes compared with others."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.model.gates import GateQuery
from rollout.core.model.inventory import Endpoints

NODES = "$nodes"
"""Replaced in a query by a regular expression for the names of nodes."""


class Worse(StrEnum):
    """Which way a measurement gets worse."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True, slots=True)
class PrometheusQuery(GateQuery):
    """An instant query; ``$nodes`` in it is replaced by a regular expression that matches the touched nodes' names.

    Every sample must be within ``at_most`` and ``at_least``. With ``worse``, the query is asked again with ``$nodes``
    for the control group (nodes not touched yet) and the two are compared, see ``comparison.py``; ``tolerance`` is the
    share of the control's median by which the touched nodes may be worse. ``url`` ``""``: the inventory's.
    """

    query: str
    url: str = ""
    at_most: float | None = None
    at_least: float | None = None
    worse: Worse | None = None
    tolerance: float = 0.2

    kind = "prometheus"
    back_end = "Prometheus"
    asks_http = True

    def words(self) -> tuple[str, ...]:
        return tuple(self._words())

    def _words(self) -> Iterator[str]:
        yield self.query
        if self.at_most is not None:
            yield f"≤ {self.at_most:g}"
        if self.at_least is not None:
            yield f"≥ {self.at_least:g}"
        if self.worse is not None:
            yield f"not {self.tolerance * 100:g} % {self.worse.value} than nodes not changed yet"
        if self.url:
            yield f"at {self.url}"

    def lacks_back_end(self, endpoints: Endpoints) -> bool:
        return not (self.url or endpoints.prometheus)

    def least_harmed(self, fewest: int) -> int | None:
        """A threshold for the samples of each node sees one. Each kind is compared with its own control group: medians see half of it."""
        if NODES not in self.query:
            return None
        if self.at_most is not None or self.at_least is not None:
            return 1
        return (fewest + 1) // 2 if self.worse is not None else None
