"""``rollout doctor`` on the lab: a healthy fleet passes, each fault is found by its check, and nodes stay as they were."""

from __future__ import annotations

import pytest

from tests.controllers import Done
from tests.story.conftest import Site

pytestmark = pytest.mark.process


def doctor(site: Site, *words: str) -> Done:
    return site.rollout("doctor", "--cluster", "small", "--limit", "small-[001-010,061-070]", *words)


def test_a_healthy_fleet_passes_and_nothing_is_left_on_its_nodes(site: Site) -> None:
    before = site.everything("small-001", "small-061")
    done = doctor(site)
    assert done.code == 0, done.all
    assert "small: 3 of 20 nodes read; --all reads every node" in done.out
    assert "every check of the nodes passes: 3 nodes; not checked: API server" in done.out
    assert "user ops, key ssh-ed25519 SHA256:" in done.out
    assert doctor(site, "--all").code == 0
    assert site.everything("small-001", "small-061") == before
    assert not (site.node("small-001") / "var/lib/rollout").exists()


def test_each_fault_is_found_by_its_check_with_what_fixes_it(site: Site) -> None:
    for nodes, kind in (
        ("small-[001-003]", "refuse"),
        ("small-004", "host-key-change"),
        ("small-005", "clock-step"),
        ("small-006", "garbage-output"),
    ):
        site.fault(nodes, kind)
    done = doctor(site, "--all", "-o", "json")
    assert done.code == 4, done.all
    found = {part["reference"]: part for part in done.json()["parts"] if part["verdict"] == "fail"}
    assert {reference: (part["checks"], len(part["nodes"])) for reference, part in found.items()} == {
        "connection-refused": (["TCP"], 3),
        "host-key-changed": (["host key"], 1),
        "clock-offset": (["clock"], 1),
        "no-shell": (["shell"], 1),
    }
    assert all(part["fix"] for part in found.values())


def test_a_fleet_that_is_away_ends_with_clear_words(site: Site) -> None:
    site.fault("small-[001-010,061-070]", "refuse")
    site.fault("small-001", "hang-before-banner")
    done = doctor(site, "--all")
    assert done.code == 4, done.all
    assert "no login to a node succeeded: check the network, VPN or bastion of this machine" in done.out
    assert "small-[002-010,061-070]: connection refused" in done.out
    assert "no SSH banner in time [no-banner]" in done.out
