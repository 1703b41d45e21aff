"""Approvals of a run: they are journaled, replay, and are enough to resume where the files of signatures are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout.adapters.journal import SqlJournal
from rollout.app.following import replay
from rollout.app.reading import read_receipts
from rollout.app.runs import resumable, resume, start_apply
from rollout.core.model.approvals import Approval
from rollout.core.model.plan import Wave
from rollout.core.model.report import Outcome, Report
from rollout.core.model.snapshot import Receipt, ReceiptState
from rollout.core.plans import plan_codec
from rollout.core.run.events import Approved
from rollout.core.run.journal_codec import decode_event
from rollout.core.run.state import NodeState, Verb
from rollout.errors import InputError, Place
from rollout.features.approvals.asking import Approvals, check_not_used, journaled, rules_for
from rollout.features.approvals.client.waiting import NO_RULE
from rollout.features.approvals.rules import ApprovalRule
from tests.app.agents import Agents, answer, well
from tests.app.agents import receipt as said_receipt
from tests.app.site import ACCESS, SMALL, KilledError, Site, fleet
from tests.app.test_load import FakeFiles
from tests.features.approvals.test_rules import KEY, MADE_BY_OPENSSH

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
    plan = replace(SMALL, conditions=(mine, RULE))
    assert rules_for(plan, fleet()) == (mine, RULE)
    assert rules_for(plan, replace(fleet(), conditions=(RULE,))) == (mine, RULE)
    assert rules_for(SMALL, replace(fleet(), conditions=(RULE,))) == (RULE,), "it was asked for since the plan"
    assert rules_for(None, replace(fleet(), conditions=(RULE,))) == (), "a rollback needs none"


def receipt(counter: int, state: ReceiptState = ReceiptState.CONFIRMED) -> Report:
    return Report("", "status", Outcome.DONE, receipts=(Receipt("r7-n1", "r7", counter, state),))


@pytest.mark.parametrize("state", ReceiptState)
def test_an_approval_is_used_up_when_another_run_changed_a_node_since(tmp_path: Path, state: ReceiptState) -> None:
    """Whatever became of that change: people approved the plan for the nodes as it had read them."""
    journal = SqlJournal(tmp_path)
    before, after = receipt(SMALL.counter, state), receipt(SMALL.counter + 1, state)
    check_not_used(SMALL, journal, {"n1": before, "n2": before, "no-node-of-it": receipt(99), "nor-this": receipt(99)})
    with pytest.raises(
        InputError,
        match=r"r7 changed n\[1-2\] since this plan was made.*; its approvals are used up .*\[approval-used\]",
    ):
        check_not_used(SMALL, journal, {"n1": after, "n2": after, "n3": before})
    alone = replace(SMALL, nodes={"n1": SMALL.nodes["n1"]})
    with pytest.raises(InputError, match=r"r7 changed n1 since this plan was made"):
        check_not_used(alone, journal, {"n1": after})


LIES = st.one_of(st.integers(0, 10**15), st.sampled_from([SMALL.counter + 1, 10**6, 10**14, 10**15 - 1]))


@given(
    lies=st.lists(st.tuples(LIES, st.sampled_from(sorted(ReceiptState))), max_size=8),
    name=st.sampled_from(sorted(SMALL.nodes)),
)
def test_what_one_node_alone_reports_uses_up_no_approval(lies: list[tuple[int, ReceiptState]], name: str) -> None:
    receipts = tuple(Receipt(f"r{at}-1", f"r{at}", counter, state) for at, (counter, state) in enumerate(lies))
    honest = dict.fromkeys(SMALL.nodes, receipt(SMALL.counter))
    with TemporaryDirectory() as folder:
        check_not_used(SMALL, SqlJournal(Path(folder)), {**honest, name: replace(honest[name], receipts=receipts)})


def test_one_node_that_the_journal_bears_out_uses_up_the_approval(tmp_path: Path) -> None:
    site = Site(SqlJournal(tmp_path))
    other = replace(SMALL, limit="n1", nodes={"n1": SMALL.nodes["n1"]}, waves=(Wave("all", ("n1",), 1.0),))
    start_apply(other, ACCESS, site.tools())
    honest = dict.fromkeys(SMALL.nodes, receipt(SMALL.counter))
    with pytest.raises(InputError, match=r"r1 changed n1 since this plan was made"):
        check_not_used(SMALL, site.journal, {**honest, "n1": receipt(SMALL.counter + 1)})


def test_a_token_that_an_earlier_run_only_saw_on_a_node_makes_it_no_later_run(tmp_path: Path) -> None:
    """Of nodes that do not answer the journal is asked: one of them may have told that run of any token."""
    lie = answer("cleanup", f"token {SMALL.counter + 500} r9 ended", *well())
    site = Site(SqlJournal(tmp_path), Agents({("n2", "cleanup"): lie}))
    other = replace(SMALL, limit="all-of-it")
    end = start_apply(other, ACCESS, site.tools())
    assert end.highest == SMALL.counter + 500
    later = replace(SMALL, counter=end.counter)
    check_not_used(later, site.journal, dict.fromkeys(SMALL.nodes, UNREAD))


def test_one_node_with_a_high_counter_is_refused_by_name_and_the_others_are_changed(tmp_path: Path) -> None:
    lie = said_receipt("r9-1", "confirmed").replace("counter=1", "counter=90000000000000")
    said = answer("status", f"token {SMALL.counter} r9 ended", *well(), lie)
    site = Site(SqlJournal(tmp_path), Agents({("n2", "status"): said}))
    reports = read_receipts(ACCESS, site.nodes)
    check_not_used(SMALL, site.journal, reports)
    end = start_apply(SMALL, ACCESS, site.tools(), (ALICE,))
    assert (end.nodes["n2"].state, end.nodes["n2"].reference) == (NodeState.REFUSED, "approval-used")
    assert [end.nodes[name].state for name in ("n1", "n3")] == [NodeState.CONFIRMED] * 2


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


def test_one_line_of_its_file_shows_that_a_plan_needs_no_approval() -> None:
    assert NO_RULE in plan_codec.encode(SMALL)
    assert NO_RULE not in plan_codec.encode(replace(SMALL, conditions=(RULE,)))
