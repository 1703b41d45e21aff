"""A pull in flight: a runtime's journal lines at its start and end, and the file of an unfinished layer."""

from __future__ import annotations

from collections.abc import Container, Mapping

from rollout import known_faults
from rollout.kubelet.runtimes import stand_in
from rollout.lab.runtimes import STAND_INS

PULLING = known_faults.PULLING.name
IMAGE = stand_in.IMAGE
WORDS: Mapping[str, stand_in.PullLines] = {unit: daemon.pull for unit, daemon in STAND_INS.items()}
"""By unit."""


def pullers(units: Container[str]) -> tuple[tuple[str, stand_in.PullLines], ...]:
    """The units that do the kubelet's pulls: docker's own containerd does not."""
    below = {unit for name, daemon in STAND_INS.items() if name in units for unit in daemon.over}
    return tuple((unit, words) for unit, words in WORDS.items() if unit in units and unit not in below)
