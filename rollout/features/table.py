"""The table of features: what is not found by itself. Commands are, see ``rollout/cli/registry.py``."""

# ruff: noqa: PLC0415 - pydantic takes 0.1 s to import, and most calls do not need it

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rollout.core.model.conditions import Condition
from rollout.features.approvals.rules import ApprovalRule
from rollout.features.change_windows.rules import ChangeCalendar
from rollout.features.export.rules.plan_texts import NewNodesRule
from rollout.features.own.rules import NewcomerRule

if TYPE_CHECKING:
    from rollout.core.reading.condition_keys import WrittenCondition

CONDITIONS: tuple[type[Condition], ...] = (ChangeCalendar, ApprovalRule, NewcomerRule, NewNodesRule)
"""What a playbook or an inventory may demand of plans, in the order in which a plan shows it."""


def written_conditions() -> Mapping[str, type[WrittenCondition]]:
    """Key in a playbook and in an inventory → what reads it."""
    from rollout.features.approvals.written import WrittenApprovals
    from rollout.features.change_windows.written import WrittenCalendar
    from rollout.features.export.written import WrittenNewNodes
    from rollout.features.own.written import WrittenNewcomers

    return {
        "changeWindows": WrittenCalendar, "approvals": WrittenApprovals, "newcomers": WrittenNewcomers,
        "newNodes": WrittenNewNodes,
    }  # fmt: skip


def schemas() -> Mapping[str, Callable[[], dict[str, Any]]]:
    """The files of people: the kernel's, and those of features."""
    from rollout.core.reading.schemas import file_schema, inventory_schema, playbook_schema
    from rollout.features.sequence.written import SequenceFile

    return {
        "inventory": inventory_schema,
        "playbook": playbook_schema,
        "sequence": lambda: file_schema(SequenceFile, "A sequence of rollout"),
    }
