"""A sequence lasts for days: what it checked at its beginning is checked again where a later cluster begins."""

from __future__ import annotations

import hashlib
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.ports import Journal, Nodes, RunHeader
from rollout.cli import terminal
from rollout.cli.main import run
from rollout.composition.plan_files import plan_in
from rollout.composition.wiring import Session
from rollout.core.model.approvals import Approval
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import LateWatch
from rollout.core.model.snapshot import FleetSnapshot
from rollout.core.plans import plan_codec, snapshot_codec
from rollout.core.presentation.summary import NodeCount, RunSummary
from rollout.core.run.events import Resumed
from rollout.core.run.journal_codec import encode_event, encode_order
from rollout.core.run.order import apply_order
from rollout.core.run.state import RunState
from rollout.errors import InputError, Problem, StateError, UsageError
from rollout.features.regions.client.dask_engine import DaskEngine
from rollout.features.regions.client.worker import RegionStation
from rollout.features.sequence.asking import PlanRuns
from rollout.features.sequence.command import apply_sequence
from tests.app.agents import Agents
from tests.app.site import held_by_another_process
from tests.cli.test_plan import INVENTORY, site
from tests.features.regions.client.test_region_nodes import Fabric
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
    then: Callable[[], object] = int
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
                ["plan", "--cluster", "other", "--snapshot", "other.fleet.json", "--limit", "n1", "--out", "other.json"]
            )
            assert made == 0
        if len(self.applied) == 1:
            self.then()
        return 0

    def resume(self, _session: Session, _journal: Journal, _state: RunState) -> int:
        raise AssertionError("no run has begun")

    def late_pass(self, _session: Session, _journal: Journal, _run: str) -> bool:
        raise AssertionError("no run has late gates")

    def go(self, folder: Path, engine: DaskEngine | None = None) -> int:
        session = Session(folder / ".rollout", None, accept_new=False, output="text", folder=folder, engine=engine)
        runs = PlanRuns(self.approvals, self.apply, self.resume, self.late_pass)
        return apply_sequence(session, Path("both.yaml"), runs, yes=True)


@pytest.fixture
def both(site: Path) -> Path:
    OTHER.write_text(INVENTORY.replace("small", "other"))
    Path("both.yaml").write_text(SEQUENCE)
    for cluster in ("small", "other"):
        digest = hashlib.sha256(Path(f"inventories/{cluster}.yaml").read_bytes()).hexdigest()
        fleet = FleetSnapshot(cluster, digest, "2026-11-20T16:00:00Z", {n: kubeadm(n) for n in ("n1", "n2", "n3")})
        Path(f"{cluster}.fleet.json").write_bytes(snapshot_codec.encode(fleet))
        assert (
            run(["plan", "--cluster", cluster, "--snapshot", f"{cluster}.fleet.json", "--out", f"{cluster}.json"]) == 0
        )
    return site


def test_a_freeze_that_is_written_in_the_soak_stops_the_next_cluster(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soaking = Soaking(edited=FREEZE)
    assert soaking.go(both) == 3
    assert soaking.applied == ["small"]
    said = capsys.readouterr().out
    assert (
        "halted; no further cluster begins. other: other.json: the inventory's change windows are not those of the plan"
        in said
    )


def test_an_approval_that_is_gone_after_the_soak_does_not_count(both: Path) -> None:
    soaking = Soaking(revoked=True)
    assert (soaking.go(both), soaking.applied) == (3, ["small"])


def test_a_plan_that_is_replaced_in_the_soak_is_not_applied_in_its_old_form(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    soaking = Soaking(replaced=True)
    assert (soaking.go(both), soaking.applied) == (3, ["small"])
    assert "other.json was replaced since the sequence was confirmed (repeat the command)" in capsys.readouterr().out


def begun(folder: Path, *, done: bool = False) -> None:
    """The journal has a run of the first cluster, without a controller. ``done``: it ended so long ago that no soak is left."""
    plan, run = plan_in(Path("small.json")), "run-small"
    order = encode_order(apply_order(run, plan))
    journal = SqlJournal(folder / ".rollout")
    journal.acquire("small", run)
    journal.begin(RunHeader(run, "small", "apply", order, 1, plan_codec.encode(plan), 1000.0, "me@here", ""))
    if done:
        nodes = {"confirmed": NodeCount(3, "n[1-3]")}
        journal.append(run, [encode_event(Resumed(1000.0, 2))], RunSummary(2000.0, "done", 0, "", 1, nodes, "", "", {}))
    journal.release("small", run)
    journal.close()


def test_a_sequence_is_refused_while_another_controller_holds_a_cluster_of_its_next_stage(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(both)
    held_by_another_process(both / ".rollout", "small", "run-small")
    with pytest.raises(StateError, match=r"run run-small holds small: .*`rollout status`") as raised:
        Soaking().go(both)
    assert (raised.value.reference, raised.value.exit_code) == ("locked", 5)
    assert "stage" not in capsys.readouterr().out, "nothing begins, and no one is asked to confirm"


@pytest.mark.parametrize("passes", [True, False])
def test_a_sequence_that_was_interrupted_while_it_asked_late_gates_asks_them_again(
    both: Path, monkeypatch: pytest.MonkeyPatch, *, passes: bool
) -> None:
    watched = replace(plan_in(Path("small.json")), late=LateWatch(3600.0))
    Path("small.json").write_bytes(plan_codec.encode(watched))
    begun(both, done=True)
    soaking = Soaking()

    def ask(*_: object) -> bool:
        if not passes:
            raise InputError((Problem("file-missing", "inventories/small.yaml: there is no such file"),))
        return True

    asked: list[str] = []
    monkeypatch.setattr(Soaking, "late_pass", ask)
    monkeypatch.setattr(terminal, "typed_confirmation", lambda _name, what, **_: asked.append(what))
    assert soaking.go(both) == (0 if passes else 3)
    assert soaking.applied == (["other"] if passes else [])
    assert asked == ["3 nodes of 1 cluster will be changed"], "the first cluster is done"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            lambda: Path("other.json").unlink(),
            "other.json: No such file or directory (a plan is a file that `rollout plan` writes) [file-missing]",
        ),
        (
            lambda: Path("other.json").write_bytes(b'{"plan"'),
            "other.json is not JSON (a plan is a file that `rollout plan` writes) [plan-unreadable]",
        ),
        (lambda: shutil.copy("small.json", "other.json"), "other.json is a plan of small, not of other"),
        (OTHER.unlink, "there is no cluster `other` (choose one of: small) [unknown-cluster]"),
    ],
    ids=["plan removed", "plan cut off", "plan of another cluster", "inventory removed"],
)
def test_a_file_that_is_gone_after_the_soak_halts_the_sequence_and_names_the_next_step(
    both: Path, capsys: pytest.CaptureFixture[str], edit: Callable[[], object], said: str
) -> None:
    soaking = Soaking(then=edit)
    assert (soaking.go(both), soaking.applied) == (3, ["small"])
    *_, ending, last = capsys.readouterr().out.splitlines()
    assert said in ending
    assert last == "other: correct this; then repeat the sequence"


def test_a_later_cluster_with_a_zone_without_a_worker_is_refused_before_the_first_begins(
    both: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric = Fabric({"none-1": RegionStation(Agents())})
    monkeypatch.setattr(DaskEngine, "connected", lambda _: fabric)
    engine, soaking = DaskEngine("tcp://127.0.0.1:8786", None), Soaking()
    assert (soaking.go(both, engine), soaking.applied) == (0, ["small", "other"])
    fabric.stations.clear()
    later = Soaking()
    with pytest.raises(UsageError, match="nothing was touched: zone none"):
        later.go(both, engine)
    assert later.applied == []


def test_ctrl_c_in_a_soak_names_the_command_that_continues(both: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("both.yaml").write_text(SEQUENCE.replace("soak: 0s", "soak: 720h"))
    soaking = Soaking(then=lambda: signal.raise_signal(signal.SIGINT))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        assert (soaking.go(both), soaking.applied) == (130, ["small"])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    *_, soaks, last = capsys.readouterr().out.splitlines()
    assert soaks.startswith("sequence both: soaking until ")
    assert last == "To continue: rollout apply --sequence both.yaml"


def test_without_an_edit_each_cluster_is_applied(both: Path) -> None:
    soaking = Soaking()
    assert (soaking.go(both), soaking.applied) == (0, ["small", "other"])
