"""What a unit's command line becomes: ``Environment=``, ``EnvironmentFile=`` and systemd's expansion of ``$WORDS``."""

from __future__ import annotations

import re
import shlex

from rollout.lab.units import Tree, Unit

_BRACED = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_WORD = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class MissingFileError(Exception):
    """An environment file without the leading ``-`` is not there: the unit fails before anything runs."""


def environment(tree: Tree, unit: Unit) -> dict[str, str]:
    """Every variable the unit's commands see; files are read now, as at each start, and beat ``Environment=``."""
    found: dict[str, str] = {}
    for value in unit.every("Environment"):
        for word in _words(value):
            name, equals, text = word.partition("=")
            if equals:
                found[name] = text
    for value in unit.every("EnvironmentFile"):
        content = tree.read(value.removeprefix("-"))
        if content is not None:
            found.update(parse_file(content.decode("utf-8", "replace")))
        elif not value.startswith("-"):
            raise MissingFileError(value)
    return found


def parse_file(text: str) -> dict[str, str]:
    """An environment file: ``NAME=value`` lines, quotes, comments, a backslash that continues a line."""
    found = {}
    for line in text.replace("\\\n", "").splitlines():
        bare = line.strip()
        name, equals, value = bare.partition("=")
        if bare and bare[0] not in "#;" and equals:
            found[name.strip()] = "".join(_words(value)) if value[:1] in {'"', "'"} else value.strip()
    return found


def argv(command: str, variables: dict[str, str]) -> tuple[str, ...]:
    """An ``ExecStart=`` line as arguments: ``$NAME`` alone is split at spaces, ``${NAME}`` is put in as it is."""
    arguments: list[str] = []
    for word in _words(command.lstrip("-@:+!")):
        alone = _WORD.fullmatch(word)
        if alone:
            arguments.extend(_words(variables.get(alone[1], "")))
        else:
            arguments.append(_BRACED.sub(lambda found: variables.get(found[1], "") if found[1] else "$", word))
    return tuple(arguments)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # systemd's parser is relaxed: an unbalanced quote is a character
        return text.split()
