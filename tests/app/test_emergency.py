"""Reverting nodes in an emergency, by what they report: with and without a journal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rollout.app import emergency_rounds
from rollout.app.emergencies import Told, Unfinished
from rollout.app.emergency_rounds import EmergencyResult, revert_nodes
from rollout.app.isolation import estimate
from rollout.app.rollbacks import Emergency, RunsToRevert
from rollout.core.model.plan import CONTROL_PLANE_WAVE, Wave
from rollout.core.model.playbook import EMERGENCY_LIMITS
from rollout.core.model.proof import NodeProof, Proven
from rollout.core.presentation.emergency_text import seen_lines
from rollout.errors import StateError, UsageError
from tests.app.agents import CONFIG, NEW
from tests.app.call import CLUSTER, FakeCall, FakeOperator, old_nodes
from tests.app.site import SMALL, held_by_another_process
from tests.app.stacked_agents import Applied
from tests.app.test_node_worker import OLD

NO_DISK = StateError("journal-unusable", "no disk")


@dataclass
class Rescuer(FakeOperator):
    heard: list[Told] = field(default_factory=list)
    proven: dict[str, Proven] = field(default_factory=dict)

    def told(self, what: Told, cluster: str) -> None:
        assert cluster == CLUSTER
        self.heard.append(what)

    def proofs(self, proofs: Sequence[NodeProof]) -> None:
        self.proven = {proof.node: proof.proven for proof in proofs}


def rescue(call: FakeCall, operator: Rescuer, *runs: str, limit: str = "") -> EmergencyResult:
    return revert_nodes(call, operator, CLUSTER, limit, RunsToRevert(runs), EMERGENCY_LIMITS, force=False, at_most=0.0)


def test_before_it_reads_the_nodes_it_waits_for_the_journal_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, limits = FakeCall(tmp_path).applied(), list[float]()

    def noted(work: Callable[[], Any], seconds: float) -> Any:
        if not call.opened:
            limits.append(seconds)
        return estimate(work, seconds)

    monkeypatch.setattr(emergency_rounds, "estimate", noted)
    assert rescue(call, Rescuer()).exit_code == 0
    assert limits == [emergency_rounds.JOURNAL_SECONDS]


@pytest.mark.parametrize("broken", [None, NO_DISK])
def test_the_newest_run_is_reverted_and_proven_with_and_without_a_journal(tmp_path: Path, broken: StateError) -> None:
    call, operator = FakeCall(tmp_path).applied(), Rescuer()
    call.broken = broken
    result = rescue(call, operator)
    assert (result.exit_code, result.stopped, call.content(), call.opened) == (0, False, {OLD}, 0)
    assert operator.proven == dict.fromkeys(call.agents.nodes, Proven.PROVEN)
    assert operator.confirmed == ["3 nodes of c will be reverted"]
    first = operator.heard[0]
    assert isinstance(first, Emergency)
    assert first.picked == ("r1",)


def test_the_same_command_again_reverts_nothing_older_and_proves_again(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    rescue(call, Rescuer())
    again = Rescuer()
    assert rescue(call, again, "r1").exit_code == 0
    assert (again.confirmed, call.content()) == ([], {OLD})


def test_a_silent_node_is_unknown_and_the_others_do_not_wait(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).applied(), Rescuer()
    call.silence("n2")
    assert rescue(call, operator).exit_code == 4
    assert operator.proven == {"n1": Proven.PROVEN, "n3": Proven.PROVEN, "n2": Proven.UNKNOWN}
    last = operator.heard[-1]
    assert isinstance(last, Unfinished)
    assert (last.picked, set(last.owed)) == (("r1",), {"n2"})


@pytest.mark.parametrize(
    ("has", "proven", "code"), [(NEW, Proven.WRONG, 4), (OLD, Proven.UNCHANGED, 0)], ids=["new bytes", "old bytes"]
)
def test_a_node_that_lost_its_receipts_is_judged_by_its_bytes(
    tmp_path: Path, has: bytes, proven: Proven, code: int
) -> None:
    """It is in no run that the nodes report, so nothing is reverted there."""
    call, operator = FakeCall(tmp_path).applied(), Rescuer()
    call.agents.nodes["n3"].applied, call.agents.nodes["n3"].files[CONFIG] = [], has
    assert rescue(call, operator).exit_code == code
    assert operator.proven == {"n1": Proven.PROVEN, "n2": Proven.PROVEN, "n3": proven}
    assert call.agents.nodes["n3"].at(CONFIG) == has


def test_without_the_journal_the_operator_is_told_of_nodes_that_may_have_lost_their_receipts(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).applied(), Rescuer()
    call.agents.nodes["n3"].applied, call.broken = [], NO_DISK
    assert rescue(call, operator).exit_code == 0
    said = "whether r1 changed 1 node without a transaction of the cluster, n3, is not known: the journal does not show it, or was not read in time"
    assert said in operator.must_read


def test_an_operator_who_declines_changes_nothing(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    with pytest.raises(UsageError):
        rescue(call, Rescuer(declines=True))
    assert (call.content(), call.agents.asked, call.opened) == ({NEW}, [], 0)


def test_only_the_chosen_nodes_are_reverted(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    assert rescue(call, Rescuer(), limit="n3").exit_code == 0
    assert {name for name, node in call.agents.nodes.items() if node.at(CONFIG) == OLD} == {"n3"}


@pytest.mark.parametrize(("runs", "reference"), [((), "nothing-to-take-back"), (("r9",), "nothing-to-take-back")])
def test_nodes_without_transactions_have_nothing_to_revert(
    tmp_path: Path, runs: tuple[str, ...], reference: str
) -> None:
    call = FakeCall(tmp_path, old_nodes())
    with pytest.raises(UsageError) as refused:
        rescue(call, Rescuer(), *runs)
    assert (refused.value.reference, call.agents.asked, call.opened) == (reference, [], 0)


def test_a_run_that_no_node_has_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no node that answered has a transaction of `x9`"):
        rescue(FakeCall(tmp_path).applied(), Rescuer(), "x9")


def test_a_controller_at_work_with_our_journal_is_not_disturbed(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    held_by_another_process(tmp_path, CLUSTER, "r8")
    with pytest.raises(StateError) as refused:
        rescue(call, Rescuer())
    assert (refused.value.reference, call.content()) == ("locked", {NEW})


@pytest.mark.parametrize("broken", [None, NO_DISK])
def test_an_emergency_knows_the_control_plane_from_the_journal_if_it_can_be_read(
    tmp_path: Path, broken: StateError
) -> None:
    seen = replace(SMALL, waves=(Wave("canary", ("n1",), 1.0), Wave(CONTROL_PLANE_WAVE, ("n2", "n3"), 1.0, at_once=1)))
    call, operator = FakeCall(tmp_path).applied(seen), Rescuer()
    call.broken = broken
    assert rescue(call, operator).exit_code == 0
    first = operator.heard[0]
    assert isinstance(first, Emergency)
    names = [wave.name for wave in first.order.waves]
    assert names == (["rollback"] if broken else ["rollback", CONTROL_PLANE_WAVE])


# ------------------------------------------------------------------------------------------- a machine of two clusters


@dataclass
class Shared:
    """Run r1 of our cluster has changed all nodes; run w9 of cluster west has changed n1 too, or only claimed it."""

    call: FakeCall

    def west_runs(self, *states: str, claims: bool = False, listed: bool = True) -> None:
        self.call.texts |= {"inventories/west.yaml": ""} if listed else {}
        journal, node = self.call.journal(), self.call.agents.nodes["n1"]
        journal.begin(replace(journal.header("r1"), run="w9", cluster="west", at=5.0))
        for state in states:
            node.applied.append(Applied("w9-1", "w9", 9, 9, {WEST: (None, b"west")}, state))
        node.claim = (9, "w9", "live" if claims else "ended")

    def states(self) -> dict[str, str]:
        return {each.run: each.state for each in self.call.agents.nodes["n1"].applied}


WEST = "/etc/west"
BACK = {"n1": Proven.PROVEN, "n2": Proven.PROVEN, "n3": Proven.PROVEN}
REVERT_WEST = "`rollout rollback w9 --cluster west --emergency`"


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    return Shared(FakeCall(tmp_path).applied())


def told(operator: Rescuer) -> str:
    first = operator.heard[0]
    assert isinstance(first, Emergency)
    return "\n".join(seen_lines(first.seen, first.picked, first.already, CLUSTER))


@pytest.mark.parametrize("every", [True, False])
def test_the_newest_run_is_that_of_the_cluster_and_the_other_cluster_is_named(shared: Shared, *, every: bool) -> None:
    shared.west_runs("confirmed")
    operator = Rescuer()
    wanted = RunsToRevert(every=every)
    result = revert_nodes(shared.call, operator, CLUSTER, "", wanted, EMERGENCY_LIMITS, force=False, at_most=0.0)
    assert result.exit_code == 0
    assert operator.proven == {"n2": Proven.PROVEN, "n3": Proven.PROVEN}
    assert shared.states() == {"r1": "confirmed", "w9": "confirmed"}
    assert f"not reverted: run w9 of cluster west on 1 node n1; {REVERT_WEST} reverts it" in told(operator)


def test_a_change_of_the_other_cluster_that_was_reverted_does_not_cover_that_of_this_one(shared: Shared) -> None:
    shared.west_runs("reverted")
    operator = Rescuer()
    assert rescue(shared.call, operator).exit_code == 0
    assert (operator.proven, shared.call.content()) == (BACK, {OLD})


def test_a_run_of_the_other_cluster_keeps_its_claim_where_nothing_is_reverted(shared: Shared) -> None:
    shared.call.agents.nodes["n1"].applied = []
    shared.west_runs(claims=True)
    operator = Rescuer()
    assert rescue(shared.call, operator).exit_code == 4, "it has lost the receipt of r1, and not its bytes"
    assert operator.proven["n1"] is Proven.WRONG
    assert shared.call.agents.nodes["n1"].claim == (9, "w9", "live")
    assert (
        f"run w9 of cluster west has claimed 1 node n1: it keeps those where nothing is reverted; {REVERT_WEST}"
        in told(operator)
    )


def test_a_change_is_reverted_also_where_a_run_of_the_other_cluster_has_claimed_the_node(shared: Shared) -> None:
    shared.west_runs(claims=True)
    operator = Rescuer()
    assert rescue(shared.call, operator).exit_code == 0
    assert (operator.proven, shared.call.content()) == (BACK, {OLD})


def test_nodes_with_changes_of_the_other_cluster_alone_have_nothing_to_revert(shared: Shared) -> None:
    shared.west_runs("confirmed")
    shared.call.agents.nodes["n1"].applied = shared.call.agents.nodes["n1"].applied[1:]
    with pytest.raises(UsageError, match="no node that answered has a transaction of this cluster") as refused:
        rescue(shared.call, Rescuer(), limit="n1")
    assert refused.value.reference == "nothing-to-take-back"
    assert REVERT_WEST in str(refused.value)
    assert shared.states() == {"w9": "confirmed"}


def test_a_run_of_the_other_cluster_is_reverted_if_it_is_named(shared: Shared) -> None:
    shared.west_runs("confirmed")
    assert rescue(shared.call, Rescuer(), "w9").exit_code == 0
    assert shared.states() == {"r1": "confirmed", "w9": "reverted"}


def test_a_run_under_the_old_name_of_a_cluster_is_of_the_cluster(shared: Shared) -> None:
    """No inventory has that name any more, so no other command could revert it."""
    shared.west_runs("confirmed", listed=False)
    shared.call.agents.nodes["n1"].applied = shared.call.agents.nodes["n1"].applied[1:]
    assert rescue(shared.call, Rescuer()).exit_code == 0
    assert shared.states() == {"w9": "reverted"}
