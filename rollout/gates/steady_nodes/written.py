"""How a playbook writes that its nodes must stay Ready, to give it another ``name`` or ``timeout``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rollout.core.reading.gate_keys import GateKeys
from rollout.gates.steady_nodes.query import SteadyQuery


class SteadyKeys(GateKeys):
    nodes_steady: Literal[True] | None = Field(None, alias="nodesSteady")

    def query(self, url: str) -> SteadyQuery:  # noqa: ARG002 - it has no server of its own
        return SteadyQuery()
