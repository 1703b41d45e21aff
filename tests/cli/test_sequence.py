"""A sequence lasts for days: what it checked at its beginning is checked again where a later cluster begins."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rollout.app.ports import Journal, Nodes
from rollout.cli.main import run
from rollout.cli.sequence import PlanRuns, apply_sequence
from rollout.composition.wiring import Session
from rollout.core.model.approvals import Approval
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.plans import snapshot_codec
from rollout.core.run.state import RunState
from rollout.errors import UsageError
from tests.cli.test_plan import INVENTORY, site
from tests.kubelet.nodes import kubeadm

__all__ = ["site"]

SEQUENCE = """\
name: both
stages:
  - {clusters: {small: small.json}, soak: 0s}
  - {clusters: {other: other.json}}
"""
OTHER = Path("inventories/other.yaml")
FREEZE = "changeWindows: {zone: UTC, freezes: [{first: 2026-11-01, last: 9999-12-31}]}\n"


@dataclass
class Soaking:
    """``apply`` of each cluster. Its first call is where days pass and somebody edits a file.

    ``revoked``: the signers of the second cluster have left since. ``replaced``: its plan was made again.
    """

    edited: str = ""
    revoked: bool = False
    replaced: bool = False
    applied: list[str] = field(default_factory=list)

    def approvals(self, _session: Session, plan: Plan, _inventory: Inventory, _file: Path) -> tuple[Approval, ...]:
        if self.revoked and self.applied and plan.cluster == "other":
            raise UsageError("approval-missing", "the plan has 0 of 1 approval")
        return ()

    def apply(self, _session: Session, _nodes: Nodes, plan: Plan, _inventory: Inventory, _given: object) -> int:
        self.applied.append(plan.cluster)
        OTHER.write_text(OTHER.read_text() + self.edited)
        if self.replaced:
            made = run(
                ["plan", "--cluster", "other", "--snapshot", "fleet.json", "--limit", "n1", "--out", "other.json"]
            )
            assert made == 0
        return 0

    def resume(self, _session: Session, _journal: Journal, _state: RunState) -> int:
        raise AssertionError("no run has begun")

    def go(self, folder: Path) -> int:
        session = Session(folder / ".rollout", None, accept_new=False, output="text", folder=folder)
        return apply_sequence(session, Path("both.yaml"), PlanRuns(self.approvals, self.apply, self.resume), yes=True)


@pytest.fixture
def both(site: Path) -> Path:
    OTHER.write_text(INVENTORY.replace("small", "other"))
    Path("both.yaml").write_text(SEQUENCE)
    for cluster in ("small", "other"):
        digest = hashlib.sha256(Path(f"inventories/{cluster}.yaml").read_bytes()).hexdigest()
        fleet = FleetSnapshot(cluster, digest, "2026-11-20T16:00:00Z", {n: kubeadm(n) for n in ("n1", "n2", "n3")})
        Path("fleet.json").write_bytes(snapshot_codec.encode(fleet))
        assert run(["plan", "--cluster", cluster, "--snapshot", "fleet.json", "--out", f"{cluster}.json"]) == 0
    return site


def test_a_freeze_that_is_written_in_the_soak_stops_the_next_cluster(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soaking = Soaking(edited=FREEZE)
    assert soaking.go(both) == 3
    assert soaking.applied == ["small"]
    said = capsys.readouterr().out
    assert "halted; no further cluster begins. other: other.json was made for other with another version" in said


def test_an_approval_that_is_gone_after_the_soak_does_not_count(both: Path) -> None:
    soaking = Soaking(revoked=True)
    assert (soaking.go(both), soaking.applied) == (3, ["small"])


def test_a_plan_that_is_replaced_in_the_soak_is_not_applied_in_its_old_form(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soaking = Soaking(replaced=True)
    assert (soaking.go(both), soaking.applied) == (3, ["small"])
    assert "other.json was replaced since the sequence was confirmed (repeat the command)" in capsys.readouterr().out


def test_without_an_edit_each_cluster_is_applied(both: Path) -> None:
    soaking = Soaking()
    assert (soaking.go(both), soaking.applied) == (0, ["small", "other"])
