"""A kubelet's command line, as pflag reads it: all of it or nothing, since one mistake is fatal.

Words that are no flags are fatal later. How words become flags is in ``pflag``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rollout.kubelet import fields
from rollout.kubelet.configuration.flag_values import setter
from rollout.kubelet.configuration.go_values import GoValueError, quoted
from rollout.kubelet.configuration.pflag import Malformed, Stray, Token, tokens

_SHORT = {"--v": "-v", "--help": "-h"}


class FlagError(ValueError):
    """The kubelet does not start; the text is pflag's."""

    def __init__(self, reference: str, text: str) -> None:
        super().__init__(text)
        self.reference = reference
        self.text = text


@dataclass(slots=True)
class Flags:
    """What the flags say: ``values`` by flag name, ``given`` the words of the last of each name, ``words`` that are none."""

    values: dict[str, Any] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        """A text flag's value; ``""`` when it is not given."""
        value = self.values.get(name, "")
        return value if isinstance(value, str) else ""


def parse(words: Sequence[str], minor: int) -> Flags:
    """The whole command line without the program, or ``FlagError``."""
    found = Flags()
    for token in tokens(words):
        match token:
            case Stray(at):
                found.words.append(words[at])
            case Malformed(at):
                raise FlagError("bad-flag", f"bad flag syntax: {words[at]}")
            case Token():
                _take(found, token, words[token.start], minor)
    return found


def _take(found: Flags, token: Token, word: str, minor: int) -> None:
    flag = _known(token.name, minor)
    if flag is None:
        raise _unknown(token, word)
    if token.value is None:
        needs = f"{_letter(token)} in -{token.shorts}" if token.shorts else word
        raise FlagError("bad-flag", f"flag needs an argument: {needs}")
    whole = f"{word}={token.value}" if not token.shorts and "=" not in word else word
    _set(found, flag, token.value, whole, minor)


def _unknown(token: Token, word: str) -> FlagError:
    if token.shorts:
        return FlagError("unknown-flag", f"unknown shorthand flag: {_letter(token)} in -{token.shorts}")
    known = fields.flag(token.name)
    reference = "removed-flag" if known is not None and known.removed is not None else "unknown-flag"
    return FlagError(reference, f"unknown flag: {word.partition('=')[0]}")


def _letter(token: Token) -> str:
    """Go's ``%q`` of the first byte."""
    return f"'{chr(token.shorts.encode('utf-8', 'surrogateescape')[0])}'"


def _known(name: str, minor: int) -> fields.Flag | None:
    flag = fields.flag(name)
    return flag if flag is not None and flag.known_in(minor) else None


def _set(found: Flags, flag: fields.Flag, value: str, word: str, minor: int) -> None:
    name = f"{_SHORT[flag.name]}, {flag.name}" if flag.name in _SHORT else flag.name
    try:
        found.values[flag.name] = setter(flag.name, flag.kind, minor)(value, found.values.get(flag.name))
    except GoValueError as error:
        raise FlagError("bad-flag-value", f'invalid argument {quoted(value)} for "{name}" flag: {error}') from None
    found.given[flag.name] = word
