"""Every pattern of rollout: none divides a text in several ways in a repetition, and none takes long on its own bad texts."""

from __future__ import annotations

import importlib
import re
from functools import cache

import pytest

from tests.hostile import adversarial, parsers
from tests.hostile.ambiguity import ambiguities

UNIMPORTABLE = ("rollout.adapters.journal.migrations.",)
"""Programs of Alembic, which imports them itself."""


@cache
def every_pattern() -> tuple[tuple[str, re.Pattern[str] | re.Pattern[bytes]], ...]:
    modules = [
        ".".join(("rollout", *path.relative_to(parsers.PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for path in sorted(parsers.PACKAGE.rglob("*.py"))
        if path.relative_to(parsers.PACKAGE).parts[0] != "lab" and path.name != "__main__.py"
    ]
    return tuple(
        (module, each) for module in modules if not module.startswith(UNIMPORTABLE) for each in parsers.patterns(module)
    )


def test_no_pattern_divides_a_text_in_several_ways_in_a_repetition() -> None:
    found = [(module, pattern.pattern, why) for module, pattern in every_pattern() for why in ambiguities(pattern)]
    assert found == []
    assert len(every_pattern()) > 200


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+",
        r"(?:[0-9]+(?:\.[0-9]+)?\s*(?:us|ms|s|min|h)?\s*)+",
        r"(?:\w+\s?)*x",
        r"(?:a|aa)*b",
        r"(?:[a-z]x|[a-f]+)*1",
        r"(?:x(?:a*b?)*)?",
        rb"(?:[^,]+,?)*;",
    ],
)
def test_a_pattern_that_does_is_found(pattern: str | bytes) -> None:
    assert list(ambiguities(re.compile(pattern)))


@pytest.mark.parametrize(
    "pattern",
    [r"[0-9]+(?:\.[0-9]+)*", r'(?:[^"\\]|\\.)*', r"(?:[a-z0-9]+-)*[a-z]+", r"(?:[0-9]+(?:ms|m|s))+", r"\S+(?: \S+)*"],
)
def test_a_pattern_with_one_way_is_not(pattern: str) -> None:
    assert not list(ambiguities(re.compile(pattern)))


def test_the_texts_of_a_pattern_repeat_what_it_repeats() -> None:
    made = list(adversarial.of_pattern(re.compile(r"begin (?:[0-9]+x?)+ end")))
    assert any(text.startswith("begin ") and len(text) > adversarial.LENGTH for text in made)


def test_parsers_are_found_without_a_list() -> None:
    """The reader of systemd's time spans is one, and a pattern is read from where it stands."""
    names = {parser.name for parser in parsers.found()}
    assert {"rollout.core.text.timespans:timespan", "rollout.kubelet.configuration.go_values:cpus"} <= names
    assert parsers.patterns(importlib.import_module("rollout.core.text.timespans").__name__)
