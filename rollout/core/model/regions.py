"""Regions: which nodes are reached by the workers of which region. A node's zone names its region."""

from __future__ import annotations

from collections.abc import Collection


def region_of_worker(name: str) -> str:
    """``eu-west-1`` is a worker of ``eu-west``: the last part tells the workers of one region apart."""
    return name.rpartition("-")[0] or name


def region_of_zone(zone: str, regions: Collection[str]) -> str:
    """The region of a zone: it has the zone's name, or the longest beginning of it before a ``-``. ``""``: none."""
    parts = zone.split("-")
    beginnings = ("-".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((each for each in beginnings if each in regions), "")
