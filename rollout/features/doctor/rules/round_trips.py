"""What a worker of a region would do to the length of an apply, by the measured round trip to the nodes of each zone: values in, values and text out.

What was observed is the time between a question over a node's open SSH connection and its answer: sshd answers the question itself
and starts nothing for it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from rollout.core.model.frozen import dataclass
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import counted, printable

COSTS_UP_TO, PAYS_FROM = 0.05, 0.2
"""Seconds of a round trip up to which an apply with a worker took longer than without one, and from which it took less time.

Measured by ``make bench-regions`` on 12 real nodes (the last table is in ``benchmarks/regions.md``). Of four runs of 3 rounds, it took longer in 26 of 36
rounds up to 50 ms (6 % in the median), and less time in 9 of 9 rounds at 200 ms (8 %). From 75 to 150 ms it was longer in about half of them.
"""
FEWEST = 3
"""Nodes of a zone that must have answered before their median says something of the zone."""
MOST = 12
"""Nodes of a zone that are measured."""


class WithWorker(StrEnum):
    """How an apply on the nodes of a zone would change by a worker beside them."""

    LONGER = "longer"
    SHORTER = "shorter"
    NOT_KNOWN = "not-known"


@dataclass(frozen=True, slots=True)
class ZoneTrips:
    """The round trips from this machine to the measured ``nodes`` of a zone (``""``: the nodes that have none), in seconds."""

    zone: str
    nodes: tuple[str, ...]
    median_seconds: float
    most_seconds: float
    with_worker: WithWorker


def to_measure(zones: Mapping[str, str]) -> tuple[str, ...]:
    """The first nodes of each zone. ``zones``: node → zone."""
    together: dict[str, list[str]] = {}
    for node, zone in zones.items():
        together.setdefault(zone, []).append(node)
    return tuple(node for nodes in together.values() for node in nodes[:MOST])


def zone_trips(zones: Mapping[str, str], seconds: Mapping[str, float]) -> tuple[ZoneTrips, ...]:
    """By zone. ``seconds``: measured node → its round trip. Nodes without a zone (``""``) may be anywhere: those that are far are told apart."""
    together: dict[tuple[str, bool], list[str]] = {}
    for node, trip in seconds.items():
        zone = zones[node]
        together.setdefault((zone, not zone and trip >= PAYS_FROM), []).append(node)
    return tuple(_of_zone(zone, tuple(nodes), seconds) for (zone, _), nodes in sorted(together.items()))


def _of_zone(zone: str, nodes: tuple[str, ...], seconds: Mapping[str, float]) -> ZoneTrips:
    trips = [seconds[node] for node in nodes]
    median = statistics.median(trips)
    return ZoneTrips(zone, nodes, round(median, 6), round(max(trips), 6), with_worker(median, len(nodes)))


def with_worker(median: float, nodes: int) -> WithWorker:
    if nodes < FEWEST or COSTS_UP_TO < median < PAYS_FROM:
        return WithWorker.NOT_KNOWN
    return WithWorker.LONGER if median <= COSTS_UP_TO else WithWorker.SHORTER


_SAID = {
    WithWorker.LONGER: "a worker there would make an apply longer",
    WithWorker.SHORTER: "a worker there would shorten an apply",
    WithWorker.NOT_KNOWN: "it is not known whether a worker there would shorten an apply",
}


def trip_texts(found: Sequence[ZoneTrips]) -> Iterator[str]:
    """One line for all zones of which the same can be said."""
    together: dict[tuple[WithWorker, str, bool], list[ZoneTrips]] = {}
    for each in found:
        together.setdefault((each.with_worker, _why(each), bool(each.zone)), []).append(each)
    for (effect, why, _), those in together.items():
        nodes = counted(sum(len(each.nodes) for each in those), "node")
        median = "median" if len(those) == 1 else "medians"
        yield f"{_where(those)} ({nodes}, {median} {_span([each.median_seconds for each in those])}): {_SAID[effect]}{why}"


def _why(trips: ZoneTrips) -> str:
    if trips.with_worker is WithWorker.SHORTER and not trips.zone:
        return "; the inventory gives them no zone, and a worker serves a zone"
    if trips.with_worker is not WithWorker.NOT_KNOWN:
        return ""
    if len(trips.nodes) < FEWEST:
        return f", because fewer than {FEWEST} nodes were measured"
    return f", because measurements do not decide between {_span((COSTS_UP_TO,))} and {_span((PAYS_FROM,))}"


def _where(those: Sequence[ZoneTrips]) -> str:
    zones = [each.zone for each in those if each.zone]
    if not zones:
        return printable(fold([name for each in those for name in each.nodes]), 100)
    rest = f" and {len(zones) - MOST} more" if len(zones) > MOST else ""
    return f"{'zone' if len(zones) == 1 else 'zones'} {printable(', '.join(zones[:MOST]), 200)}{rest}"


def _span(seconds: Sequence[float]) -> str:
    least, most = (
        f"{1000 * trip:.0f}" if trip >= 0.01 else f"{1000 * trip:.1f}" for trip in (min(seconds), max(seconds))
    )
    return f"{least} ms" if least == most else f"{least} to {most} ms"
