"""Every text that people read keeps the rules of docs/language.md that a program can check."""

from __future__ import annotations

import io
import tokenize
from pathlib import Path

import pytest

from tests.house.language import (
    LONGEST,
    READERS,
    Kind,
    Prose,
    complaints,
    of_file,
    page_prose,
    python_prose,
    shell_prose,
)
from tests.places import ROOT
from tests.sampling import sample

SHOWING = {
    "CHANGELOG.md",
    "docs/language.md",
    "tests/house/language.py",
    "tests/house/test_language.py",
    "rollout/cli/parameter_table.py",
}
"""Files that quote the old words; the table has copies of the texts of the commands."""
FOLDERS = ("rollout", "tests", "docs", "results", "benchmarks", "README.md", "CONTRIBUTING.md", "SECURITY.md")


def files() -> list[Path]:
    found = [
        path for name in FOLDERS for path in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))
    ]
    return sorted(path for path in found if path.suffix in READERS and str(path.relative_to(ROOT)) not in SHOWING)


def test_comments_are_those_that_python_finds() -> None:
    sources = [path for path in files() if path.suffix == ".py"]
    for path in sample("comments of sources", sources, 20):
        source = path.read_text()
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
        comments = [each for each in tokens if each.type == tokenize.COMMENT]
        wanted = [Prose(each.start[0], each.string.lstrip("# "), Kind.DOCUMENTATION) for each in comments]
        assert list(python_prose(source))[: len(wanted)] == wanted, path


def test_texts_keep_the_rules() -> None:
    assert {str(path.relative_to(ROOT)): found for path in files() if (found := of_file(path))} == {}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a node who does not answer", "'who'"),
        ("what was taken back", "revert"),
        ("2 nodes went wrong", "failed"),
        ("it owes a revert", "pending recovery"),
        (" ".join(["the", *["word"] * LONGEST]), "words in a sentence"),
    ],
)
def test_what_breaks_a_rule_is_found(text: str, word: str) -> None:
    (found,) = complaints(Prose(1, text, Kind.PRINTED))
    assert word in found


@pytest.mark.parametrize(
    "text",
    ["the operator who started it", "the event ``taken_back`` and the flag `owed`", " ".join(["ten words."] * LONGEST)],
)
def test_people_code_and_short_sentences_are_in_order(text: str) -> None:
    assert list(complaints(Prose(1, text, Kind.PRINTED))) == []


def test_the_words_of_a_python_file() -> None:
    source = '"""A docstring."""\n# a comment\nx = f"three words {here}"\ny = "two words"\n'
    assert [(prose.line, prose.text, prose.kind) for prose in python_prose(source)] == [
        (2, "a comment", Kind.DOCUMENTATION),
        (3, "three words `x`", Kind.PRINTED),
    ]


def test_the_words_of_a_script_and_of_a_page() -> None:
    assert [prose.text for prose in shell_prose("#!/bin/sh\n# a comment\nx=1 # no\n")] == ["a comment"]
    page = "# Title\n```console\n$ code\n```\n<!-- hidden -->\ntext\n"
    assert [prose.text for prose in page_prose(page)] == ["# Title", "text"]
