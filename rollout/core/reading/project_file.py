"""``rollout.toml``: what a project sets for every command. Its folder is the project.

``PROJECT_KEYS`` is the only list of these keys: the options of commands, the variables and ``rollout show config`` are made of it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import chain

from rollout.core.model.frozen import dataclass
from rollout.core.text.suggest import did_you_mean
from rollout.core.text.terminal import printable
from rollout.errors import InputError, Place, Problem

PROJECT_FILE = "rollout.toml"
_FORM = {
    "Invalid value": 'a text is in quotes: key = "text"',
    "Invalid statement": 'a line is key = "text"',
    "Cannot overwrite a value": "each key is set once",
}
"""What tomllib leaves out."""
_PLACE = re.compile(r"\(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class ProjectKey:
    """One key of ``rollout.toml``, with the option and the variable that win over it.

    A path in the file is relative to the file's folder; in the option and the variable, to the current folder.
    """

    name: str
    option: str
    variable: str
    meaning: str
    default: str = ""
    is_path: bool = False
    choices: tuple[str, ...] = ()


PROJECT_KEYS: Mapping[str, ProjectKey] = {
    key.name: key
    for key in (
        ProjectKey("cluster", "--cluster", "ROLLOUT_CLUSTER", "The cluster."),
        ProjectKey("state", "--state", "ROLLOUT_STATE", "Folder of the journal.", ".rollout", is_path=True),
        ProjectKey(
            "journal",
            "--journal",
            "ROLLOUT_JOURNAL",
            "Shared PostgreSQL journal to use instead of a file: postgresql://user@host/database.",
        ),
        ProjectKey(
            "ssh_config",
            "--ssh-config",
            "ROLLOUT_SSH_CONFIG",
            "SSH configuration to use instead of ~/.ssh/config.",
            is_path=True,
        ),
        ProjectKey(
            "engine",
            "--engine",
            "ROLLOUT_ENGINE",
            "How nodes are reached: by this process, or by the workers of regions on Dask.",
            "embedded",
            choices=("embedded", "dask"),
        ),
        ProjectKey(
            "scheduler",
            "--scheduler",
            "ROLLOUT_SCHEDULER",
            "With --engine dask: the scheduler, such as tls://host:8786.",
        ),
        ProjectKey(
            "certificates",
            "--certificates",
            "ROLLOUT_CERTIFICATES",
            "With --engine dask: folder with ca.pem, cert.pem and key.pem of the controller.",
            is_path=True,
        ),
        ProjectKey(
            "kubeconfig",
            "--kubeconfig",
            "ROLLOUT_KUBECONFIG",
            "Kubeconfig of the API server; its current context is used. Overrides the inventory's kubeconfig, if any.",
            is_path=True,
        ),
        ProjectKey("output", "-o", "ROLLOUT_OUTPUT", "Output format.", "text", choices=("text", "json")),
    )
}


@dataclass(frozen=True, slots=True)
class ProjectValue:
    """A value of ``rollout.toml``, and where it is."""

    value: str
    place: Place


def read_project(text: str, file: str) -> Mapping[str, ProjectValue]:
    """The values by key. Raises ``InputError`` with every mistake, each with its place."""
    values = toml_values(text, file)
    problems = tuple(problem for key, (value, place) in values.items() if (problem := _problem(key, value, place)))
    if problems:
        raise InputError(problems)
    return {key: ProjectValue(str(value), place) for key, (value, place) in values.items()}


def toml_values(text: str, file: str) -> Mapping[str, tuple[object, Place]]:
    """The values of the first level, each with the place of its key. Raises ``InputError`` for a text that is not TOML."""
    text = text.removeprefix("\ufeff")  # as Windows writes it
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        at = _PLACE.search(message)
        lines = text.split("\n")
        line, column = (int(at[1]), int(at[2])) if at and at[1] else (len(lines), len(lines[-1]) + 1)
        said = printable(_PLACE.sub("", message).strip(), 200)
        raise InputError((Problem("not-toml", said, Place(file, line, column), _FORM.get(said, "")),)) from None
    except RecursionError:
        raise InputError((Problem("not-toml", "it is nested too deeply", Place(file, 1, 1)),)) from None
    places: dict[str, Place] = {}
    for key, line, column in _places(text):
        places.setdefault(key, Place(file, line, column))
    return {key: (value, places.get(key, Place(file, 1, 1))) for key, value in written.items()}


def _problem(key: str, value: object, place: Place) -> Problem | None:
    known = PROJECT_KEYS.get(key)
    if known is None:
        hint = did_you_mean(key, PROJECT_KEYS) or f"the keys are {', '.join(PROJECT_KEYS)}"
        return Problem("unknown-key", f"unknown key `{printable(key, 60)}`", place, hint)
    if not isinstance(value, str):
        return Problem("wrong-type", f"`{key}` must be a text in quotes", place)
    if known.choices and value not in known.choices:
        return Problem("bad-value", f"`{key}` must be one of {', '.join(known.choices)}", place)
    if not value or printable(value, len(value) + 1) != value:
        return Problem("bad-value", f"`{key}` must be a text of printable characters, and not empty", place)
    return None


_KEY = re.compile(r"([ \t]*+)(\[{0,2}+)[ \t]*+([A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')")
"""The beginning of a statement: its indent, the brackets of a table, and the first part of its key as it is written."""
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"{3,5}|\Z)|"(?:[^"\\\n]|\\.)*+"?'
    r"|'''.*?(?:'{3,5}|\Z)|'[^'\n]*+'?"
    r"|#[^\n]*|[\[{]|[\]}]|\n",
    re.DOTALL,
)
"""What decides whether a new line begins a statement. Strings and comments are one token each, also without an end."""


def _places(text: str) -> Iterator[tuple[str, int, int]]:
    """Line and column of each key of the first level, in a text that is TOML; a key may have several, and its first one counts."""
    depth, line, in_table = 0, 1, False
    for start, token in chain([(0, "")], ((match.end(), match[0]) for match in _TOKEN.finditer(text))):
        line += token.count("\n")
        if token in {"[", "{"}:
            depth += 1
        elif token in {"]", "}"}:
            depth -= 1
        elif token in {"", "\n"} and not depth and (match := _KEY.match(text, start)):
            in_table = in_table or bool(match[2])
            if match[2] or not in_table:
                (key,) = tomllib.loads(f"{match[3]} = 0")
                yield key, line, len(match[1]) + 1
