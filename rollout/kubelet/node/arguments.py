"""The flags of any program's command line, and words as systemd splits and quotes them.

``configuration.flags`` defines which words are flags; mistakes are ignored here, and the last flag of a name wins.
systemd: ``extract_first_word`` of systemd 252 with EXTRACT_UNQUOTE: quotes of both kinds anywhere in a word, a
backslash takes the next character.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from rollout.core.model.frozen import dataclass
from rollout.kubelet.configuration.flags import FlagToken, tokens

_BLANKS = " \t\n\r"


@dataclass(frozen=True, slots=True)
class Given:
    """One flag as given: words ``start`` to ``end`` (exclusive) of the command line."""

    name: str
    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ArgumentWord:
    """One word of a line after unquoting, and its place: characters ``start`` to ``end`` (exclusive)."""

    text: str
    start: int
    end: int


def given(words: Sequence[str]) -> tuple[Given, ...]:
    """Every flag on a command line (without the program itself), in order."""
    return _given(tuple(words))


@lru_cache(maxsize=4096)
def _given(words: tuple[str, ...]) -> tuple[Given, ...]:
    flags = (token for token in tokens(words) if isinstance(token, FlagToken))
    return tuple(Given(flag.name, flag.value or "", flag.start, flag.end) for flag in flags)


def last(words: Sequence[str], name: str) -> Given | None:
    """The flag that counts: pflag uses the last one."""
    return next((flag for flag in reversed(given(words)) if flag.name == name), None)


@lru_cache(maxsize=4096)
def split(line: str) -> tuple[ArgumentWord, ...]:
    """Words as systemd splits an unquoted ``$VARIABLE``; ``ValueError`` for a quote that is never closed."""
    words: list[ArgumentWord] = []
    at = 0
    while at < len(line):
        if line[at] in _BLANKS:
            at += 1
            continue
        word = _word(line, at)
        words.append(word)
        at = word.end
    return tuple(words)


def _word(line: str, start: int) -> ArgumentWord:
    text: list[str] = []
    quote = ""
    at = start
    while at < len(line):
        here = line[at]
        if here == "\\" and at + 1 < len(line):
            at += 1
            text.append(line[at])
        elif here == "\\":
            raise ValueError("a backslash with nothing after it")
        elif here == quote:
            quote = ""
        elif not quote and here in "\"'":
            quote = here
        elif not quote and here in _BLANKS:
            break
        else:
            text.append(here)
        at += 1
    if quote:
        raise ValueError(f"the quote {quote} is never closed")
    return ArgumentWord("".join(text), start, at)


def quote(word: str) -> str:
    """``word`` so that ``split`` returns it as one word."""
    if word and not any(mark in word for mark in " \t\n\r\"'\\"):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def merge(line: str, ours: Sequence[str]) -> str:
    """``line`` with each of our ``--flag=value``: in place of the last flag of its name, else at the end.

    All other words keep their bytes.
    """
    for argument in ours:
        words = split(line)
        name = given([argument])[0].name
        old = last([word.text for word in words], name)
        if old is None:
            line = f"{line[: words[-1].end]} {quote(argument)}" if words else quote(argument)
        else:
            line = line[: words[old.start].start] + quote(argument) + line[words[old.end - 1].end :]
    return line


def without(line: str, names: Collection[str]) -> str:
    """``line`` without the flags of these names, each with the blanks before it; all other words keep their bytes."""
    words = split(line)
    flags = [flag for flag in given([word.text for word in words]) if flag.name in names]
    for flag in reversed({flag.start: flag for flag in flags}.values()):  # short names may share a word
        start = words[flag.start - 1].end if flag.start else 0
        line = line[:start] + line[words[flag.end - 1].end :]
    return line.lstrip(_BLANKS) if flags and flags[0].start == 0 else line
