"""Playbooks by name, with their templates. ``load`` is apart: a command that only reaches nodes reads no playbook."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

from rollout.app.load import PLAYBOOK_FOLDER, check_name, path_of
from rollout.app.ports import Files
from rollout.core.model.playbook import Policy
from rollout.core.reading.playbook_file import TEMPLATE_FOLDER, load_playbook
from rollout.core.reading.playbook_schema import WrittenTemplates

TEMPLATE_SUFFIX = ".j2"


def load_policy(files: Files, name: str) -> Policy:
    """A playbook with its templates. Raises ``UsageError`` for an unknown name, ``InputError`` for a wrong file."""
    path = path_of(files, PLAYBOOK_FOLDER, name, "playbook")
    policy = load_playbook(files.read(path), path, load_templates(files))
    check_name("name", policy.name, name, path)
    return policy


def load_templates(files: Files) -> dict[str, str]:
    """The text of every template that a playbook can name. A project's own wins over the shipped one of its name."""
    return {**shipped_templates(), **own_templates(files)}


@cache
def shipped_templates() -> Mapping[str, str]:
    """The text of each template of the package, by its name: those that a playbook uses by default."""
    folder = resources.files("rollout").joinpath("templates")
    names: tuple[str, ...] = tuple(WrittenTemplates.model_validate({}).model_dump().values())
    return {name: folder.joinpath(name).read_text(encoding="utf-8") for name in names}


def own_templates(files: Files) -> dict[str, str]:
    """The text of the project's own templates, by name."""
    names = files.list(TEMPLATE_FOLDER, TEMPLATE_SUFFIX)
    return {name: files.read(f"{TEMPLATE_FOLDER}/{name}") for name in names}
