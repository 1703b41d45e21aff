"""Approvals of a run: they are journaled, replay, and are enough to resume where the files of signatures are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.approvals import Approvals, check_not_used, journaled, rules_for
from rollout.app.following import replay
from rollout.app.runs import resumable, resume, start_apply
from rollout.core.model.approvals import Approval, ApprovalRule
from rollout.core.model.plan import Wave
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Receipt, ReceiptState
from rollout.core.run.events import Approved
from rollout.core.run.journal_codec import decode_event
from rollout.core.run.state import NodeState, Verb
from rollout.errors import InputError, Place
from tests.app.agents import Agents, answer, well
from tests.app.agents import receipt as said_receipt
from tests.app.site import ACCESS, SMALL, KilledError, Site, fleet
from tests.app.test_load import FakeFiles
from tests.core.plans.test_approving import KEY, MADE_BY_OPENSSH

RULE = ApprovalRule(Place("inventories/c.yaml", 4, 10), 1, "signers")
ALICE = Approval("alice@x", KEY, MADE_BY_OPENSSH)


@dataclass
class Knows:
    """Stands for ssh-keygen: it knows these people by this key."""

    known: tuple[str, ...] = ("alice@x",)
    asked: list[str] = field(default_factory=list)

    def people(self, signature: str, signers: str) -> tuple[tuple[str, ...], str]:
        self.asked.append(signers)
        return self.known, "" if self.known else "No principal matched."

    def why_not(self, signature: str, signers: str, person: str, text: bytes) -> str:
        return ""


def checks(known: tuple[str, ...] = ("alice@x",)) -> Approvals:
    return Approvals(FakeFiles({"signers": "…"}), Knows(known))


def test_approvals_are_journaled_before_anything_else_and_replay(tmp_path: Path) -> None:
    site = Site(SqlJournal(tmp_path))
    end = start_apply(SMALL, ACCESS, site.tools(), (ALICE,))
    first = decode_event(site.journal.events("r1")[0])
    assert first == Approved(1000.0, "alice@x", KEY, MADE_BY_OPENSSH)
    known = replay(site.journal, "r1")
    assert known == replace(end, now=known.now)
    assert known.approved == (ALICE,)


def test_a_resumed_run_is_checked_by_the_signatures_in_its_journal(tmp_path: Path) -> None:
    site = Site(SqlJournal(tmp_path))
    signed: Mapping[str, str] = journaled(start_apply(SMALL, ACCESS, site.tools(), (ALICE,)))
    assert checks().checked(SMALL, (RULE,), signed, {"me"}, "HOW", None) == (ALICE,)
    with pytest.raises(InputError) as raised:
        checks(()).checked(SMALL, (RULE,), signed, {"me"}, "HOW", None)
    found = [str(problem) for problem in raised.value.problems]
    assert found[0].startswith(f"the journal, signature 1: the key {KEY} is not in signers")


def test_the_rules_are_those_of_the_plan_and_of_todays_inventory() -> None:
    mine = replace(RULE, place=Place("playbooks/p.yaml", 1, 1))
    plan = replace(SMALL, approvals=(mine, RULE))
    assert rules_for(plan, fleet()) == (mine, RULE)
    assert rules_for(plan, replace(fleet(), approvals=RULE)) == (mine, RULE)
    assert rules_for(SMALL, replace(fleet(), approvals=RULE)) == (RULE,), "it was asked for since the plan"
    assert rules_for(None, replace(fleet(), approvals=RULE)) == (), "a rollback needs none"


def receipt(counter: int, state: ReceiptState = ReceiptState.CONFIRMED) -> Report:
    return Report("", "status", Outcome.DONE, receipts=(Receipt("r7-n1", "r7", counter, state),))


@pytest.mark.parametrize("state", ReceiptState)
def test_an_approval_is_used_up_when_another_run_changed_a_node_since(tmp_path: Path, state: ReceiptState) -> None:
    """Whatever became of that change: people approved the plan for the nodes as it had read them."""
    journal = SqlJournal(tmp_path)
    name = next(iter(SMALL.nodes))
    check_not_used(SMALL, journal, {name: receipt(SMALL.counter, state), "no-node-of-it": receipt(99)})
    with pytest.raises(
        InputError,
        match=rf"r7 changed {name} since this plan was made.*; its approvals are used up .*\[approval-used\]",
    ):
        check_not_used(SMALL, journal, {name: receipt(SMALL.counter + 1, state)})


def test_an_approval_carries_one_run(tmp_path: Path) -> None:
    """Also where no node tells of that run any more: what was rolled back for harm is not applied again by its approval."""
    site = Site(SqlJournal(tmp_path))
    check_not_used(SMALL, site.journal, {})
    start_apply(SMALL, ACCESS, site.tools(), (ALICE,))
    with pytest.raises(InputError, match=r"run r1 has applied this plan already") as raised:
        check_not_used(SMALL, site.journal, {})
    again = f"rollout plan --cluster {SMALL.cluster} --playbook {SMALL.playbook}"
    assert raised.value.problems[0].hint.endswith(f"and have it approved: `{again}`"), "r1 is done: it is not resumed"
    check_not_used(replace(SMALL, limit="n1"), site.journal, {})


UNREAD = Report("", "status", Outcome.UNREACHED, "connect-timeout", "it did not answer")


def test_a_node_that_cannot_be_read_is_asked_of_the_journal(tmp_path: Path) -> None:
    """Its receipts may name a newer run. Only what this journal knows of it can be said now."""
    site = Site(SqlJournal(tmp_path))
    other = replace(
        SMALL,
        limit="n1,n2",
        nodes={name: SMALL.nodes[name] for name in ("n1", "n2")},
        waves=(Wave("all", ("n1", "n2"), 1.0),),
    )
    start_apply(other, ACCESS, site.tools())
    check_not_used(SMALL, site.journal, {"n3": UNREAD, "n1": receipt(SMALL.counter)})
    with pytest.raises(InputError, match=r"r1 changed n\[1-2\] since this plan was made.*\[approval-used\]"):
        check_not_used(SMALL, site.journal, dict.fromkeys(SMALL.nodes, UNREAD))
    check_not_used(replace(SMALL, counter=SMALL.counter + 9), site.journal, dict.fromkeys(SMALL.nodes, UNREAD))


NEWER = said_receipt("r9-1", "reverted").replace("counter=1", f"counter={SMALL.counter + 1}")


def test_a_node_that_is_read_first_by_its_claim_is_refused_if_another_run_changed_it_since(tmp_path: Path) -> None:
    """It did not answer before. The run leaves it as it is, and ends its claim."""
    said = answer("status", f"token {SMALL.counter + 1} r9 ended", *well(), NEWER)
    site = Site(SqlJournal(tmp_path), Agents({("n2", "status"): said}))
    end = start_apply(SMALL, ACCESS, site.tools(), (ALICE,))
    found = {name: (record.state, record.reference) for name, record in end.nodes.items()}
    assert found["n2"] == (NodeState.REFUSED, "approval-used")
    assert [found[name][0] for name in ("n1", "n3")] == [NodeState.CONFIRMED] * 2
    assert site.nodes.verbs("n2")[-1] == "cleanup"
    assert "apply" not in site.nodes.verbs("n2")


def test_without_approvals_a_newer_run_is_no_reason_to_refuse_a_node(tmp_path: Path) -> None:
    said = answer("status", f"token {SMALL.counter + 1} r9 ended", *well(), NEWER)
    site = Site(SqlJournal(tmp_path), Agents({("n2", "status"): said}))
    assert start_apply(SMALL, ACCESS, site.tools()).nodes["n2"].reference != "approval-used"


def test_a_resumed_run_refuses_such_a_node_too(tmp_path: Path) -> None:
    site = Site(SqlJournal(tmp_path), dies_at=("n1", Verb.APPLY))
    with pytest.raises(KilledError):
        start_apply(SMALL, ACCESS, site.tools(), (ALICE,))
    site.dies_at = None
    site.nodes.says[("n2", "status")] = answer("status", f"token {SMALL.counter + 1} r9 ended", *well(), NEWER)
    end = resume(resumable(site.journal, "r1"), ACCESS, site.tools())
    assert (end.nodes["n2"].state, end.nodes["n2"].reference) == (NodeState.REFUSED, "approval-used")
