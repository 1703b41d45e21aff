"""The user's own configuration: what a person allows on their machine. A project, which others write, cannot set it."""

from __future__ import annotations

from collections.abc import Mapping

from rollout.core.model.frozen import dataclass
from rollout.core.reading.project_file import toml_values
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Place, Problem

USER_FILE = "~/.config/rollout/config.toml"
PROXY_COMMANDS = "proxyCommands"
MOST_LINES = 10_000
"""``gcloud compute config-ssh`` writes one for each node."""
LONGEST = 4096


@dataclass(frozen=True, slots=True)
class UserSettings:
    """``proxy_commands``: lines of ``ProxyCommand`` that may be run, each with its place."""

    proxy_commands: tuple[tuple[str, Place], ...] = ()


def read_user_settings(text: str, file: str) -> UserSettings:
    """Raises ``InputError`` with every mistake, each with its place."""
    values = toml_values(text, file)
    problems = tuple(problem for key, (value, place) in values.items() if (problem := _problem(key, value, place)))
    if problems:
        raise InputError(problems)
    return UserSettings(_lines(values))


def _lines(values: Mapping[str, tuple[object, Place]]) -> tuple[tuple[str, Place], ...]:
    lines, place = values.get(PROXY_COMMANDS, ((), Place("", 1, 1)))
    return tuple((str(line), place) for line in lines) if isinstance(lines, (list, tuple)) else ()


def _problem(key: str, value: object, place: Place) -> Problem | None:
    if key != PROXY_COMMANDS:
        hint = did_you_mean(key, (PROXY_COMMANDS,)) or f"the only key is {PROXY_COMMANDS}"
        return Problem("unknown-key", f"unknown key `{printable(key, 60)}`", place, hint)
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        return Problem("wrong-type", f"`{key}` must be a list of texts in quotes", place)
    if len(value) > MOST_LINES or any(len(line) > LONGEST for line in value):
        return Problem("bad-value", f"`{key}` may have {MOST_LINES} lines of {LONGEST} characters", place)
    return None
