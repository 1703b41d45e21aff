"""Conditions as written: the keys that the kinds of ``rollout.features.table`` add to a playbook and to an inventory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, create_model

from rollout.core.model.conditions import Condition, known
from rollout.core.reading.validation import Mistakes, Written, locate
from rollout.core.text.yaml_source import Item
from rollout.errors import Place


class WrittenCondition(Written):
    """One condition. ``placed_at``: its key that messages point to."""

    placed_at: ClassVar[str]

    def condition(self, place: Place) -> Condition:
        raise NotImplementedError


class _Keys(Written):
    def conditions(self, root: Item, mistakes: Mistakes) -> Iterator[Condition]:
        """Those that are set in the file with this root."""
        for key in known().written():
            written = getattr(self, key)
            if written is not None:
                yield written.condition(mistakes.place(locate(root, (key, written.placed_at))[0]))


if TYPE_CHECKING:
    WrittenConditions = _Keys
else:
    WrittenConditions = create_model(
        "WrittenConditions",
        __base__=_Keys,
        **{key: (model | None, Field(None)) for key, model in known().written().items()},
    )
