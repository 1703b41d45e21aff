"""Removing what rollout keeps on nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollout.app.forget import forget_cluster, forget_fleet
from rollout.core.model.report import Outcome
from rollout.core.run.state import Verb
from rollout.errors import StateError, UsageError
from tests.app.agents import NEW, SILENT, Agents, access_to, answer
from tests.app.call import CLUSTER, FakeCall, FakeOperator
from tests.app.site import NAMES


def test_forget_is_fenced_and_a_refusal_has_a_reason() -> None:
    busy = answer("forget", "refused under-way transaction r2-1 is armed")
    nodes = Agents({("n2", "forget"): busy, ("n3", "forget"): SILENT})
    reports = forget_fleet(access_to("n1", "n2", "n3"), nodes, "u1", 7)
    assert reports["n1"].outcome is Outcome.DONE
    assert (reports["n2"].outcome, reports["n2"].reference) == (Outcome.REFUSED, "under-way")
    assert (reports["n3"].outcome, reports["n3"].reference) == (Outcome.UNREACHED, "connect-timeout")
    assert {(words["run"], words["counter"]) for _, words in nodes.asked} == {("u1", "7")}
    assert sorted(nodes.released) == ["n1", "n2", "n3"]


# ------------------------------------------------------------------------------------------- of a cluster


def kept(call: FakeCall) -> set[str]:
    return {name for name, node in call.agents.nodes.items() if node.applied}


def test_nodes_lose_what_a_rollback_needs_and_the_journal_says_so(tmp_path: Path) -> None:
    call, operator = FakeCall(tmp_path).applied(), FakeOperator()
    forgotten = forget_cluster(call, operator, CLUSTER, "n[1-2]")
    assert (forgotten.forgotten, forgotten.failed, forgotten.exit_code) == ("n[1-2]", (), 0)
    assert (kept(call), call.content(), call.opened) == ({"n3"}, {NEW}, 0)
    assert operator.confirmed == ["2 nodes of c will lose what a rollback needs"]
    assert call.notes() == ["forgotten on n[1-2]: slow pulls"]


def test_a_run_that_has_not_ended_needs_its_receipts(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).killed("n2", Verb.APPLY)
    with pytest.raises(StateError) as refused:
        forget_cluster(call, FakeOperator(), CLUSTER, "")
    assert (refused.value.reference, kept(call)) == ("run-unfinished", {"n1", "n2"})


def test_an_operator_who_declines_loses_nothing(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    with pytest.raises(UsageError):
        forget_cluster(call, FakeOperator(declines=True), CLUSTER, "")
    assert (kept(call), call.notes(), call.opened) == (set(NAMES), [], 0)


def test_nodes_that_did_not_forget_are_named(tmp_path: Path) -> None:
    call = FakeCall(tmp_path).applied()
    call.agents.says["n2", "forget"] = SILENT
    forgotten = forget_cluster(call, FakeOperator(), CLUSTER, "")
    assert (forgotten.forgotten, [node.node for node in forgotten.failed]) == ("n[1,3]", ["n2"])
    assert forgotten.exit_code == 4
    assert call.notes() == ["forgotten on n[1,3]: slow pulls"]
