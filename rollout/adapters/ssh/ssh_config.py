"""ssh_config as stanzas with an index, so that one of 2,000 hosts is looked up in the few stanzas that may concern it.

paramiko's ``SSHConfig`` gives the stanzas their meaning (patterns, ``Match``, first value wins) but walks the whole file
twice for each host: with a stanza a node, that is 8 million comparisons for 2,000 nodes.
"""

from __future__ import annotations

import glob
import re
import shlex
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from paramiko.config import SSHConfig
from paramiko.ssh_exception import ConfigParseError

from rollout.core.text.terminal import printable
from rollout.errors import InputError, Place, Problem, RemoteError

SETTING = re.compile(r"\s*(\w+)(?:\s*=\s*|\s+)(.+?)\s*$")
DEEPEST = 16
MOST_PROBLEMS = 20
"""Files that include each other are read in every way there is; this many mistakes are enough to say so."""
TOKENS = {"hostname": ["%h"]}  # no others: for "%l" paramiko asks DNS for its own name at each IdentityFile


@dataclass(slots=True)
class _Stanza:
    """``names``: the literal names it is for; ``None`` when only a look at it can tell."""

    names: frozenset[str] | None
    place: Place
    lines: list[str] = field(default_factory=list)


class SshConfig:
    """A parsed ssh_config. ``lookup`` gives the settings of one host, keys in lower case."""

    def __init__(self, stanzas: list[_Stanza]) -> None:
        self._stanzas = stanzas
        self._general = [number for number, stanza in enumerate(stanzas) if stanza.names is None]
        self._named: dict[str, list[int]] = defaultdict(list)
        self._parsed: dict[tuple[int, ...], SSHConfig] = {}
        for number, stanza in enumerate(stanzas):
            for name in stanza.names or ():
                self._named[name].append(number)

    @classmethod
    def read(cls, path: Path | None) -> SshConfig:
        """From a file; ``None`` is the empty configuration. Every mistake found is in the ``InputError``."""
        if path is None:
            return cls([])
        problems: list[Problem] = []
        stanzas = _split(path, problems, depth=0)
        if problems:
            raise InputError(tuple(problems))
        config = cls(stanzas)
        config.check()
        return config

    def check(self) -> None:
        """Every stanza must parse, also those of hosts that are not asked for."""
        problems = []
        for stanza in self._stanzas:
            try:
                SSHConfig.from_text("\n".join(stanza.lines))
            except (ConfigParseError, ValueError) as error:
                problems.append(Problem("ssh-config-invalid", printable(str(error)), stanza.place))
        if problems:
            raise InputError(tuple(problems))

    def lookup(self, host: str) -> dict[str, str | list[str]]:
        numbers = tuple(sorted([*self._general, *self._named.get(host, ())]))
        config = self._parsed.get(numbers)
        if config is None:
            text = "\n".join(line for number in numbers for line in self._stanzas[number].lines)
            config = SSHConfig.from_text(text)
            config.TOKENS_BY_CONFIG_KEY = TOKENS
            if not self._named.get(host):  # shared by all hosts without a stanza of their own
                self._parsed[numbers] = config
        try:
            return dict(config.lookup(host))
        except KeyError as error:  # paramiko asks for our own name each time, and getpwuid() may be out of files
            raise RemoteError("no-user-name", f"this machine does not say who we are: {error.args[0]}") from None


def _split(path: Path, problems: list[Problem], *, depth: int) -> list[_Stanza]:
    if len(problems) >= MOST_PROBLEMS:
        return []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        problems.append(Problem("ssh-config-unreadable", f"cannot read {path}: {error}"))
        return []
    stanzas = [_Stanza(None, Place(str(path), 1, 1), ["Host *"])]
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        setting = None if line.lstrip().startswith("#") else SETTING.match(line)
        key, value = (setting[1].lower(), setting[2]) if setting else ("", "")
        place = Place(str(path), number, 1)
        problem = _not_supported(key, value, inside=inside, depth=depth)
        if problem:
            problems.append(Problem("ssh-config-not-supported", problem, place))
        elif key in ("host", "match"):
            inside = True
            stanzas.append(_Stanza(_literal_names(key, value), place, [line]))
        elif key == "include":
            stanzas += _included(path, value, problems, depth, place)
            stanzas.append(_Stanza(None, place, ["Host *"]))
        else:
            stanzas[-1].lines.append(line)
    return stanzas


def _included(path: Path, value: str, problems: list[Problem], depth: int, place: Place) -> list[_Stanza]:
    stanzas: list[_Stanza] = []
    try:
        patterns = [Path(word).expanduser() for word in shlex.split(value)]
    except (ValueError, RuntimeError) as error:  # a quote that does not close; the home of nobody
        problems.append(Problem("ssh-config-invalid", f"Include: {printable(str(error))}", place))
        return stanzas
    for pattern in patterns:
        for found in sorted(glob.glob(str(pattern if pattern.is_absolute() else path.parent / pattern))):  # noqa: PTH207
            stanzas += _split(Path(found), problems, depth=depth + 1)
    return stanzas


def _not_supported(key: str, value: str, *, inside: bool, depth: int) -> str:
    """What would run a program or mean something else than in OpenSSH is refused for the whole file."""
    if key == "match" and re.search(r"\bexec\b", value):
        return "Match exec is not supported"
    if key == "canonicalizehostname" and value.lower() != "no":
        return "CanonicalizeHostname is not supported"
    if key == "include" and inside:
        return "Include below a Host or Match line is not supported; move it to the top of the file"
    if key == "include" and depth >= DEEPEST:
        return "Include goes too deep"
    return ""


def _literal_names(key: str, value: str) -> frozenset[str] | None:
    try:
        names = shlex.split(value)
    except ValueError:
        return None  # does not parse: ``check`` says so
    if key == "match" or any(set(name) & set("*?!") for name in names):
        return None
    return frozenset(names)
