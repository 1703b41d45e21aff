"""Regions: which nodes are reached by the workers of which region. A node's zone names its region."""

from __future__ import annotations

from collections.abc import Collection

from rollout.core.model.frozen import dataclass


@dataclass(frozen=True, slots=True)
class RegionStanding:
    """A region as the controller of a run sees it now. ``workers``: those that can be used.

    ``calls``: verbs without an answer. ``nodes``: how many have a connection on a worker. ``round_trip_seconds``: seconds of a
    call beyond the work for it, smoothed; ``None``: no call was answered yet.
    """

    region: str
    workers: tuple[str, ...]
    calls: int
    nodes: int
    round_trip_seconds: float | None = None


def region_of_worker(name: str) -> str:
    """``eu-west-1`` is a worker of ``eu-west``: the number tells the workers of one region apart.

    A name without a number is that of its region: a worker ``eu-west`` does not serve ``eu``.
    """
    region, _, number = name.rpartition("-")
    return region if region and number.isascii() and number.isdigit() else name


def region_of_zone(zone: str, regions: Collection[str]) -> str:
    """The region of a zone: it has the zone's name, or the longest beginning of it before a ``-``. ``""``: none."""
    parts = zone.split("-")
    beginnings = ("-".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((each for each in beginnings if each in regions), "")
