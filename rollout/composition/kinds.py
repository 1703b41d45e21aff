"""Makes the kinds of gates and of conditions known to all that reads plans, playbooks and inventories. Each entry point calls ``install`` first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollout.core.model import conditions, gate_kinds
from rollout.core.model.conditions import ConditionKinds
from rollout.core.model.gate_kinds import GateKinds
from rollout.features.table import CONDITIONS, written_conditions
from rollout.gates import table

if TYPE_CHECKING:
    from rollout.app.ports import StartTimes, Zones
    from rollout.core.model.plan import Plan


def install() -> None:
    gate_kinds.know(GateKinds(table.QUERIES, table.DEFAULT_GATES, table.ALWAYS_WRITTEN, _written, table.API_GATES))
    conditions.know(ConditionKinds(CONDITIONS, written_conditions))


def start_times(zones: Zones) -> StartTimes:
    """What evaluates the timed conditions of plans."""
    from rollout.features.change_windows.asking import WindowTimes  # noqa: PLC0415 - of calls that plan or change

    return WindowTimes(zones)


def completed(plan: Plan) -> Plan:
    """A plan with what its conditions add to it."""
    from rollout.features.export.words import completed as with_texts  # noqa: PLC0415 - of calls that plan

    return with_texts(plan)


def _written() -> type[Any]:
    from rollout.gates.written import WrittenGates  # noqa: PLC0415 - pydantic takes 0.1 s to import, and most calls do not need it

    return WrittenGates
