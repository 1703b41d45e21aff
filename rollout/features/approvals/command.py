"""``rollout approve``: a person's signature over a plan, beside its file."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from rollout.app.runs import check_plan
from rollout.cli.options import SessionNeeds, session_options, typed_confirmation, yes_option
from rollout.cli.proposals import say
from rollout.cli.registry import registered
from rollout.composition.plan_files import plan_in
from rollout.composition.wiring import Session
from rollout.core.model.approvals import Approval
from rollout.core.model.plan import Plan
from rollout.core.plans import plan_codec
from rollout.core.plans.apply_readiness import does_lines
from rollout.core.plans.fleet_comparison import change_lines
from rollout.core.text import documents
from rollout.core.text.terminal import LONGEST_PATH, printable
from rollout.errors import UsageError
from rollout.features.approvals.asking import Approvals, rules_for
from rollout.features.approvals.client.files import keep_signature
from rollout.features.approvals.client.signatures import SshSignatures
from rollout.features.approvals.client.waiting import missing_approvals
from rollout.features.approvals.rules import LONGEST, ApprovalRule, Examined, kept, moment, statement


@dataclass(frozen=True, slots=True)
class ApprovalDocument:
    """A signature that was written to ``file``. ``plan`` is the plan's digest, ``missing`` what it still lacks.

    ``not_after``: until when a run may begin with it.
    """

    plan: str
    person: str
    key: str
    file: str
    missing: tuple[str, ...]
    not_after: str


@registered("Approve a plan as a second person, with an SSH signature.", prints=(ApprovalDocument,))
@click.command()
@click.argument("plan_file", type=click.Path(path_type=Path))
@click.option(
    "--key", required=True, metavar="FILE", help="Your private SSH key, or the public key of one that your agent holds."
)
@click.option(
    "--days",
    type=click.IntRange(1, int(LONGEST // 86_400)),
    default=7,
    show_default=True,
    help="Days for which a run may begin with this approval.",
)
@yes_option
@partial(session_options, needs=SessionNeeds.STATE | SessionNeeds.WAY | SessionNeeds.WORKERS | SessionNeeds.API)
def approve(session: Session, plan_file: Path, key: str, days: int, yes: bool) -> int:  # noqa: FBT001 - click's flag
    """Sign PLAN as a second person. The signature is written to PLAN.approvals/. It is valid for one run of this plan.

    Example: `rollout approve rno.plan.json --key ~/.ssh/id_ed25519`
    """
    plan = plan_in(plan_file)
    inventory = session.inventory(plan.cluster)
    changes = check_plan(plan, inventory, str(plan_file), session.jumps(inventory, plan.nodes))
    for line in change_lines(changes):
        say(line)
    rules = rules_for(plan, inventory)
    if not rules:
        raise UsageError(
            "no-approval-needed", f"neither the playbook nor the inventory asks for approvals of {plan_file}"
        )
    approvals = Approvals(session.files(), SshSignatures())
    say("\n".join(does_lines(plan)))
    typed_confirmation(plan.cluster, "you approve this plan", yes=yes)
    not_after = moment(time.time() + days * 86_400)
    text = statement(plan.cluster, plan_codec.digest(plan), not_after)
    file = os.path.expanduser(key)  # noqa: PTH111 - `~` of an unknown user stays as written
    signature = kept(not_after, SshSignatures().sign(file, text))
    approval = _mine(approvals, plan, rules, signature)
    path = keep_signature(plan_file, approval, lambda text: _good(approvals, plan, rules, text) is not None)
    problems = missing_approvals(session.files(), plan, rules, plan_file, ())
    missing = tuple(str(problem) for problem in problems)
    if session.output == "json":
        click.echo(
            documents.page(
                ApprovalDocument(plan_codec.digest(plan), approval.person, approval.key, str(path), missing, not_after)
            )
        )
        return 0
    say(f"approved by {printable(approval.person, 100)} until {not_after}: {printable(str(path), LONGEST_PATH)}")
    others = " for a person that did not sign it" if any(rule.besides_applier for rule in rules) else ""
    say("\n".join(missing) or f"it has every approval{others}: rollout apply {shlex.quote(str(plan_file))}")
    return 0


def _examined(approvals: Approvals, plan: Plan, rules: tuple[ApprovalRule, ...], signature: str) -> list[Examined]:
    return [approvals.examined(rule, plan, "your key", signature, time.time()) for rule in rules]


def _good(approvals: Approvals, plan: Plan, rules: tuple[ApprovalRule, ...], signature: str) -> Approval | None:
    found = _examined(approvals, plan, rules, signature)
    return next((each.approval for each in found if each.approval is not None), None)


def _mine(approvals: Approvals, plan: Plan, rules: tuple[ApprovalRule, ...], signature: str) -> Approval:
    """Refuse a signature that no rule accepts, before it is written."""
    good = _good(approvals, plan, rules, signature)
    if good is None:
        found = _examined(approvals, plan, rules, signature)
        raise UsageError(
            found[0].reference, f"nothing was written: {found[0].message}", hint="use a key of the allowed signers"
        )
    return good
