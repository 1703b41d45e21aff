"""A gate as a plan has it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from rollout.core.model.gates import Gate, GateQuery, GateScope
from rollout.core.plans import plan_codec
from tests.core.presentation.journals import plan_of


def gate(query: GateQuery) -> Gate:
    return Gate(query, GateScope.WAVE, "g", 2.5)


def written(found: Gate) -> Any:
    return json.loads(plan_codec.encode(replace(plan_of(1), gates=(found,))))["gates"][0]


def read(document: Any) -> Gate:
    """The gate in a plan that another program sealed."""
    body = json.loads(plan_codec.encode(plan_of(1)))
    body.pop("digest")
    body["gates"] = [document]
    data = plan_codec._sealed(body)[1]  # noqa: SLF001 - another program's seal
    return plan_codec.decode(data, "p").gates[0]
