"""Approvals of a plan: examined against the rules of its playbook and of today's inventory, before anything is touched."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from rollout.app.following import acted_on, followed_by, has_acted, headers_of, highest_seen, replay_if_readable
from rollout.app.ports import Files, PastRuns, RunHeader
from rollout.core.model.approvals import USED, Approval
from rollout.core.model.conditions import of_kind
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.model.report import Outcome, Report
from rollout.core.plans import plan_codec
from rollout.core.plans.again import SAME_SETTINGS, plan_again
from rollout.core.plans.receipt_history import newer_run
from rollout.core.run.retries import resume_has_work
from rollout.core.run.state import RunState
from rollout.core.text.nodesets import fold
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Problem
from rollout.features.approvals.rules import (
    ApprovalRule,
    Examined,
    all_good,
    form_of,
    names_of,
    parts_of,
    refusals,
    statement,
    why_not_now,
)


class Signatures(Protocol):
    """SSH signatures for approvals. ``signers``: the path of a file of allowed signers."""

    def people(self, signature: str, signers: str) -> tuple[tuple[str, ...], str]:
        """The principals of a signature's key that are valid now, and what was reported about it."""
        ...

    def why_not(self, signature: str, signers: str, person: str, text: bytes) -> str:
        """``""``: the person signed this text with a valid key."""
        ...


def rules_for(plan: Plan | None, inventory: Inventory) -> tuple[ApprovalRule, ...]:
    """The rules of the plan, and of the inventory as it is now. A rollback (no plan) needs no approval."""
    if plan is None:
        return ()
    return tuple(dict.fromkeys(of_kind((*plan.conditions, *inventory.conditions), ApprovalRule)))


@dataclass(frozen=True, slots=True)
class Approvals:
    """Examines signatures. Files of signers are read anew each time: a removed or expired key no longer counts."""

    files: Files
    signatures: Signatures

    def checked(
        self,
        plan: Plan,
        rules: Sequence[ApprovalRule],
        signed: Mapping[str, str],
        appliers: Collection[str],
        how: str,
        at: float | None,
    ) -> tuple[Approval, ...]:
        """The good approvals in ``signed`` (file → signature as it is kept). ``InputError`` with everything that is wrong or
        missing. ``appliers``: login names of the person that applies; ``how``: the hint of each problem.

        ``at``: when they must be good, in epoch seconds. ``None``: a run began with them, and carries them to its end.
        """
        found = [[self.examined(rule, plan, source, said, at) for source, said in signed.items()] for rule in rules]
        problems = refusals(rules, found, appliers, how)
        if problems:
            raise InputError(problems)
        return all_good(rules, found, appliers)

    def examined(self, rule: ApprovalRule, plan: Plan, source: str, said: str, at: float | None) -> Examined:
        """One signature over a plan in the light of one rule. ``at``: see ``checked``."""
        not_after, armoured = parts_of(said)
        head = form_of(armoured, source)
        if isinstance(head, Examined):
            return head
        reference, late = why_not_now(not_after, at) if at is not None else ("", "")
        if reference:
            return Examined(source, None, reference, late)
        text = statement(plan.cluster, plan_codec.digest(plan), not_after)
        names = names_of(head.key, self.files.read(rule.signers))
        signers = self.files.at(rule.signers)
        people, why = self.signatures.people(armoured, signers)
        known = [person for person in people if not set(person) & set("*?!")]
        mine = [person for person in known if not rule.people or person in rule.people]
        if not mine:
            return self._unknown(rule, source, head.key, known, why)
        why = self.signatures.why_not(armoured, signers, mine[0], text)
        if "incorrect signature" in why:
            return Examined(source, None, "approval-other-plan", f"{printable(mine[0], 80)} signed another plan or end")
        if why:
            return Examined(source, None, "approval-unknown-signer", f"{printable(mine[0], 80)}: {why}")
        return Examined(source, Approval(mine[0], head.key, said), names=(*known, *names, *head.names))

    @staticmethod
    def _unknown(rule: ApprovalRule, source: str, key: str, known: Sequence[str], why: str) -> Examined:
        if "expired" in why or "not yet valid" in why:
            return Examined(
                source, None, "approval-expired", f"the key {key} is not valid now by {rule.signers}: {why}"
            )
        whose = (
            f"{printable(', '.join(known), 200)} is not among the people"
            if known
            else f"the key {key} is not in {rule.signers}"
        )
        return Examined(source, None, "approval-unknown-signer", f"{whose} that may approve ({rule.place})")


def how_to_approve(plan: Path) -> str:
    """The command that helps when an approval is missing."""
    return f"another person: `rollout approve {shlex.quote(str(plan))} --key FILE`"


def journaled(state: RunState) -> Mapping[str, str]:
    """The signatures that a run was started with: a run can be resumed where their files are not."""
    return {f"the journal, signature {at}": each.signature for at, each in enumerate(state.approved, 1)}


MOST_LIARS = 1
"""The receipts of so many nodes of a plan are no evidence alone that another run has changed its nodes."""


def check_not_used(plan: Plan, journal: PastRuns, reports: Mapping[str, Report]) -> None:
    """An approval carries one run with its resumes. ``InputError`` ``approval-used``: a run has followed it, or came after it.

    People approved what the plan does to the nodes that it has read. ``reports``: what the nodes say now. A run that
    changed one of them since has a token above the plan's; a run of this plan may be in the journal only. What a node
    would say that cannot be read is taken from the journal; its claim by the run looks at its receipts (``newer_run``).

    One node alone may report any run: without another node or the journal it ends no plan of more nodes. Its claim refuses it.
    """
    digest = plan_codec.digest(plan)
    same = [each.run for each in journal.runs(plan.cluster) if plan_codec.digest_in(each.plan) == digest]
    used = next((run for run in same if has_acted(journal, run)), None)
    if used is not None:
        said = f"run {used} has applied this plan already"
        raise _used(plan, said, f"`rollout resume {used}`, or " if _may_be_resumed(journal, used) else "")
    of_plan = {name: report for name, report in reports.items() if name in plan.nodes}
    later = {name: run for name, report in of_plan.items() if (run := newer_run(plan, report))}
    unread = {name for name, report in of_plan.items() if report.outcome is not Outcome.DONE}
    uncertain = set(later) if len(later) < min(MOST_LIARS + 1, len(plan.nodes)) else set()
    known = _later_in(journal, plan, unread | uncertain)
    later = {**{name: run for name, run in later.items() if name not in uncertain}, **known}
    if later:
        runs = ", ".join(sorted(set(later.values()))[:3])
        said = f"{printable(runs, 200)} changed {printable(fold(later), 300)} since this plan was made"
        raise _used(plan, said, "")


def _may_be_resumed(journal: PastRuns, run: str) -> bool:
    state = replay_if_readable(journal, run)
    return state is not None and resume_has_work(state) and not followed_by(journal, run)


def _later_in(journal: PastRuns, plan: Plan, names: Collection[str]) -> Mapping[str, str]:
    """Node → the newest run that changed it since the plan was made, by the journal."""
    found: dict[str, str] = {}
    for header in headers_of(journal, plan.cluster) if names else ():
        if _is_later(journal, header, plan):
            found = {**dict.fromkeys(set(acted_on(journal, header.run)) & set(names), header.run), **found}
    return found


def _is_later(journal: PastRuns, header: RunHeader, plan: Plan) -> bool:
    """Whether a run, or a resume of it, has taken a token above the plan's. What it saw on nodes is what they told it."""
    if header.counter > plan.counter or highest_seen(journal, header.run) <= plan.counter:
        return header.counter > plan.counter
    state = replay_if_readable(journal, header.run)
    return state is None or state.counter > plan.counter


def _used(plan: Plan, said: str, hint: str) -> InputError:
    again = plan_again(plan.cluster, plan.limit, plan.playbook)
    hint = f"{hint}plan again, {SAME_SETTINGS}, and have it approved: `{again}`"
    return InputError((Problem(USED, f"nothing was touched: {said}; its approvals are used up", hint=hint),))
