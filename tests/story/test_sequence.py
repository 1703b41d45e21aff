"""Clusters in sequence on the lab: a halt in the first keeps the second untouched; then the same command goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents import printed
from tests.story.conftest import INVENTORY, Site, served

pytestmark = pytest.mark.process

SEQUENCE = """\
name: everywhere
budget: 5
stages:
  - clusters: {small: small.json}
    soak: 1s
  - clusters: {other: other.json, third: third.json}
"""
CLUSTERS = {"small": "small-[001-002]", "other": "small-[003-004]", "third": "small-[005-006]"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Three clusters of two nodes each, in one lab."""
    with served(tmp_path, "small-[001-006]") as made:
        for name in ("other", "third"):
            (tmp_path / f"inventories/{name}.yaml").write_text(INVENTORY.replace("cluster: small", f"cluster: {name}"))
        (tmp_path / "sequence.yaml").write_text(SEQUENCE)
        yield made


def test_a_halt_stops_what_has_not_begun_and_the_same_command_goes_on(site: Site) -> None:
    for cluster, nodes in CLUSTERS.items():
        made = site.rollout("plan", "--cluster", cluster, "--limit", nodes, "--out", f"{cluster}.json")
        assert made.code == 0, made.all
    site.fault("small-001", "never-healthy")
    halted = site.rollout("apply", "--sequence", "sequence.yaml", "--yes")
    assert halted.code == 3, halted.all
    assert "small: halting" in halted.out
    assert "sequence everywhere: halted; no further cluster begins. small: run" in halted.out
    again = site.rollout("apply", "--sequence", "sequence.yaml", "--yes")
    assert (again.code, site.is_new("small-003")) == (3, False), "repeating it begins nothing"
    assert ("`rollout resume r" in again.out, "; then repeat the sequence" in again.out) == (True, True), again.out

    site.fault("small-001", "--clear")
    resumed = site.rollout("resume", "--yes")
    assert resumed.code == 4, resumed.all
    done = site.rollout("apply", "--sequence", "sequence.yaml", "--yes", "-o", "json")
    assert done.code == 4, done.all
    assert [site.is_new(f"small-00{at}") for at in range(1, 7)] == [False, *[True] * 5]
    last = printed(done.out)[-1]
    assert (last["kind"], last["next"], last["failed"]) == ("Sequence", "end", 1)
    shown = site.rollout("status", "--sequence", "sequence.yaml")
    assert all(f"{cluster}: done, 2 nodes, run" in shown.out for cluster in ("other", "third"))
