"""Makes the kinds of gates known to all that reads plans and playbooks. Each entry point calls ``install`` first."""

from __future__ import annotations

from typing import Any

from rollout.core.model.gate_kinds import GateKinds, know
from rollout.gates import table


def install() -> None:
    know(GateKinds(table.QUERIES, table.DEFAULT_GATES, table.ALWAYS_WRITTEN, _written))


def _written() -> type[Any]:
    from rollout.gates.written import WrittenGates  # noqa: PLC0415 - pydantic takes 0.1 s to import, and most calls do not need it

    return WrittenGates
