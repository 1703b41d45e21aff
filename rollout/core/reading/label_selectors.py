"""Kubernetes label selectors: ``pool=batch,tier!=test,gpu,!spot,zone in (a,b),zone notin (c)``. All must match."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rollout.core.model.frozen import dataclass
from rollout.core.text.terminal import printable

_KEY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?"
_VALUE = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?|"
_EQUAL = re.compile(rf"({_KEY})\s*(=|==|!=)\s*({_VALUE})")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_THERE = re.compile(rf"(!?)\s*({_KEY})")
_LONGEST = 4_096
_TERMS = re.compile(r",(?![^(]*\))")


class SelectorError(ValueError):
    """The message names the invalid term."""


@dataclass(frozen=True, slots=True)
class Term:
    """``values`` is ``None`` for "exists". ``wanted`` is ``False`` if it must not match."""

    key: str
    values: frozenset[str] | None
    wanted: bool

    def holds(self, labels: Mapping[str, str]) -> bool:
        """As the API server decides it: a missing label is not equal to anything."""
        holds = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return holds is self.wanted


def parse(text: str) -> tuple[Term, ...]:
    """The terms of a selector; ``""`` has none, and so matches everything. Raises ``SelectorError``."""
    if not text.strip():
        return ()
    if len(text) > _LONGEST:
        raise SelectorError(f"a label selector of more than {_LONGEST:,} characters")
    return tuple(_term(term.strip()) for term in _TERMS.split(text))


def _term(text: str) -> Term:
    if match := _EQUAL.fullmatch(text):
        return Term(match[1], frozenset([match[3]]), match[2] != "!=")
    if match := _SET.fullmatch(text):
        values = [value.strip() for value in match[3].split(",")]
        if all(re.fullmatch(_VALUE, value) for value in values):
            return Term(match[1], frozenset(values), match[2] == "in")
    if match := _THERE.fullmatch(text):
        return Term(match[2], None, not match[1])
    raise SelectorError(f"`{printable(text, 80)}` is not a term of a label selector")


def matches(terms: tuple[Term, ...], labels: Mapping[str, str]) -> bool:
    """Whether all terms match."""
    return all(term.holds(labels) for term in terms)
