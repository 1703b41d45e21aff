"""The templates that rollout ships: a project without a template of the same name uses them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

from rollout.core.reading.playbook_schema import WrittenTemplates


@cache
def shipped_templates() -> Mapping[str, str]:
    """The text of each template that a playbook uses by default, by its name."""
    folder = resources.files("rollout").joinpath("templates")
    names: tuple[str, ...] = tuple(WrittenTemplates.model_validate({}).model_dump().values())
    return {name: folder.joinpath(name).read_text(encoding="utf-8") for name in names}
