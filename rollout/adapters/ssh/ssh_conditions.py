"""``Host`` and ``Match``: the hosts that the lines below them apply to.

Conditions that run a program, depend on the local network or differ between OpenSSH versions are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rollout.adapters.ssh.patterns import is_literal, listed


class NotSupportedError(ValueError):
    """ssh_config contains something that rollout does not support."""


@dataclass(frozen=True, slots=True)
class MatchContext:
    """The inputs of a condition. ``named`` is for ``Host``; ``host`` and ``user`` are the values so far."""

    named: str
    original: str
    host: str
    user: str
    local_user: str
    last: bool


class SshCondition(Protocol):
    @property
    def names(self) -> frozenset[str] | None:
        """The literal names that it can match; ``None`` when it must be evaluated."""

    @property
    def always(self) -> bool: ...

    @property
    def asks_again(self) -> bool:
        """It causes a second pass over the whole file, with the name from ``HostName``."""

    def holds(self, asked: MatchContext) -> bool: ...


@dataclass(frozen=True, slots=True)
class HostLine:
    patterns: tuple[str, ...]

    @property
    def names(self) -> frozenset[str] | None:
        return frozenset(self.patterns) if all(map(is_literal, self.patterns)) else None

    @property
    def always(self) -> bool:
        return self.patterns == ("*",)

    @property
    def asks_again(self) -> bool:
        return False

    def holds(self, asked: MatchContext) -> bool:
        return listed(asked.named, self.patterns)


@dataclass(frozen=True, slots=True)
class _Criterion:
    name: str
    negated: bool
    argument: str

    def holds(self, asked: MatchContext) -> bool:
        return CRITERIA[self.name](asked, self.argument) is not self.negated


@dataclass(frozen=True, slots=True)
class MatchLine:
    criteria: tuple[_Criterion, ...]

    @property
    def names(self) -> frozenset[str] | None:
        return None

    @property
    def always(self) -> bool:
        return self.criteria == (_Criterion("all", negated=False, argument=""),)

    @property
    def asks_again(self) -> bool:
        return any(criterion.name == "final" for criterion in self.criteria)

    def holds(self, asked: MatchContext) -> bool:
        return all(criterion.holds(asked) for criterion in self.criteria)


# host names in lower case; `Host` compares them as written
CRITERIA: dict[str, Callable[[MatchContext, str], bool]] = {
    "all": lambda _asked, _: True,
    "canonical": lambda asked, _: asked.last,
    "final": lambda asked, _: asked.last,
    "host": lambda asked, names: listed(asked.host.lower(), names.lower().split(",")),
    "originalhost": lambda asked, names: listed(asked.original.lower(), names.lower().split(",")),
    "user": lambda asked, names: listed(asked.user, names.split(",")),
    "localuser": lambda asked, names: listed(asked.local_user, names.split(",")),
}
BARE = frozenset({"all", "canonical", "final"})
NOT_EVALUATED = {
    "exec": "Match exec is not supported: no program that ssh_config names is ever run",
    "localnetwork": "Match localnetwork is not supported: settings would depend on the network of this machine",
    "tagged": "Match tagged is not supported",
    "version": "Match version is not supported: this is not OpenSSH",
    "command": "Match command is not supported",
    "sessiontype": "Match sessiontype is not supported",
}
# what every OpenSSH splits alike: later versions know more quotes, earlier ones split at every "="
_END = re.compile(r"[ \t]*(?:#.*)?$")
_NAME = re.compile(r"[ \t]*(!?[A-Za-z-]+)(?:=(?=[^\s=])|(?=[ \t]|$))")
_ARGUMENT = re.compile(r'[ \t]*(?:([^\s"\'\\=#][^\s"\'\\=]*)|"([^"\\#]+)")(?=[ \t]|$)')


def host_line(words: tuple[str, ...]) -> HostLine:
    if not all(words):
        raise ValueError("an empty pattern")
    return HostLine(words)


def match_line(rest: str) -> MatchLine:
    """Raises ``ValueError`` for an invalid condition."""
    criteria: list[_Criterion] = []
    at = 0
    while not _END.match(rest, at):
        criterion, at = _criterion(rest, at)
        if criteria and criteria[-1].name == "all":
            raise ValueError("all cannot be combined with other conditions")
        criteria.append(criterion)
    if not criteria:
        raise ValueError("the condition is missing")
    if criteria[-1].name == "all" and len(criteria) > 2:
        raise ValueError("all cannot be combined with other conditions")
    return MatchLine(tuple(criteria))


def _criterion(rest: str, at: int) -> tuple[_Criterion, int]:
    match = _NAME.match(rest, at)
    if not match:
        raise NotSupportedError(f"OpenSSH reads this in more than one way: Match {rest}")
    written = match[1]
    name, negated = written.removeprefix("!").lower(), written.startswith("!")
    if name in NOT_EVALUATED:
        raise NotSupportedError(NOT_EVALUATED[name])
    if name not in CRITERIA:
        raise ValueError(f"unknown condition {written}")
    if name == "final" and negated:
        raise NotSupportedError("Match !final is not supported: OpenSSH reads it in more than one way")
    if name in BARE:
        return _Criterion(name, negated, ""), match.end()
    if _END.match(rest, match.end()):
        raise ValueError(f"{written} has no value")
    argument = _ARGUMENT.match(rest, match.end())
    if not argument:
        raise NotSupportedError(f"OpenSSH reads this in more than one way: Match {rest}")
    return _Criterion(name, negated, argument[1] or argument[2]), argument.end()
