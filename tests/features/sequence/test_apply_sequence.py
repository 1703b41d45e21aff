"""A sequence without a command line: its checks before it begins, the confirmation, and the start of each cluster."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.apply import apply_plan
from rollout.app.ports import Interruption, Journal, Nodes
from rollout.core.model.approvals import Approval
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.playbook import Share
from rollout.core.run.state import RunState
from rollout.errors import InputError, Place, RolloutError, SecondInterruptError, UsageError
from rollout.features.sequence.asking import PlanFiles, PlanRuns, SequenceState, apply_sequence, sequence_state
from rollout.features.sequence.rules import ClusterProgress, ClusterSequence, ClusterStage, StagedCluster, Turn
from tests.app.call import CLUSTER, FakeCall, FakeOperator
from tests.app.site import SMALL

PLANS = {"c.json": SMALL, "second.json": replace(SMALL, cluster="second")}
SEQUENCE = ClusterSequence(
    CLUSTER,
    tuple(
        ClusterStage(name, (StagedCluster(name, f"{name}.json", Place("s.yaml", line, 1)),), 60.0)
        for line, name in enumerate((CLUSTER, "second"), 1)
    ),
    Share(count=3),
)


@dataclass
class SequenceCall(FakeCall):
    """``without_worker``: the cluster that has a zone without a worker."""

    without_worker: str = ""
    started: list[tuple[str, str]] = field(default_factory=list)

    def journal(self) -> SqlJournal:
        return self._journal

    def inventory(self, cluster: str) -> Inventory:
        return replace(self.listed, cluster=cluster)

    def for_cluster(self, cluster: str, reason: str, interrupts: Interruption) -> SequenceCall:
        assert interrupts is self.engine
        self.started.append((cluster, reason))
        return self

    def check_workers(self, inventory: Inventory, names: Collection[str]) -> None:
        assert tuple(names) == tuple(SMALL.nodes)
        if inventory.cluster == self.without_worker:
            raise UsageError("no-worker", "nothing was touched")

    def wait(self, seconds: float) -> None:
        self.engine.at += seconds


@dataclass
class Runs:
    """``unapproved``: the plan of this cluster has no approval. ``stops``: what happens when the first cluster is applied."""

    unapproved: str = ""
    stops: BaseException | None = None
    applied: list[str] = field(default_factory=list)

    def approvals(self, _call: FakeCall, plan: Plan, _inventory: Inventory, path: Path) -> tuple[Approval, ...]:
        assert path == Path("plans") / f"{plan.cluster}.json"
        if plan.cluster == self.unapproved:
            raise UsageError("approval-missing", "the plan has 0 of 1 approval")
        return ()

    def apply(
        self, call: FakeCall, nodes: Nodes, plan: Plan, inventory: Inventory, approvals: tuple[Approval, ...]
    ) -> int:
        """Only the first cluster has a run: the other one has its plan already."""
        self.applied.append(plan.cluster)
        if plan.cluster == CLUSTER:
            if self.stops is not None:
                raise self.stops
            apply_plan(call, FakeOperator(), nodes, plan, inventory, approvals, fresh=False)
        return 0

    def resume(self, _call: FakeCall, _journal: Journal, _state: RunState) -> int:
        raise AssertionError("no run is unfinished")

    def late_pass(self, _call: FakeCall, _journal: Journal, _run: str) -> bool:
        raise AssertionError("no plan has late gates")


def files(**others: Plan) -> PlanFiles:
    return PlanFiles(
        Path("plans"), lambda path: {**PLANS, **{f"{k}.json": plan for k, plan in others.items()}}[path.name]
    )


def go(call: SequenceCall, operator: FakeOperator, runs: Runs) -> SequenceState:
    each: PlanRuns[SequenceCall] = PlanRuns(runs.approvals, runs.apply, runs.resume, runs.late_pass)
    return apply_sequence(call, operator, SEQUENCE, files(), each, call.wait)


def test_each_cluster_is_applied_after_the_soak_of_the_one_before(tmp_path: Path) -> None:
    call, operator, runs = SequenceCall(tmp_path), FakeOperator(), Runs()
    state = go(call, operator, runs)
    assert (state.turn.turn, state.exit_code, state.is_unfinished) == (Turn.END, 0, False)
    assert (runs.applied, call.opened) == ([CLUSTER, "second"], 0)
    assert call.started == [(CLUSTER, "slow pulls (sequence c)"), ("second", "slow pulls (sequence c)")]
    assert operator.confirmed == ["6 nodes of 2 clusters will be changed"]
    assert operator.shown[0] == "stage c:"
    assert [line.split(":")[0] for line in operator.must_read] == [
        "stage c (1 of 2)", "stage c (1 of 2)", "stage second (2 of 2)",
    ]  # fmt: skip
    assert "soaking" in operator.must_read[1]
    assert sequence_state(call, SEQUENCE, files()).clusters[CLUSTER].progress is ClusterProgress.DONE


def test_an_operator_who_declines_begins_no_cluster(tmp_path: Path) -> None:
    call, runs = SequenceCall(tmp_path), Runs()
    with pytest.raises(UsageError):
        go(call, FakeOperator(declines=True), runs)
    assert runs.applied == []


@pytest.mark.parametrize(
    ("call_has", "runs"),
    [({"without_worker": "second"}, Runs()), ({}, Runs(unapproved="second"))],
    ids=["a zone without a worker", "a plan without its approval"],
)
def test_a_mistake_in_the_last_cluster_begins_none(tmp_path: Path, call_has: dict[str, str], runs: Runs) -> None:
    operator = FakeOperator()
    with pytest.raises(RolloutError):
        go(SequenceCall(tmp_path, **call_has), operator, runs)  # type: ignore[arg-type]  # one of its texts
    assert (runs.applied, operator.confirmed) == ([], [])


def test_a_plan_of_another_cluster_is_reported_at_its_place(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        sequence_state(SequenceCall(tmp_path), SEQUENCE, files(second=SMALL))
    problem = refused.value.problems[0]
    assert (problem.reference, problem.place) == ("plan-of-another-cluster", Place("s.yaml", 2, 1))


def test_a_cluster_that_is_refused_halts_the_sequence(tmp_path: Path) -> None:
    call, operator, runs = SequenceCall(tmp_path), FakeOperator(), Runs(stops=UsageError("frozen", "c is frozen"))
    state = go(call, operator, runs)
    assert (state.exit_code, runs.applied, state.clusters[CLUSTER].why) == (3, [CLUSTER], "c is frozen [frozen]")


def test_an_interrupt_in_a_soak_leaves_the_rest_to_the_next_call(tmp_path: Path) -> None:
    call, runs = SequenceCall(tmp_path), Runs()
    state = go(call, FakeOperator(meanwhile=call.engine.stop), runs)
    assert (state.is_unfinished, state.exit_code, runs.applied) == (True, 130, [])
    call.engine.stopped = False
    assert (go(call, FakeOperator(), runs).exit_code, runs.applied) == (0, [CLUSTER, "second"])


def test_a_second_interrupt_waits_for_no_run(tmp_path: Path) -> None:
    with pytest.raises(SecondInterruptError):
        go(SequenceCall(tmp_path), FakeOperator(), Runs(stops=KeyboardInterrupt()))
