"""``approvals`` of a playbook or an inventory: how many other people must sign a plan, who, and by which keys."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from rollout.core.reading.condition_keys import WrittenCondition
from rollout.core.reading.validation import wrong
from rollout.core.text.terminal import printable
from rollout.errors import Place
from rollout.features.approvals.rules import ApprovalRule

_LONGEST = 200


def _person(value: object) -> str:
    """Principals of OpenSSH have no spaces or commas; a pattern is no person."""
    if (
        not isinstance(value, str)
        or not 0 < len(value) <= _LONGEST
        or set(value) & set(' ,"*?!')
        or not value.isprintable()
    ):
        raise wrong("bad-person", f"KEY: `{printable(str(value), 60)}` is not a person of a file of allowed signers")
    return value


def _path(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 1024 or not value.isprintable() or value.startswith("-"):
        raise wrong("bad-path", "KEY must be the path of a file, relative to the project")
    return value


Person = Annotated[str, BeforeValidator(_person), WithJsonSchema({"type": "string", "maxLength": _LONGEST})]
PathText = Annotated[str, BeforeValidator(_path), WithJsonSchema({"type": "string", "maxLength": 1024})]


class WrittenApprovals(WrittenCondition):
    """So many people must approve a plan before it is applied. ``people`` are principals in ``allowedSigners``."""

    placed_at = "count"

    count: Annotated[int, Field(ge=1, le=10)]
    signers: PathText = Field(alias="allowedSigners")
    people: list[Person] = Field(default_factory=list)
    besides_applier: bool = Field(default=True, alias="besidesApplier")

    def condition(self, place: Place) -> ApprovalRule:
        return self.as_value(ApprovalRule, place=place)
