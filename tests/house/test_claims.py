"""Every claim that rollout prints has a row with its observation and its tests: see ``claims.py``."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.house.claims import WORDS, Row, claims, rows, texts, without_a_row
from tests.places import ROOT


def test_every_claim_has_a_row() -> None:
    missing = [f"{claim.file}: {claim.text}" for claim in without_a_row()]
    assert not missing, "say in tests/house/claims.toml what was observed, or why it is no claim"


def test_every_row_is_of_a_claim_and_stands_once() -> None:
    said = {claim.text for claim in claims()}
    assert [row.text for row in rows() if row.text not in said] == []
    assert [text for text, count in Counter(row.text for row in rows()).items() if count > 1] == []


@pytest.mark.parametrize("row", [row for row in rows() if row.tests], ids=lambda row: row.text[:60])
def test_the_tests_of_a_row_exist(row: Row) -> None:
    assert row.saw
    for test in row.tests:
        file, _, function = test.partition("::")
        defined = {
            node.name for node in ast.walk(ast.parse((ROOT / file).read_text())) if isinstance(node, ast.FunctionDef)
        }
        assert any(name.startswith("test_") for name in defined)
        assert not function or function in defined, test


def test_a_text_with_a_word_of_a_claim_is_found() -> None:
    """The harness sees what it is for: f-strings as one text, and no docstring."""
    source = 'def f(n):\n    """Every node is healthy."""\n    return f"{n} nodes are as they should be", "a guard"\n'
    assert [text for text in texts(ast.parse(source)) if WORDS.search(text)] == ["{} nodes are as they should be"]
