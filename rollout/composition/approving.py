"""The approvals of a plan that is applied, and of a run that is resumed."""

from __future__ import annotations

from pathlib import Path

from rollout.app.apply import again
from rollout.app.call import CallPorts
from rollout.app.following import plan_of
from rollout.composition.operators import own_logins
from rollout.core.model.approvals import Approval
from rollout.core.model.inventory import Inventory
from rollout.core.model.plan import Plan
from rollout.core.run.state import Goal, RunState
from rollout.errors import UsageError
from rollout.features.approvals.asking import Approvals, how_to_approve, journaled, rules_for
from rollout.features.approvals.client.files import signatures_beside
from rollout.features.approvals.client.signatures import SshSignatures


def approvals_of(call: CallPorts, plan: Plan, inventory: Inventory, plan_file: Path | None) -> tuple[Approval, ...]:
    """The approvals beside the plan. ``InputError``: it may not be applied."""
    rules = rules_for(plan, inventory)
    if not rules:
        return ()
    if plan_file is None:
        hint = f"{again(plan)}; then `rollout approve PLAN --key FILE`, then `rollout apply PLAN`"
        raise UsageError("approval-missing", "a plan that needs approvals is applied from its file", hint=hint)
    checks, signed = Approvals(call.files(), SshSignatures()), signatures_beside(plan_file)
    return checks.checked(plan, rules, signed, own_logins(), how_to_approve(plan_file), call.clock.now())


def check_still_approved(call: CallPorts, state: RunState, inventory: Inventory) -> None:
    """The signatures in the journal, by today's rules and signers. The person that applied does not count here either."""
    header = call.past().header(state.order.run)
    plan = plan_of(header) if state.order.goal is Goal.APPLY else None
    rules = rules_for(plan, inventory)
    if plan is not None and rules:
        how = f"correct the file of signers, or `rollout rollback {state.order.run}`"
        applier = header.who.partition("@")[0]
        Approvals(call.files(), SshSignatures()).checked(plan, rules, journaled(state), {applier}, how, None)
