"""``newcomers`` of a playbook or an inventory: what a timer may do for nodes that joined."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from rollout.core.reading.condition_keys import WrittenCondition
from rollout.core.reading.value_types import Duration, between, choice
from rollout.errors import Place
from rollout.features.own.rules import NewcomerRule, NewcomersThen

_WEEK = 7 * 86_400.0
_THEN = tuple(each.value for each in NewcomersThen)


def _then(value: object) -> NewcomersThen:
    return NewcomersThen(choice(value, _THEN))


Then = Annotated[NewcomersThen, BeforeValidator(_then), WithJsonSchema({"enum": [*_THEN]})]


def _either(schema: dict[str, Any]) -> None:
    """A word alone, or the map of it."""
    mapping = dict(schema)
    schema.clear()
    schema |= {"anyOf": [{"enum": [*_THEN]}, mapping]}


ReadyFor = Annotated[Duration, between(0, _WEEK, "between 0s and 168h")]


class WrittenNewcomers(WrittenCondition):
    """What `rollout newcomers` does for nodes that lack an owned setting and that no run has changed, once they are Ready for so long."""

    model_config = ConfigDict(json_schema_extra=_either)
    placed_at = "then"

    then: Then = Field(description="report, plan or apply.")
    ready_for: ReadyFor = Field(300.0, alias="readyFor", description="How long the Node must be Ready; 5m by default.")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        """`newcomers: apply`"""
        return {"then": value} if isinstance(value, str) else value

    def condition(self, place: Place) -> NewcomerRule:
        return NewcomerRule(place, self.then, self.ready_for)
