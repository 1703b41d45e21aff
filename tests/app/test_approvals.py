"""Approvals of a run: they are journaled, replay, and are enough to resume where the files of signatures are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from rollout.adapters.journal import SqlJournal
from rollout.app.approvals import Approvals, journaled, rules_for
from rollout.app.following import replay
from rollout.app.runs import start_apply
from rollout.core.model.approvals import Approval, ApprovalRule
from rollout.core.run.events import Approved
from rollout.core.run.journal_codec import decode_event
from rollout.errors import InputError, Place
from tests.app.site import ACCESS, SMALL, Site, fleet
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
    assert checks().checked(SMALL, (RULE,), signed, {"me"}, "HOW") == (ALICE,)
    with pytest.raises(InputError) as raised:
        checks(()).checked(SMALL, (RULE,), signed, {"me"}, "HOW")
    found = [str(problem) for problem in raised.value.problems]
    assert found[0].startswith(f"the journal, signature 1: the key {KEY} is not in signers")


def test_the_rules_are_those_of_the_plan_and_of_todays_inventory() -> None:
    mine = replace(RULE, place=Place("playbooks/p.yaml", 1, 1))
    plan = replace(SMALL, approvals=(mine, RULE))
    assert rules_for(plan, fleet()) == (mine, RULE)
    assert rules_for(plan, replace(fleet(), approvals=RULE)) == (mine, RULE)
    assert rules_for(SMALL, replace(fleet(), approvals=RULE)) == (RULE,), "it was asked for since the plan"
    assert rules_for(None, replace(fleet(), approvals=RULE)) == (), "a rollback needs none"
