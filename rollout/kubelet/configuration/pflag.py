"""Words of a command line as pflag takes them for flags. The one place that knows its grammar.

``--flag=value`` and ``--flag value``; a switch takes no following word; ``_`` in a long name is ``-`` (component-base's
WordSepNormalizeFunc); a short name may have its value behind it (``-v=2``, ``-v2``, ``-v 2``), short names of switches may stand together (``-hv2``);
``--`` ends the flags; ``-test.…`` is passed over, as Go's own tests write it. A word is read once and never looked back at.
Source: ``parseArgs``, ``parseLongArg`` and ``parseSingleShortArg`` of pflag 1.0.5 to 1.0.9 (1.20 to 1.36), which agree.

Whether a flag takes a word is the kubelet's matter. pflag ends at a flag that it does not know; whoever reads on (words of
another minor, or of cri-dockerd and dockerd) is told what the next word looks like: a flag, or a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rollout.kubelet import fields

_LONG = {"v": "--v", "h": "--help"}
"""The kubelet's short names."""


@dataclass(frozen=True, slots=True)
class Token:
    """One flag: words ``start`` to ``end`` (exclusive). ``value`` ``None``: it needs one, and there is no word left.

    ``name`` is the long one, with dashes; that of an unknown letter is ``-x``. ``shorts`` is what pflag has before it of a word
    of short names: ``v2`` of ``-v2`` (``""``: it was given by its long name).
    """

    name: str
    value: str | None
    start: int
    end: int
    shorts: str = ""


@dataclass(frozen=True, slots=True)
class Stray:
    """A word that is no flag."""

    at: int


@dataclass(frozen=True, slots=True)
class Malformed:
    """A word that no flag can be written as: ``---x``, ``--=x``."""

    at: int


def tokens(words: Sequence[str]) -> Iterator[Token | Stray | Malformed]:
    """The whole command line without the program, from left to right."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            yield from map(Stray, range(at + 1, len(words)))
            return
        if len(word) < 2 or word[0] != "-":
            yield Stray(at)
            at += 1
        elif word[1] == "-":
            found = _long(words, at)
            yield found
            at = found.end if isinstance(found, Token) else at + 1
        else:
            end = at + 1
            for short in _shorts(words, at):
                yield short
                end = short.end
            at = end


def takes_word(flag: fields.Flag) -> bool:
    """Whether a flag that is given without ``=`` takes the following word for its value."""
    return flag.kind != "bool" and flag.name != "--version"


def _long(words: Sequence[str], at: int) -> Token | Malformed:
    written, equals, value = words[at][2:].partition("=")
    if not written or written[0] == "-":
        return Malformed(at)
    name = f"--{written.replace('_', '-')}"
    return Token(name, value, at, at + 1) if equals else Token(name, *_following(words, at, fields.flag(name)))


def _shorts(words: Sequence[str], at: int) -> Iterator[Token]:
    shorts = words[at][1:]
    while shorts and not shorts.startswith("test."):
        name = _LONG.get(shorts[0], f"-{shorts[0]}")
        flag = fields.flag(name)
        rest = shorts[1:]
        if len(rest) > 1 and rest[0] == "=":
            yield Token(name, rest[1:], at, at + 1, shorts)
            return
        if flag is not None and not takes_word(flag):
            yield Token(name, "true", at, at + 1, shorts)
            shorts = rest
        elif rest:
            yield Token(name, rest, at, at + 1, shorts)
            return
        else:
            yield Token(name, *_following(words, at, flag), shorts)
            return


def _following(words: Sequence[str], at: int, flag: fields.Flag | None) -> tuple[str | None, int, int]:
    """The value of a flag that was given without one, and the words that are the flag."""
    if flag is not None and not takes_word(flag):
        return "true", at, at + 1
    following = words[at + 1] if at + 1 < len(words) else None
    if following is None or (flag is None and following.startswith("-")):
        return None, at, at + 1
    return following, at, at + 2
