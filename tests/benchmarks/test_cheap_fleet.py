"""The bench's cheap nodes do what it measures on them: its floors use the protocol of the agent as it is, and change what rollout changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import cheap_fleet
from benchmarks.cheap_fleet import APPLY, EMERGENCY, FLOOR, SAFE_FLOOR

pytestmark = [pytest.mark.root, pytest.mark.xdist_group("loopback")]  # both have one sshd at one port


def test_a_change_by_the_safe_floor_and_by_rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cheap_fleet, "PEERS", {})
    turns = cheap_fleet.changes(tmp_path, 2, 1, tmp_path)
    assert (turns.failures, [*turns.turns]) == ({}, [SAFE_FLOOR, APPLY])


def test_an_emergency_by_the_agents_own_verbs_and_by_rollout(tmp_path: Path) -> None:
    turns = cheap_fleet.emergencies(tmp_path, 2, 1)
    assert (turns.failures, [*turns.turns]) == ({}, [FLOOR, EMERGENCY])
