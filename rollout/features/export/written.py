"""``newNodes`` of a playbook or an inventory: for which tools that make nodes a plan has texts."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from rollout.core.reading.condition_keys import WrittenCondition
from rollout.core.reading.validation import wrong
from rollout.core.reading.value_types import choice
from rollout.errors import Place
from rollout.features.export.rules.plan_texts import FORMAT_NAMES, NewNodesRule

_LONGEST = 1024


def _format(value: object) -> str:
    return choice(value, FORMAT_NAMES)


def _path(value: object) -> str:
    if not isinstance(value, str) or not 1 < len(value) <= _LONGEST or not value.isprintable() or value[0] != "/":
        raise wrong("bad-path", "KEY must be the absolute path of a file on new nodes")
    return value


Format = Annotated[str, BeforeValidator(_format), WithJsonSchema({"enum": [*FORMAT_NAMES]})]
DropInPath = Annotated[str, BeforeValidator(_path), WithJsonSchema({"type": "string", "maxLength": _LONGEST})]


class WrittenNewNodes(WrittenCondition):
    """A plan has the settings as text for the tools that make new nodes, under its digest."""

    placed_at = "formats"

    formats: Annotated[list[Format], Field(min_length=1, max_length=len(FORMAT_NAMES))] = Field(
        description="As in `rollout export new-nodes FORMAT`."
    )
    path: DropInPath = Field("", description="The drop-in on a new node (butane, cloud-init, ignition).")

    def condition(self, place: Place) -> NewNodesRule:
        return NewNodesRule(place, tuple(dict.fromkeys(self.formats)), self.path)
