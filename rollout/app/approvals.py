"""Approvals of a plan: examined against the rules of its playbook and of today's inventory, before anything is touched."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rollout.app.ports import Files, Signatures
from rollout.core.model.approvals import Approval, ApprovalRule, statement
from rollout.core.model.frozen import dataclass
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.plans.approving import Examined, all_good, form_of, names_of, refusals
from rollout.core.run.state import RunState
from rollout.core.text.terminal import printable
from rollout.errors import InputError


def rules_for(plan: Plan | None, inventory: Inventory) -> tuple[ApprovalRule, ...]:
    """The rules of the plan, and of the inventory as it is now. A rollback (no plan) needs no approval."""
    if plan is None:
        return ()
    rules = (*plan.approvals, *((inventory.approvals,) if inventory.approvals else ()))
    return tuple(dict.fromkeys(rules))


@dataclass(frozen=True, slots=True)
class Approvals:
    """Examines signatures. Files of signers are read anew each time: a removed or expired key no longer counts."""

    files: Files
    signatures: Signatures

    def checked(
        self, plan: Plan, rules: Sequence[ApprovalRule], signed: Mapping[str, str], appliers: Collection[str], how: str
    ) -> tuple[Approval, ...]:
        """The good approvals in ``signed`` (file → armoured signature). ``InputError`` with everything that is wrong or
        missing. ``appliers``: login names of the person that applies; ``how``: the hint of each problem.
        """
        text = statement(plan.cluster, plan_codec.digest(plan))
        found = [[self.examined(rule, text, source, said) for source, said in signed.items()] for rule in rules]
        problems = refusals(rules, found, appliers, how)
        if problems:
            raise InputError(problems)
        return all_good(rules, found, appliers)

    def examined(self, rule: ApprovalRule, text: bytes, source: str, armoured: str) -> Examined:
        """One signature over ``text`` in the light of one rule."""
        head = form_of(armoured, source)
        if isinstance(head, Examined):
            return head
        names = names_of(head.key, self.files.read(rule.signers))
        signers = self.files.at(rule.signers)
        people, why = self.signatures.people(armoured, signers)
        known = [person for person in people if not set(person) & set("*?!")]
        mine = [person for person in known if not rule.people or person in rule.people]
        if not mine:
            return self._unknown(rule, source, head.key, known, why)
        why = self.signatures.why_not(armoured, signers, mine[0], text)
        if "incorrect signature" in why:
            return Examined(source, None, "approval-other-plan", f"{printable(mine[0], 80)} signed another plan")
        if why:
            return Examined(source, None, "approval-unknown-signer", f"{printable(mine[0], 80)}: {why}")
        return Examined(source, Approval(mine[0], head.key, armoured), names=(*known, *names))

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


def journaled(state: RunState) -> Mapping[str, str]:
    """The signatures that a run was started with: a run can be resumed where their files are not."""
    return {f"the journal, signature {at}": each.signature for at, each in enumerate(state.approved, 1)}
