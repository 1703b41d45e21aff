"""Did you mean …? In one place, so that every message has the same words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_CANDIDATES = 400  # difflib takes about 20 µs for each
_LENGTH_APART = 3


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant. The work is bounded, however many words are known.

    Dashes at the beginning do not count: all flags have them, so that short ones would be alike.
    """
    near = (name for name in known if abs(len(name) - len(word)) <= _LENGTH_APART)
    by_fold = {_folded(name): name for name in islice(near, _CANDIDATES)}
    matches = get_close_matches(_folded(word), by_fold, n=1, cutoff=0.6)
    return by_fold[matches[0]] if matches else None


def _folded(word: str) -> str:
    return word.casefold().lstrip("-")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint, or ``""`` when no word is close."""
    near = closest(word, known)
    return f"did you mean `{near}`?" if near else ""
