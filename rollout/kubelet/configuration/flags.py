"""A kubelet's command line, as pflag reads it: all of it or nothing, since one mistake is fatal.

``--flag=value`` and ``--flag value``; a switch takes no following word; ``_`` in a name is ``-``; ``-v`` and ``-h`` are the
only short ones; ``--`` ends the flags; words that are no flags are fatal later. Source: pflag 1.0.5 ``flag.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollout.kubelet import fields
from rollout.kubelet.configuration.flag_values import setter
from rollout.kubelet.configuration.go_values import GoValueError, quoted

_SHORT = {"v": "--v", "h": "--help"}


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
    rest = iter(words)
    for word in rest:
        if word == "--":
            found.words += rest
        elif len(word) < 2 or word[0] != "-":
            found.words.append(word)
        elif word[1] == "-":
            _long(found, word, rest, minor)
        else:
            _shorts(found, word, rest, minor)
    return found


def _long(found: Flags, word: str, rest: Iterator[str], minor: int) -> None:
    name, equals, value = word[2:].partition("=")
    if not name or name[0] == "-":
        raise FlagError("bad-flag", f"bad flag syntax: {word}")
    flag = _known(f"--{name.replace('_', '-')}", minor)
    if flag is None:
        raise FlagError(_why_unknown(name), f"unknown flag: --{name}")
    if not equals:
        value = _value(flag, rest, f"flag needs an argument: {word}")
    _set(found, flag, value, f"{word}={value}" if not equals else word, minor)


def _shorts(found: Flags, word: str, rest: Iterator[str], minor: int) -> None:
    """``-v=2``, ``-v2``, ``-v 2``; letters of switches may stand together."""
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _SHORT.get(letter)
        flag = _known(name, minor) if name else None
        if flag is None:
            raise FlagError("unknown-flag", f"unknown shorthand flag: {quoted_letter(letter)} in -{letter}{letters}")
        if len(letters) > 1 and letters[0] == "=":
            value, letters = letters[1:], ""
        elif not _takes_word(flag):
            value = "true"
        elif letters:
            value, letters = letters, ""
        else:
            value = _value(flag, rest, f"flag needs an argument: {quoted_letter(letter)} in {word}")
        _set(found, flag, value, word, minor)


def quoted_letter(letter: str) -> str:
    """Go's ``%q`` of a byte."""
    return f"'{letter}'"


def _known(name: str, minor: int) -> fields.Flag | None:
    flag = fields.flag(name)
    return flag if flag is not None and flag.known_in(minor) else None


def _why_unknown(name: str) -> str:
    known = fields.flag(f"--{name.replace('_', '-')}")
    return "removed-flag" if known is not None and known.removed is not None else "unknown-flag"


def _takes_word(flag: fields.Flag) -> bool:
    return flag.kind != "bool" and flag.name != "--version"


def _value(flag: fields.Flag, rest: Iterator[str], complaint: str) -> str:
    if not _takes_word(flag):
        return "true"
    following = next(rest, None)
    if following is None:
        raise FlagError("bad-flag", complaint)
    return following


def _set(found: Flags, flag: fields.Flag, value: str, word: str, minor: int) -> None:
    letter = next((letter for letter, name in _SHORT.items() if name == flag.name), "")
    name = f"-{letter}, {flag.name}" if letter else flag.name
    try:
        found.values[flag.name] = setter(flag.name, flag.kind, minor)(value, found.values.get(flag.name))
    except GoValueError as error:
        raise FlagError("bad-flag-value", f'invalid argument {quoted(value)} for "{name}" flag: {error}') from None
    found.given[flag.name] = word
