"""What a person does with a plan file: what its approval still needs, and the command that applies it."""

from __future__ import annotations

import shlex
from pathlib import Path

from rollout.cli.proposals import say
from rollout.composition.wiring import Session
from rollout.core.model.conditions import of_kind
from rollout.core.model.plan import Plan
from rollout.core.text.terminal import printable
from rollout.features.approvals.rules import ApprovalRule


def say_next_steps(session: Session, made: Plan, path: Path) -> None:
    """For a plan that changes something. It says first what ``apply`` would refuse the plan for."""
    file = shlex.quote(str(path))
    needs = _lacks(session, made, path)
    for line in needs:
        say(f"it still needs: {line}")
    if needs:
        say(f"another person approves it: rollout approve {file} --key FILE")
    say(f"{'then ' if needs else ''}apply it: rollout apply {file}")


def _lacks(session: Session, made: Plan, path: Path) -> tuple[str, ...]:
    """What ``apply`` would refuse the plan for, if this person applied it now."""
    rules = of_kind(made.conditions, ApprovalRule)
    if not rules:
        return ()
    from rollout.features.approvals.client.waiting import missing_approvals  # noqa: PLC0415 - only for a plan that needs approvals

    missing = missing_approvals(session.files(), made, rules, path, session.logins)
    return tuple(printable(problem.message, 400) for problem in missing)
