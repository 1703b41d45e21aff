"""Every claim that rollout prints has a row with its observation and its tests: see ``claims.py``."""

from __future__ import annotations

import ast
from collections import Counter

from tests.house.claims import WORDS, Row, asserts, claims, rows, texts, without_a_row, without_the_words


def test_every_claim_has_a_row() -> None:
    missing = [f"{claim.file}: {claim.text}" for claim in without_a_row()]
    assert not missing, "say in tests/house/claims.toml what was observed, or why it is no claim"


def test_every_row_is_of_a_claim_and_stands_once() -> None:
    said = {claim.text for claim in claims()}
    assert [row.text for row in rows() if row.text not in said] == []
    assert [text for text, count in Counter(row.text for row in rows()).items() if count > 1] == []


def test_every_row_names_tests_that_assert_its_claim() -> None:
    assert all(row.saw and row.tests for row in rows() if row.tests or row.saw == "")
    assert [(test, row.text) for row, test in without_the_words()] == []


def test_a_test_asserts_a_claim_only_with_its_words_or_its_key() -> None:
    here = "tests/house/test_claims.py"
    mine = f"{here}::test_a_test_asserts_a_claim_only_with_its_words_or_its_key"
    assert asserts(Row("{} nodes saw a green comet", "", ()), mine)
    assert not asserts(Row("{} nodes have " + "found nothing at " + "sea", "", ()), mine)
    assert not asserts(Row("{} nodes saw a green comet", "", ()), here), "a file is no test"
    assert not asserts(Row("{} nodes saw a green comet", "", ()), f"{here}::test_that_is_not_there")
    # this is claim of-the-sea
    assert asserts(Row("{} nodes have " + "found nothing at " + "sea", "", (), "of-the-sea"), mine)


def test_a_text_with_a_word_of_a_claim_is_found() -> None:
    """The harness sees what it is for: f-strings as one text, and no docstring."""
    source = 'def f(n):\n    """Every node is healthy."""\n    return f"{n} nodes are as they should be", "a guard"\n'
    assert [text for text in texts(ast.parse(source)) if WORDS.search(text)] == ["{} nodes are as they should be"]
